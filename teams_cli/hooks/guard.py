"""The guard before a client changes a file: it warns or refuses if others work on the file, and keeps an agent inside
its worktree.

It is asked before tools that write or run commands, never before those that read: the client's settings name them.
"""

from __future__ import annotations

import json
import os
import time
from binascii import crc32
from contextlib import suppress

from teams_cli import errors
from teams_cli.agents import checkouts, isolation, overlaps, sessions
from teams_cli.clients import known
from teams_cli.clients.contract import COMMON, Dialect
from teams_cli.clock import length, parse_rfc3339
from teams_cli.hooks import news
from teams_cli.messages import messages
from teams_cli.names import HUMAN
from teams_cli.store.contract import Store
from teams_cli.tasks import tasks
from teams_cli.teams import permission, settings
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from teams_cli.hooks.entry import Standpoint


_PATHS = ("file_path", "filePath", "notebook_path", "absolute_path", "path")
_OF_A_PATCH = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")


def answer(client: str, given: bytes, standpoint: Standpoint, environ: Mapping[str, str]) -> bool:
    """Print a warning for the client before it writes, or the reason why it must not. Return whether anything was
    printed.
    """
    event = json.loads(given)
    dialect = known.get(client).dialect or COMMON
    paths, command = list(written(dialect, event)), _command(dialect, event)
    if not (paths or command):
        return False
    store, caller = news.opened(standpoint, environ)
    try:
        team = permission.require(store, standpoint.team, caller, "read-messages").team
    except (errors.NotAllowed, errors.TeamNotFound, errors.Conflict):
        return False
    why = _refusal(store, team, caller.name, client, event, paths, command)
    document = dialect.denial(event, why) if why else _said(store, team, caller.name, dialect, event, paths)
    if document is None:
        return False
    news.say(document)
    return True


def written(dialect: Dialect, event: Mapping[str, Any]) -> Iterator[str]:
    """Return the absolute paths of the files that the tool of the event writes; none if it only reads."""
    guard, given = dialect.guard, event.get("tool_input")
    if guard is None or event.get("tool_name") not in guard.writers or not isinstance(given, dict):
        return
    directory = str(event.get("cwd") or os.getcwd())
    named = [str(given[key]) for key in _PATHS if given.get(key)][:1]
    patch = given.get("command") or given.get("patchText") or given.get("input") or ""
    for line in str(patch).splitlines():
        named += [line.removeprefix(head).strip() for head in _OF_A_PATCH if line.startswith(head)]
    for path in dict.fromkeys(named):
        yield os.path.normpath(os.path.join(directory, path))


def _command(dialect: Dialect, event: Mapping[str, Any]) -> str:
    """Return the shell command that is about to be run; empty if the tool is no shell."""
    guard, given = dialect.guard, event.get("tool_input")
    if guard is None or event.get("hook_event_name") != guard.event or not isinstance(given, dict):
        return ""
    return str(given.get("command") or "") if event.get("tool_name") in guard.shells else ""


def _refusal(
    store: Store, team: Team, agent: str, client: str, event: dict[str, Any], paths: list[str], command: str
) -> str:
    """Return why an agent whose worktree is no longer its own must not write."""
    session = sessions.find(store, team.name, agent)
    if session is None or session.ended or not session.worktree or event.get("hook_event_name") == "AfterTool":
        return ""
    home = known.get(client).home
    allowed = [os.path.expanduser(f"~/{home.directory}")] if home else []
    for path in paths:
        if why := isolation.of_write(session, path, allowed):
            return why
    return isolation.of_command(session, command, str(event.get("cwd") or os.getcwd())) if command else ""


def _said(
    store: Store, team: Team, agent: str, dialect: Dialect, event: dict[str, Any], paths: list[str]
) -> dict[str, Any] | None:
    assert dialect.guard is not None
    before = event.get("hook_event_name") == dialect.guard.event
    denies = settings.value(team, settings.OVERLAPS) == "deny"
    if not before and (denies or dialect.guard.tells):
        return None
    if before and not denies and not dialect.guard.tells:
        return None
    lines = [line for path in paths for line in overlaps.about(store, team, agent, path)]
    if denies:
        return dialect.denial(event, _told(lines, "so you may not write it now")) if lines else None
    fresh = not_told_before(f"{store.root}/teams/{team.name}/inboxes/{agent}.overlaps", lines)
    return dialect.context(event, _told(fresh, "agree with them who changes what")) if fresh else None


def _told(lines: list[str], what: str) -> str:
    return f"Overlap with your team: {'; '.join(dict.fromkeys(lines))}: {what} (teams send-message)."


