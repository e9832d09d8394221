"""Notifications: run the human's commands for events such as a waiting question, a failed task, or the end of all
tasks. An event is recorded before its command runs, so that it is never reported twice, whatever is killed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from functools import partial
from zlib import crc32

from teams_cli import text
from teams_cli.agents import ending
from teams_cli.agents.background import NOTIFIER
from teams_cli.messages import inboxes, messages
from teams_cli.names import HUMAN, SYSTEM
from teams_cli.questions import questions
from teams_cli.store import opening
from teams_cli.store.contract import Store
from teams_cli.store.retrying import upsert
from teams_cli.tasks import attempts, dependencies, plans, reviews, tasks
from teams_cli.tasks.tasks import FINISHED, Task
from teams_cli.teams import presence, settings, teams
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Event = dict[str, Any]


WAITING, FAILED, SETTLED = EVENTS = ("waiting", "failed", "settled")
LONGEST = 60.0
"""Seconds that a command of the human may take."""
_TEXT = 300
_LETTERS = ("plain", "reply", "broadcast", "answer", "output")


def is_wanted(team: Team) -> bool:
    """Whether any event of the team has a command."""
    return team.state != "closed" and any(_command(team, event) for event in EVENTS)


def so_now(store: Store, team: Team) -> dict[str, Event]:
    """Return the events of the team that hold at present, each under a key of its own."""
    now: dict[str, Event] = {}
    for asked in questions.all_of(store, team.name, []):
        if asked.open and HUMAN in asked.waiting_for:
            line, step = f"{asked.id} from {asked.from_}: {asked.question}", f"teams answer {asked.id} TEXT"
            now[f"question:{asked.id}"] = _event(WAITING, "question", asked.id, line, step)
    for plan in plans.all_of(store, team.name, [], only_open=True):
        line = f"{plan.id} from {plan.from_}: {plan.plan}"
        step = f"teams approve-plan {plan.id}, or teams reject-plan {plan.id} --feedback WHY"
        now[f"plan:{plan.id}"] = _event(WAITING, "plan", plan.id, line, step)
    for letter in inboxes.Mailbox(store, team.name, HUMAN).open_messages():
        if letter.from_ != SYSTEM and letter.type in _LETTERS and not letter.only_informs:
            line, step = f"{letter.id} from {letter.from_}: {letter.message}", f"teams reply {letter.id} TEXT"
            now[f"mail:{letter.id}"] = _event(WAITING, "message", letter.id, line, step)
    for session in ending.all_of(store, team.name, []):
        if session.ended and session.outcome == "failed":
            line = f"{session.agent} failed: {session.failure or 'its client failed'}"
            key = f"lost:{session.agent}:{session.generation}:{session.turns}"
            now[key] = _event(FAILED, "agent", session.agent, line, f"teams logs {session.agent}")
    return now | _of_tasks(team, list(tasks.all_of(store, team.name, [])))


def _of_tasks(team: Team, rows: list[Task]) -> dict[str, Event]:
    """Return the events of these tasks: a task waits for the human's review, a task failed, or all are settled. A task
    is settled when it has ended, or is blocked by one that ended without success.
    """
    now: dict[str, Event] = {}
    for task in reviews.for_person(rows):
        line, review = f"{task.id} from {task.owner}, to review: {task.title}", f"teams review-task {task.id}"
        step = f"{review} --accept, or {review} --reject WHY"
        times = sum(note.what == task.status for note in task.notes)
        now[f"review:{task.id}:{times}"] = _event(WAITING, "review", task.id, line, step)
    for task in rows:
        if task.status == "failed":
            line = f"{task.id} failed: {task.title}: {attempts.why_failed(task)[-_TEXT:]}"
            step = f"teams update-task {task.id} --status pending --reason WHY"
            now[f"failed:{task.id}:{task.claim or 0}"] = _event(FAILED, "task", task.id, line, step)
    stuck = dependencies.stuck_tasks(rows)
    if rows and all(task.status in FINISHED or task.id in stuck for task in rows):
        counts = {status: sum(task.status == status for task in rows) for status in tasks.STATUSES}
        summary = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        key = "-".join(str(count) for count in counts.values())
        now[f"settled:{key}"] = _event(SETTLED, "team", team.name, f"all tasks are settled: {summary}")
    return now


def _event(event: str, kind: str, about: str, line: str, step: str = "") -> Event:
    described = {"event": event, "kind": kind, "id": about, "text": text.clipped_line(line, _TEXT)}
    return described | ({"next": step} if step else {})


def take_news(store: Store, team: Team) -> list[Event]:
    """Return the events since the last call, and record them as reported."""
    now = so_now(store, team)
    news: list[str] = []

    def change(person: presence.Agent) -> presence.Agent:
        told_before = set(person.notified or ())
        news[:] = [key for key in now if key not in told_before]
        return person if told_before == set(now) else person.having(notified=sorted(now) or None)

    upsert(store, team.name, presence.AGENT, HUMAN, presence.Agent(agent=HUMAN), change)
    return [now[key] for key in news]


def tell(store: Store, team: Team, events: list[Event], environ: Mapping[str, str]) -> None:
    """Run the human's commands for these events: each command once, with all its events. The human is notified of a
    command that fails.
    """
    by_command: dict[str, list[Event]] = {}
    for event in events:
        if command := _command(team, event["event"]):
            by_command.setdefault(command, []).append(event)
    for command, own in by_command.items():
        if problem := run(command, document(team.name, own, teams.now(store)), environ):
            body = f"the command for notifications failed: {problem}\n{command}"
            uid = f"notify-{crc32(body.encode()):08x}"
            messages.notify(store, team.name, HUMAN, body, uid, event="notify-failed")


def document(team: str, events: list[Event], at: str) -> Event:
    """Return the JSON that a command of the human gets on its standard input."""
    return {"team": team, "at": at, "text": "\n".join(event["text"] for event in events), "events": events}


def run(command: str, given: Event, environ: Mapping[str, str]) -> str:
    """Run a command of the human with *given* as JSON on its standard input. Returns why it failed, or "" if it
    succeeded.
    """
    try:
        done = subprocess.run(
            ["sh", "-c", command],
            input=json.dumps(given).encode() + b"\n",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**environ, "TEAMS_TEAM": given["team"]},
            timeout=LONGEST,
        )
    except subprocess.TimeoutExpired:
        return f"it took more than {LONGEST:g} seconds"
    except OSError as error:
        return str(error.strerror)
    if done.returncode == 0:
        return ""
    reason = done.stderr.decode(errors="replace").strip()[-_TEXT:]
    return f"exit status {done.returncode}{f': {reason}' if reason else ''}"


def _command(team: Team, event: str) -> str:
    own = str(settings.value(team, f"notify_{event}")) or str(settings.value(team, "notify"))
    return "" if own == settings.OFF else own


def environment(store: Store, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a command of the human: that of the caller, without an agent's name and token, and
    with the variables that name the store.
    """
    kept = {key: value for key, value in environ.items() if key not in ("TEAMS_AGENT_ID", "TEAMS_TOKEN")}
    return {**kept, "PATH": kept.get("PATH", os.defpath), **store.variables}


REST = 1.0
"""Seconds to wait for more events, which are reported with the first."""


def start(store: Store, team: Team, environ: Mapping[str, str]) -> None:
    """Start the notifier of the team, if an event has a command and no notifier runs. None is started inside a client's
    sandbox.
    """
    if is_wanted(team):
        NOTIFIER.start(store, team.name, environ, environment(store, environ))


def main() -> None:
    """Report events until no event has a command or the team is closed."""
    store, team = opening.from_environment(os.environ), os.environ["TEAMS_TEAM"]
    NOTIFIER.attend(store, team, lambda: partial(_look, store, team, os.environ), sys.stderr.write)


def _look(store: Store, name: str, environ: Mapping[str, str]) -> bool:
    team = teams.get(store, name)
    if not set(so_now(store, team)).issubset(presence.load(store, team.name, HUMAN).notified or ()):
        time.sleep(REST)
        team = teams.get(store, name)
        tell(store, team, take_news(store, team), environ)
    return not is_wanted(team)


if __name__ == "__main__":
    main()
