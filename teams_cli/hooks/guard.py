"""The guard before a client changes a file. It warns or refuses if other agents work on the file, and keeps an agent
inside its worktree.

The client asks the guard before it uses a tool that writes or runs commands, and never before it uses a tool that only
reads. The client's settings name the tools.
"""

from __future__ import annotations

import json
import os
import time
from binascii import crc32
from contextlib import suppress

from teams_cli.agents import checkouts, isolation, overlaps, sessions
from teams_cli.clients import known
from teams_cli.clients.contract import COMMON, Dialect
from teams_cli.clock import length, parse_rfc3339
from teams_cli.hooks import news
from teams_cli.messages import messages
from teams_cli.names import HUMAN
from teams_cli.store.contract import Store
from teams_cli.tasks import tasks
from teams_cli.teams import settings
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from teams_cli.hooks.entry import Standpoint


_PATH_KEYS = ("file_path", "filePath", "notebook_path", "absolute_path", "path")
_PATCH_HEADINGS = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")


def answer(client: str, raw_event: bytes, standpoint: Standpoint, environ: Mapping[str, str]) -> bool:
    """Print a warning about what the client writes, or the reason why it must not write. Return whether anything was
    printed.
    """
    event = json.loads(raw_event)
    dialect = known.get(client).dialect or COMMON
    paths, command = _paths_and_command(dialect, event)
    if not (paths or command):
        return False
    store, caller = news.open_store(standpoint, environ)
    team = news.team_of_member(store, standpoint, caller)
    if team is None:
        return False
    if why_refused := _worktree_refusal(store, team, caller.name, client, event, paths, command):
        document: dict[str, Any] | None = dialect.denial(event, why_refused)
    else:
        document = _about_overlaps(store, team, caller.name, dialect, event, paths)
    if document is None:
        return False
    news.say(document)
    return True


def _paths_and_command(dialect: Dialect, event: Mapping[str, Any]) -> tuple[list[str], str]:
    """Return the absolute paths of the files that the tool writes, and the shell command that is about to be run. The
    command is "" if the tool is no shell, or if it has already run.
    """
    guard = dialect.guard
    tool = event.get("tool_name")
    tool_input = event.get("tool_input")
    if guard is None or not isinstance(tool_input, dict):
        return [], ""
    is_shell = tool in guard.shells and event.get("hook_event_name") == guard.event
    command = str(tool_input.get("command") or "") if is_shell else ""
    if tool not in guard.writers:
        return [], command
    paths = [str(tool_input[key]) for key in _PATH_KEYS if tool_input.get(key)][:1]  # the first key with a value
    # A tool that takes a patch has it under one of these keys; the headings in the patch name the files.
    patch = tool_input.get("command") or tool_input.get("patchText") or tool_input.get("input") or ""
    for line in str(patch).splitlines():
        paths += [line.removeprefix(heading).strip() for heading in _PATCH_HEADINGS if line.startswith(heading)]
    directory = str(event.get("cwd") or os.getcwd())
    return [os.path.normpath(os.path.join(directory, path)) for path in dict.fromkeys(paths)], command


def _worktree_refusal(
    store: Store, team: Team, agent: str, client: str, event: dict[str, Any], paths: list[str], command: str
) -> str:
    """Return why the agent must not write to the *paths* or run the *command*; "" if it may. An agent with a worktree
    must not write outside it, and must not change by git what other agents use.
    """
    session = sessions.find(store, team.name, agent)
    if session is None or session.ended or not session.worktree:
        return ""
    if event.get("hook_event_name") == "AfterTool":  # the file is written already
        return ""
    home = known.get(client).home
    allowed = [os.path.expanduser(f"~/{home.directory}")] if home else []
    for path in paths:
        if why_refused := isolation.of_write(session, path, allowed):
            return why_refused
    if not command:
        return ""
    return isolation.of_command(session, command, str(event.get("cwd") or os.getcwd()))


def _about_overlaps(
    store: Store, team: Team, agent: str, dialect: Dialect, event: dict[str, Any], paths: list[str]
) -> dict[str, Any] | None:
    """Return the answer about the *paths* on which other agents work too; None if there are none. The answer forbids
    the write if the team's setting denies overlaps. Otherwise it is a warning, which the agent gets once.
    """
    assert dialect.guard is not None
    is_before_write = event.get("hook_event_name") == dialect.guard.event
    denies = settings.value(team, settings.OVERLAPS) == "deny"
    # A warning comes before the write, too, if the client then shows it to its model.
    comes_before_write = denies or dialect.guard.tells
    if is_before_write != comes_before_write:
        return None
    lines = [line for path in paths for line in overlaps.others_working_on(store, team, agent, path)]
    if denies:
        return dialect.denial(event, _overlap_text(lines, "so you may not write it now")) if lines else None
    fresh = lines_not_shown_before(f"{store.root}/teams/{team.name}/inboxes/{agent}.overlaps", lines)
    return dialect.context(event, _overlap_text(fresh, "agree with them who changes what")) if fresh else None


def _overlap_text(lines: list[str], what_to_do: str) -> str:
    return f"Overlap with your team: {'; '.join(dict.fromkeys(lines))}: {what_to_do} (teams send-message)."


