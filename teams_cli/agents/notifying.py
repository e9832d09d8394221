"""Notifications: run the human's commands for events such as a waiting question, a failed task, or the end of all
tasks. An event is recorded before its command runs, so that it is never reported twice, even if a process is killed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from typing import Any
from zlib import crc32

from teams_cli import text
from teams_cli.agents import ending
from teams_cli.agents.background import NOTIFIER
from teams_cli.messages import inboxes, messages
from teams_cli.names import HUMAN, SYSTEM
from teams_cli.questions import questions
from teams_cli.store import opening
from teams_cli.store.contract import Store, upsert
from teams_cli.tasks import dependencies, plans, reviews, tasks
from teams_cli.tasks.tasks import FINISHED
from teams_cli.teams import presence, settings, teams
from teams_cli.teams.teams import Team

Event = dict[str, Any]
WAITING, FAILED, SETTLED = EVENTS = ("waiting", "failed", "settled")
LONGEST = 60.0
"""Maximum number of seconds that a command of the human may take."""
_MOST_TEXT = 300
"""Maximum number of characters of a text that an event shows."""
_MESSAGE_TYPES = ("plain", "reply", "broadcast", "answer", "output")
"""The types of messages that are events of the kind `message`. Questions, plans and reviews are other kinds."""


def is_wanted(team: Team) -> bool:
    """Whether the team is open, and the human has set a command for at least one kind of event."""
    return team.state != "closed" and any(_command(team, event) for event in EVENTS)


def current_events(store: Store, team: Team) -> dict[str, Event]:
    """Return the current events of the team, each under a key that stays the same while the event lasts."""
    return dict([*_of_members(store, team.name), *_of_tasks(store, team.name)])


def _of_members(store: Store, team: str) -> Iterator[tuple[str, Event]]:
    """Yield a pair of key and event for each question, plan or message that waits for the human, and for each agent
    whose client failed.
    """
    for question in questions.all_of(store, team, []):
        if question.open and HUMAN in question.waiting_for:
            line = f"{question.id} from {question.from_}: {question.question}"
            command = f"teams answer {question.id} TEXT"
            yield f"question:{question.id}", _event(WAITING, "question", question.id, line, command)
    for plan in plans.all_of(store, team, [], only_open=True):
        line = f"{plan.id} from {plan.from_}: {plan.plan}"
        command = f"teams approve-plan {plan.id}, or teams reject-plan {plan.id} --feedback WHY"
        yield f"plan:{plan.id}", _event(WAITING, "plan", plan.id, line, command)
    for message in inboxes.Mailbox(store, team, HUMAN).open_messages():
        if message.from_ != SYSTEM and message.type in _MESSAGE_TYPES and not message.only_informs:
            line, command = f"{message.id} from {message.from_}: {message.message}", f"teams reply {message.id} TEXT"
            yield f"mail:{message.id}", _event(WAITING, "message", message.id, line, command)
    for session in ending.all_of(store, team, []):
        if session.ended and session.outcome == "failed":
            line = f"{session.agent} failed: {session.failure or 'its client failed'}"
            key = f"lost:{session.agent}:{session.generation}:{session.turns}"  # as stored by earlier versions
            yield key, _event(FAILED, "agent", session.agent, line, f"teams logs {session.agent}")


def _of_tasks(store: Store, team: str) -> Iterator[tuple[str, Event]]:
    """Yield a pair of key and event for each task that the human must review, for each failed task, and for the end of
    all tasks.
    """
    all_tasks = list(tasks.all_of(store, team, []))
    for task in reviews.for_person(all_tasks):
        line, review = f"{task.id} from {task.owner}, to review: {task.title}", f"teams review-task {task.id}"
        times_submitted = sum(note.what == task.status for note in task.notes)  # each time left a note
        command = f"{review} --accept, or {review} --reject WHY"
        yield f"review:{task.id}:{times_submitted}", _event(WAITING, "review", task.id, line, command)
    for task in all_tasks:
        if task.status == "failed":
            line = f"{task.id} failed: {task.title}: {tasks.why_failed(task)[-_MOST_TEXT:]}"
            command = f"teams update-task {task.id} --status pending --reason WHY"
            yield f"failed:{task.id}:{task.claim or 0}", _event(FAILED, "task", task.id, line, command)
    stuck = dependencies.stuck_tasks(all_tasks)  # blocked by a task that ended without success
    if all_tasks and all(task.status in FINISHED or task.id in stuck for task in all_tasks):
        counts = {status: sum(task.status == status for task in all_tasks) for status in tasks.STATUSES}
        key = "-".join(str(count) for count in counts.values())  # after more work, it is another event
        yield f"settled:{key}", _event(SETTLED, "team", team, f"all tasks are settled: {text.counts_of(counts)}")


def _event(event: str, kind: str, about: str, line: str, command: str = "") -> Event:
    """Return an event as JSON. *about* is the id of what the event concerns, and *command* is the next command for the
    human.
    """
    document = {"event": event, "kind": kind, "id": about, "text": text.clipped_line(line, _MOST_TEXT)}
    return {**document, "next": command} if command else document


def take_news(store: Store, team: Team) -> list[Event]:
    """Return the current events that have not been reported yet, and record all current events as reported."""
    events = current_events(store, team)

    def with_reported(human: presence.Agent) -> presence.Agent:
        return human if set(human.notified or ()) == set(events) else human.having(notified=sorted(events) or None)

    before, _ = upsert(store, team.name, presence.AGENT, HUMAN, presence.Agent(agent=HUMAN), with_reported)
    reported = set(before.notified or ())
    return [event for key, event in events.items() if key not in reported]


def report(store: Store, team: Team, events: list[Event], environ: Mapping[str, str]) -> None:
    """Run the human's commands for the *events*, and notify the human of each command that fails. A command that is set
    for several of the events runs once, with all of them.
    """
    by_command: dict[str, list[Event]] = {}
    for event in events:
        if command := _command(team, event["event"]):
            by_command.setdefault(command, []).append(event)
    for command, events_of_command in by_command.items():
        if problem := run(command, document(team.name, events_of_command, teams.now(store)), environ):
            body = f"the command for notifications failed: {problem}\n{command}"
            uid = f"notify-{crc32(body.encode()):08x}"
            messages.notify(store, team.name, HUMAN, body, uid, event="notify-failed")


def document(team: str, events: list[Event], at: str) -> Event:
    """Return the JSON that a command of the human gets on its standard input."""
    return {"team": team, "at": at, "text": "\n".join(event["text"] for event in events), "events": events}


def run(command: str, events: Event, environ: Mapping[str, str]) -> str:
    """Run a command of the human, with the JSON *events* on its standard input. Returns why the command failed, or ""
    if it succeeded. A process that the command leaves behind, such as a player of sounds, is not waited for.
    """
    with tempfile.TemporaryFile() as printed:  # no pipe: a process that is left behind would keep it open
        try:
            done = subprocess.run(
                ["sh", "-c", command],
                input=json.dumps(events).encode() + b"\n",
                stdout=subprocess.DEVNULL,
                stderr=printed,
                env={**environ, "TEAMS_TEAM": events["team"]},
                timeout=LONGEST,
            )
        except subprocess.TimeoutExpired:
            return f"it took more than {LONGEST:g} seconds"
        except OSError as error:
            return str(error.strerror)
        if done.returncode == 0:
            return ""
        printed.seek(0)
        reason = printed.read().decode(errors="replace").strip()[-_MOST_TEXT:]
        status = f"exit status {done.returncode}"
        return f"{status}: {reason}" if reason else status


def _command(team: Team, event: str) -> str:
    command = str(settings.value(team, f"notify_{event}")) or str(settings.value(team, "notify"))
    return "" if command == settings.OFF else command


def environment(store: Store, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a command of the human: the environment of the caller, without an agent's name and
    token, and with the variables that name the store.
    """
    remaining = {key: value for key, value in environ.items() if key not in ("TEAMS_AGENT_ID", "TEAMS_TOKEN")}
    return {**remaining, "PATH": remaining.get("PATH", os.defpath), **store.variables}


REST = 1.0
"""Seconds to wait for more events after the first event, so that all of them are reported together."""


def start(store: Store, team: Team, environ: Mapping[str, str]) -> None:
    """Start the notifier of the team, the process that runs the human's commands for events. Nothing is started if no
    event has a command, if a notifier is already running, or inside a client's sandbox.
    """
    if is_wanted(team):
        NOTIFIER.start(store, team.name, environ, environment(store, environ))


def main() -> None:
    """Report events until no event has a command or the team is closed."""
    store, team_name = opening.from_environment(os.environ), os.environ["TEAMS_TEAM"]

    def report_news() -> bool:
        """Report the new events, and return whether this process may end."""
        team = teams.get(store, team_name)
        if not set(current_events(store, team)).issubset(presence.load(store, team.name, HUMAN).notified or ()):
            time.sleep(REST)
            team = teams.get(store, team_name)
            report(store, team, take_news(store, team), os.environ)
        return not is_wanted(team)

    NOTIFIER.attend(store, team_name, lambda: report_news, sys.stderr.write)


if __name__ == "__main__":
    main()
