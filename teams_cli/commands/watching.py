"""The command that watches a team."""

from __future__ import annotations

import time
from functools import partial

from teams_cli import errors
from teams_cli.agents import logs, sessions
from teams_cli.commands import console
from teams_cli.commands.answers import Stream
from teams_cli.commands.call import Call
from teams_cli.commands.declaration import Command, argument, option, switch, table
from teams_cli.questions import questions
from teams_cli.views import board

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_WATCH = """Watch the team: progress, what waits for you, failures, agents, tasks and messages.

In a terminal, `q` ends it, `j` and `k` or the arrow keys scroll, Tab chooses an agent, Enter shows its output,
and `a` answers the first question that waits for you.
Without a terminal, print the present state, then a line for each change. With --json, print the whole state as
one JSON object a line after each change.
"""
_ON = """Print events as they happen, and run a command for them, until interrupted.

`waiting` is a question, plan, review or message for the person. `failed` is a failed task or agent, `settled`
the end of all tasks. Events at the same moment are one call: JSON with `team`, `at`, `text` and `events`, each
with `event`, `kind`, `id`, `text`, `next`. To run a command without a terminal: `teams set notify COMMAND`.
"""
_EVENTS = ("waiting", "failed", "settled", "any")
_TOGETHER = 0.05
_LOOK_AGAIN = 5.0
_LINES = 500


def _watch(call: Call, once: bool) -> Any:
    team = call.load_team().name
    if once:
        return board.frame(call.store, team, call.problems)
    answer = partial(_answer, call, team) if console.has_person(call, team) else None
    return Stream(_frames(call, team), live=True, output_of=lambda agent: _output(call, team, agent), answer=answer)


def _answer(call: Call, team: str, key: str, text: str) -> str:
    """Take what the person said to a question; what came of it, in a line."""
    try:
        console.require_person(call, team)
        return f"{key}: {console.settle(call.store, questions.get(call.store, team, key), text)}"
    except errors.TeamsError as refused:
        return f"{refused.message}. {refused.hint}"


def _output(call: Call, team: str, agent: str) -> list[Any]:
    """The last that an agent printed; of one that `teams` did not start the last that it did, from the history."""
    session = sessions.find(call.store, team, agent)
    if session:
        return list(logs.tail(call.store, team, agent, session.turns, _LINES))
    return [entry for _, entry in call.store.history(team) if entry.get("actor") == agent][-_LINES:]


def _frames(call: Call, team: str) -> Iterator[dict[str, Any]]:
    """A frame for each time that something changed, with the history's lines of it; the first without."""
    watch = call.store.watch(team)
    try:
        position, _ = _changes(call, team, 0)
        seen = board.frame(call.store, team, [])
        yield seen
        while True:
            watch.wait(_LOOK_AGAIN)
            time.sleep(_TOGETHER)  # changes come in flocks: show them as one
            position, changes = _changes(call, team, position)
            now = board.frame(call.store, team, [])
            if changes or _lasting(now) != _lasting(seen):
                seen = now
                yield {**now, "changes": changes}
    finally:
        watch.close()


def _lasting(found: dict[str, Any]) -> dict[str, Any]:
    """What does not change by time alone, as the estimate of the end does."""
    return {key: value for key, value in found.items() if key != "course"}


def _changes(call: Call, team: str, position: int) -> tuple[int, list[dict[str, Any]]]:
    """What the history says since that position, and the position behind it."""
    found = []
    for behind, entry in call.store.history(team, position):
        position = behind
        found.append(entry)
    return position, found


COMMANDS = table(
    "Inspect",
    Command(
        "watch",
        _watch,
        switch("--once", "Show the present state, and end."),
        doc=_WATCH,
        changes=False,
        at_shell=True,
        words="watching:watched",
        example="watch",
        also="top monitor",
    ),
    Command(
        "on",
        "commands.runners.events:on",
        argument(
            "EVENT", "Something for the person, a failure, the end of all tasks, or any.", choices=_EVENTS, name="event"
        ),
        option(
            "--run", "Run this command, with the events as JSON on standard input.", metavar="COMMAND", name="command"
        ),
        switch("--once", "End after the first."),
        doc=_ON,
        changes=False,
        at_shell=True,
        words="watching:happened",
        example='on failed --run "notify-send teams"',
        also="trigger when notify notification notifications",
    ),
)
