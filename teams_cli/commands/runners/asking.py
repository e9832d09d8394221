"""Asking others, whose copies answer."""

from __future__ import annotations

from contextlib import suppress

from teams_cli.environment import SANDBOX
from teams_cli.errors import NotAllowed, TeamsError
from teams_cli.names import HUMAN
from teams_cli.questions import asking, questions
from teams_cli.questions.questions import Question
from teams_cli.records.annotations import Any, Depth
from teams_cli.shadows import collector
from teams_cli.store import pace
from teams_cli.teams import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.commands.call import Call


def ask(
    call: Call, question: str, to: list[str], timeout: float | None, no_wait: bool, depth: Depth | None, human: bool
) -> Any:
    """Ask, and wait for the answers unless told not to."""
    store, team = call.store, call.team
    if call.environ.get(SANDBOX) and not human and _asks_agents(call):
        raise NotAllowed(
            "in a client's sandbox no copy of an agent can be made, which needs the network",
            "Use the tool ask_others of the MCP server `team`; or ask the person: --human",
        )
    asked = asking.ask(store, team, call.caller, question, list(to), timeout, depth, human, not no_wait)
    if asked.status == "collecting":
        collector.start(store, asked, dict(call.environ))
    if no_wait:
        shown = {"pending": "pending", "collecting": "pending"}.get(asked.status, asked.status)
        return {**asking.result_of(store, asked), "status": shown}
    return asking.result_of(store, _answered(call, asked))


def _asks_agents(call: Call) -> bool:
    return settings.value(call.load_team(), "broadcast") == "agents"


def _answered(call: Call, asked: Question) -> Question:
    """Wait for the answers, or the end of the time, or until nobody is left that could answer."""

    def settled() -> bool:
        found = questions.get(call.store, call.team, asked.id)
        if not found.open or asked.status == "collecting":  # copies answer for who has left, too
            return not found.open
        team = call.load_team()
        return not any(name == HUMAN or team.member(name) for name in found.waiting_for)

    if asked.open:
        left = questions.seconds_left(call.store, asked)
        topics = {"team", f"question/{asked.id}"}
        try:
            pace.sleep_until(call.store, call.team, settled, left, topics, pace.Alarm(), call.say)
        except BaseException:  # interrupted, or its client left: whoever answers shall know that
            with suppress(TeamsError):
                questions.leave(call.store, call.team, asked)
            raise
        questions.close(call.store, call.team, asked)
    return questions.get(call.store, call.team, asked.id)