def lines_not_shown_before(path: str, lines: list[str]) -> list[str]:
    """Return the *lines* that are not in the file *path* yet, and add them to the file. This way, an agent is shown
    each line once. If the file can't be written, the lines are returned again next time.
    """
    try:
        with open(path, encoding="utf-8") as file:
            shown = set(file.read().splitlines())
    except OSError:
        shown = set()
    fresh = [line for line in dict.fromkeys(lines) if json.dumps(line) not in shown]
    if fresh:
        with suppress(OSError):  # the same lines are shown again
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            mode = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            with open(os.open(path, mode, 0o600), "w", encoding="utf-8") as file:
                file.write("".join(f"{json.dumps(line)}\n" for line in fresh))
    return fresh


_WINDOW = 24
"""Number of an agent's latest tool calls that are compared."""
_KEPT_OF_WINDOW = _WINDOW // 2
_FEW = 3
"""An agent repeats itself if a window of its calls contains at most this many different calls."""
_BYTES_OF_CALL = 9
"""Size of a call in the file, in bytes: a checksum in hexadecimal, and a line break."""
_ENDS_OF_INPUT = (b'"tool_response"', b'"tool_use_id"', b'"tool_output"')


def note_calls(standpoint: Standpoint, raw_event: bytes) -> float:
    """Record the tool calls in the event. Return the time at which the agent began to repeat a few calls, in seconds
    since 1970. Return 0 if the agent does not repeat calls or has only just begun to, or if too few calls are recorded
    yet.

    Calls of `teams wait` are not recorded, and neither are calls of an agent that is not a member.
    """
    base = f"{standpoint.root}/teams/{standpoint.team}/inboxes/{standpoint.agent}"
    checksums = b""
    for call in raw_event.split(b'"tool_input"')[1:]:  # as raw text, without the result of the call
        for end in _ENDS_OF_INPUT:
            call = call.partition(end)[0]
        if b"teams wait" not in call:
            checksums += b"%08x\n" % crc32(call)
    if not checksums or not os.path.exists(f"{base}.seen"):  # only members have this file
        return 0.0
    descriptor = os.open(f"{base}.calls", os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(descriptor, checksums)
        if os.fstat(descriptor).st_size < _WINDOW * _BYTES_OF_CALL:
            return 0.0
        window = os.pread(descriptor, 1 << 16, 0).split()[-_WINDOW:]
        os.ftruncate(descriptor, 0)  # half of the window stays, so that the next windows overlap
        os.write(descriptor, b"".join(call + b"\n" for call in window[-_KEPT_OF_WINDOW:]))
    finally:
        os.close(descriptor)
    loop_file = f"{base}.circling"  # made when the repetition begins, so the time of the file says when this was
    if len(set(window)) > _FEW:
        if os.path.exists(loop_file):
            os.unlink(loop_file)
        return 0.0
    try:
        return os.stat(loop_file).st_mtime
    except FileNotFoundError:
        os.close(os.open(loop_file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        return 0.0


def report_loop(standpoint: Standpoint, repeating_since: float, environ: Mapping[str, str]) -> None:
    """Notify the leader that an agent has made the same calls again and again since the time *repeating_since*.

    The notice is sent only if the agent has a task, and has neither committed nor changed a file for the time in the
    setting `circlingAfter`. It is sent once for each claim of a task. If the agent is the leader, the human is
    notified.
    """
    store, caller = news.open_store(standpoint, environ)
    team = news.team_of_member(store, standpoint, caller)
    if team is None:
        return
    patience = float(settings.value(team, settings.CIRCLING_AFTER))
    if not patience or time.time() - repeating_since < patience:  # 0 says that the team wants no such notices
        return
    agent = caller.name
    for task in tasks.held_by(store, team.name, agent):
        session = sessions.find(store, team.name, agent)
        directory = (session.worktree or session.directory) if session else os.getcwd()
        claimed_at = parse_rfc3339(task.claimed_at).timestamp() if task.claimed_at else 0.0
        seconds = time.time() - max(repeating_since, claimed_at, _last_change(directory))
        if seconds < patience:
            continue
        recipient = team.leader if agent != team.leader else HUMAN
        if session:
            what_to_do = f"teams logs {agent}; restart: teams restart-agent {agent} --fresh"
        else:
            what_to_do = "look at its terminal"
        body = (
            f"{agent} seems to loop on {task.named}: the same calls again and again, and for"
            f" {length(seconds)} no commit and no changed file: {what_to_do}"
        )
        uid = f"circling-{task.id}-{task.claim}"
        messages.notify(store, team.name, recipient, body, uid, event="agent-loops", task=task.id)


def _last_change(directory: str) -> float:
    """Return the time of the last commit or uncommitted change in the checkout around *directory*; 0 outside git."""
    checkout = checkouts.at(directory)
    if checkout is None:
        return 0.0
    times = [checkout.committed_at]
    for name in checkout.uncommitted():
        try:
            times.append(os.lstat(os.path.join(checkout.top, name)).st_mtime)
        except OSError:  # the change is that the file was deleted
            continue
    return max(times)
