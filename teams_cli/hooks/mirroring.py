"""Mirror Claude Code's own task list in the team. A task in it stands for the team's task with the same title."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from teams_cli.agents.seats.insiders import Insider
from teams_cli.clients import own_entries
from teams_cli.hooks import guard, news
from teams_cli.membership import joining
from teams_cli.tasks import tasks
from teams_cli.teams.permission import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from teams_cli.hooks.entry import Standpoint
    from teams_cli.store.contract import Store
    from teams_cli.tasks.tasks import Task


def mirror(raw_event: bytes, standpoint: Standpoint, environ: Mapping[str, str]) -> str:
    """Apply to the team a change that a client made in its own task list. Return why the team refuses the change, or ""
    if the team accepts it.

    If the event says that a teammate is about to become idle, return instead a text with the ready tasks that this
    teammate has not been shown yet.
    """
    event = json.loads(raw_event)
    name = event.get("hook_event_name")
    title = str(event.get("task_subject") or "").strip()
    store, caller = news.open_store(standpoint, environ)
    subagent = Insider(store.root, standpoint.team, caller.name, str(event.get("agent_id") or ""))
    caller = news.member_of(subagent, caller) or caller
    team = news.team_of_member(store, standpoint, caller)
    if team is None:
        return ""
    program = _Program(standpoint, caller, {**environ}, str(event.get("cwd") or os.getcwd()))
    same_title = (task for task in tasks.all_of(store, standpoint.team, []) if task.title == title)
    task = next((task for task in same_title if task.status in ("pending", tasks.IN_PROGRESS)), None)
    if name == "TeammateIdle":
        return _ready_tasks(program, store, str(event.get("teammate_name") or ""))
    if name == "TaskCreated" and title and task is None:
        description = str(event.get("task_description") or "").strip()
        options = [f"--description={description}"] if description else []
        program.run("create-task", *options, "--", title)
    if name == "TaskCompleted" and task:
        is_leader = team.leader == caller.name
        return _complete_for_leader(program, store, task) if is_leader else _complete(program, task)
    return ""


class _Program:
    """Runs commands of `teams` in the name of *caller*."""

    def __init__(self, standpoint: Standpoint, caller: Caller, environ: dict[str, str], directory: str) -> None:
        self.team, self.caller, self.directory = standpoint.team, caller, directory
        own = {"HOME": standpoint.root, "STORE": standpoint.store, "TEAM": self.team, "TOKEN": caller.token or ""}
        self.environ = environ | {f"TEAMS_{key}": value for key, value in own.items() if value}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [*own_entries.program(sys.executable), words[0], "--as", self.caller.name, *words[1:]]
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
        return subprocess.run(command, env=self.environ, cwd=self.directory, **pipes)


def _complete(program: _Program, task: Task) -> str:
    """Complete the task, after claiming it if nobody has claimed it. Return why the team refuses this, or ""."""
    commands: list[tuple[str, ...]] = [("claim-task", task.id)] if task.status == "pending" else []
    commands.append(("update-task", task.id, "--status", "completed", "--result", "done in Claude Code"))
    for words in commands:
        answer = program.run(*words)
        if answer.returncode:
            return f"{task.id} is not completed: {answer.stderr or answer.stdout}"
    return ""


def _complete_for_leader(program: _Program, store: Store, task: Task) -> str:
    """Complete the task for the leader, who can't claim tasks: a temporary member joins, completes it and leaves."""
    leader = program.caller
    member, token = joining.join(store, program.team, None, specialty="task list", child_of=leader.name)
    program.caller = Caller(member.agent_id, token=token, config=leader.config)
    program.environ |= {"TEAMS_TOKEN": token} if token else {}
    try:
        return _complete(program, task)
    finally:
        joining.leave(store, program.team, program.caller)


def _ready_tasks(program: _Program, store: Store, teammate: str) -> str:
    """Return a text with the ready tasks that the teammate has not been shown yet; "" if there are none."""
    answer = program.run("get-tasks", "--ready", "--json")
    if answer.returncode:
        return ""
    ready = [f"{task['id']}: {task['title']}" for task in json.loads(answer.stdout or "[]")]
    file_name = teammate.encode().hex()[:100]  # a name in the client may have any characters
    path = f"{store.root}/teams/{program.team}/inboxes/{program.caller.name}.{file_name}.idle"
    fresh = guard.lines_not_shown_before(path, ready)
    return f"Ready in team {program.team}: {'; '.join(fresh)}. Take one: teams claim-task --next" if fresh else ""