def not_told_before(path: str, lines: list[str]) -> list[str]:
    """Return the lines that are not in the file yet, and add them to it. If that fails, they are returned again next
    time.
    """
    try:
        with open(path, encoding="utf-8") as file:
            before = set(file.read().splitlines())
    except OSError:
        before = set()
    fresh = [line for line in dict.fromkeys(lines) if json.dumps(line) not in before]
    if fresh:
        with suppress(OSError):
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            mode = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            with open(os.open(path, mode, 0o600), "w", encoding="utf-8") as file:
                file.write("".join(f"{json.dumps(line)}\n" for line in fresh))
    return fresh


_WINDOW = 24
_KEPT = _WINDOW // 2
_FEW = 3
"""The calls of a window are the same again and again if there are at most so many different ones."""
_SIZE = 9
_ENDS = (b'"tool_response"', b'"tool_use_id"', b'"tool_output"')


def note(standpoint: Standpoint, given: bytes) -> float:
    """Note the tool calls of the event. Return since when they have been the same few, if it is time to look at that,
    else 0.

    Waiting is no call. Nothing is noted of an agent that is no member.
    """
    base = f"{standpoint.root}/teams/{standpoint.team}/inboxes/{standpoint.agent}"
    sums = b"".join(b"%08x\n" % crc32(call) for call in _calls(given) if b"teams wait" not in call)
    if not sums or not os.path.exists(f"{base}.seen"):
        return 0.0
    descriptor = os.open(f"{base}.calls", os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(descriptor, sums)
        if os.fstat(descriptor).st_size < _WINDOW * _SIZE:
            return 0.0
        calls = os.pread(descriptor, 1 << 16, 0).split()[-_WINDOW:]
        os.ftruncate(descriptor, 0)
        os.write(descriptor, b"".join(call + b"\n" for call in calls[-_KEPT:]))
    finally:
        os.close(descriptor)
    return _since(f"{base}.circling", len(set(calls)) <= _FEW)


def _calls(given: bytes) -> list[bytes]:
    """Return the input of each tool call of the event as raw text, without its result."""
    parts = given.split(b'"tool_input"')[1:]
    return [min((part.partition(end)[0] for end in _ENDS), key=len) for part in parts]


def _since(path: str, same: bool) -> float:
    """Return since when the agent has repeated the same few calls, a time that the file *path* records; 0 if it does
    not repeat them, or has only begun to.
    """
    if not same:
        if os.path.exists(path):
            os.unlink(path)
        return 0.0
    try:
        return os.stat(path).st_mtime
    except FileNotFoundError:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        return 0.0


def look(standpoint: Standpoint, since: float, environ: Mapping[str, str]) -> None:
    """Notify the leader of an agent that makes the same calls again and again.

    It must have a task, and have neither committed nor changed a file for as long as the setting `circlingAfter` says.
    The leader is notified once for each claim of a task.
    """
    store, caller = news.opened(standpoint, environ)
    try:
        team = permission.require(store, standpoint.team, caller, "read-messages").team
    except (errors.NotAllowed, errors.TeamNotFound, errors.Conflict):
        return
    patience = float(settings.value(team, settings.CIRCLING_AFTER))
    if not patience or time.time() - since < patience:
        return
    agent = caller.name
    for task in tasks.labelled(store, team.name, tasks.IN_PROGRESS):
        if task.owner != agent:
            continue
        session = sessions.find(store, team.name, agent)
        changed = _changed((session.worktree or session.directory) if session else os.getcwd())
        claimed = parse_rfc3339(task.claimed_at).timestamp() if task.claimed_at else 0.0
        seconds = time.time() - max(since, claimed, changed)
        if seconds >= patience:
            to = team.leader if agent != team.leader else HUMAN
            restart = f"teams logs {agent}; restart: teams restart-agent {agent} --fresh"
            body = (
                f"{agent} seems to loop on {task.id} ({task.title}): the same calls again and again, and for"
                f" {length(seconds)} no commit and no changed file: {restart if session else 'look at its terminal'}"
            )
            messages.notify(
                store, team.name, to, body, f"circling-{task.id}-{task.claim}", event="agent-loops", task=task.id
            )


def _changed(directory: str) -> float:
    """Return the time of the last commit or uncommitted change there; 0 outside git."""
    checkout = checkouts.at(directory)
    if checkout is None:
        return 0.0
    times = [checkout.committed_at]
    for name in checkout.uncommitted():
        try:
            times.append(os.lstat(os.path.join(checkout.top, name)).st_mtime)
        except OSError:  # it is deleted
            continue
    return max(times)
