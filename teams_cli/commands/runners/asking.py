"""Asking others, whose copies answer."""

from __future__ import annotations

from contextlib import suppress

from teams_cli import errors, processes
from teams_cli.agents import answering as collector
from teams_cli.environment import SANDBOX
from teams_cli.names import HUMAN
from teams_cli.questions import asking, questions
from teams_cli.questions.questions import Question
from teams_cli.store import pace
from teams_cli.teams import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.records.types import Depth

_LOOK_AGAIN = 10.0
"""Seconds after which who waits for an answer looks for it though nothing woke it: few wait so, and not for long."""
_TRIES = 3
"""How often the process that collects is started, if it is killed."""


def ask(
    call: Call, question: str, to: list[str], timeout: float | None, no_wait: bool, depth: Depth | None, human: bool
) -> Any:
    """Ask, and wait for the answers unless told not to."""
    store, team = call.store, call.team
    if call.environ.get(SANDBOX) and not human and _asks_agents(call):
        raise errors.NotAllowed(
            "a client's sandbox has no network, so no agent can be forked",
            "Use the tool ask_others of the MCP server `team`; or ask the person: --human",
        )
    asked = asking.ask(store, team, call.caller, question, list(to), timeout, depth, human, not no_wait)
    collecting = _Collecting(call)
    if asked.status == "collecting":
        collecting.start(asked)
    if no_wait:
        shown = {"pending": "pending", "collecting": "pending"}.get(asked.status, asked.status)
        return {**asking.result_of(store, asked), "status": shown}
    return asking.result_of(store, _answered(call, asked, collecting))


def _asks_agents(call: Call) -> bool:
    return settings.value(call.load_team(), "broadcast") == "agents"


class _Collecting:
    """The process that collects the answers, as who waits for them looks after it."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._left = _TRIES
        self._process: tuple[int, str, str] | None = None

    def start(self, question: Question) -> None:
        """Start it, if one is needed for those of whom an answer is still to come."""
        store = self._call.store
        self._left -= 1
        pid = collector.start(store, question, dict(self._call.environ))
        self._process = (pid, processes.process_started(pid), processes.pid_scope(store.host)) if pid else None

    def look_after(self, question: Question, alarm: pace.Alarm) -> None:
        """Start it again where it was killed, as for want of memory; the alarm rings when it ends."""
        if self._process is None:
            return
        if not self.goes_on and self._left and collector.is_cut_off(self._call.store, question):
            with suppress(OSError, errors.TeamsError):  # others may answer all the same
                self.start(question)
        if self._process:
            alarm.ring_at_end_of(*self._process)

    @property
    def goes_on(self) -> bool:
        """Whether there is one, so far as can be known."""
        return self._process is not None and processes.has_ended(*self._process) is not True


def _answered(call: Call, asked: Question, collecting: _Collecting) -> Question:
    """Wait for the answers, or the end of the time, or until nobody is left that could answer."""
    alarm = pace.Alarm()

    def settled() -> bool:
        goes_on = collecting.goes_on  # first: what it writes at its end is found then
        found = questions.get(call.store, call.team, asked.id)
        alarm.ring_in(_LOOK_AGAIN)
        alarm.ring_after(questions.seconds_left(call.store, found))
        if not found.open:
            return True
        collecting.look_after(found, alarm)
        if goes_on or collecting.goes_on:  # copies answer for who has left, too
            return False
        team = call.load_team()
        return not any(name == HUMAN or team.member(name) for name in found.waiting_for)

    if asked.open:
        topics = {"team", f"question/{asked.id}"}
        try:
            pace.sleep_until(call.store, call.team, settled, None, topics, alarm, call.say)
        except BaseException:  # interrupted, or its client left: whoever answers shall know that
            with suppress(errors.TeamsError):
                questions.leave(call.store, call.team, asked)
            raise
        questions.close(call.store, call.team, asked)
    return questions.get(call.store, call.team, asked.id)
