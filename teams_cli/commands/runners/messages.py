"""Showing who is there and how far messages got, waiting for mail, and replying."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.agents import ending, waking
from teams_cli.messages import reading
from teams_cli.messages.reading import Reading, Selection
from teams_cli.names import HUMAN, number_of
from teams_cli.questions import answering
from teams_cli.questions.questions import Question
from teams_cli.store import pace
from teams_cli.tasks import overviews
from teams_cli.teams.permission import require
from teams_cli.teams.teams import Team
from teams_cli.views import agents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call


def show(call: Call, message: str) -> Any:
    """Show how far a message got."""
    team = require(call.store, call.team, call.caller, "read-messages").team
    return agents.to_document(call.store, call.team, f"msg-{number_of(message, 'msg')}", _eyes(call, team))


def sent(call: Call, to: str | None, open: bool, limit: int) -> Any:
    """The caller's own messages, with how far they got."""
    if limit < 1:
        raise errors.WrongUsage(f"{limit} is not a valid limit", "Give a number from 1.")
    at = require(call.store, call.team, call.caller, "read-messages")
    return agents.sent(call.store, at.team, at.caller.name, to or "", open, limit)


def _eyes(call: Call, team: Team) -> str:
    """Whose messages the caller may see; empty for all."""
    return "" if call.agent in (HUMAN, team.leader) else call.agent


def list_agents(call: Call) -> Any:
    """List the members."""
    team = call.load_team()
    rows = agents.agent_rows(call.store, team, call.problems)
    if any("session" not in row and _is_started(team, row["name"]) for row in rows):
        rows = agents.agent_rows(call.store, _cleared(call, team), call.problems)
    return {"self": call.caller.name if call.caller else None, "agents": rows}


def _is_started(team: Team, name: str) -> bool:
    member = team.find(name)
    return member is not None and member.started_by is not None


def _cleared(call: Call, team: Team) -> Team:
    """The team without those that somebody was about to start when it was killed, if that can be written."""
    from teams_cli.agents import starting

    try:
        starting.clear_away(call.store, team)
    except errors.TeamsError:
        return team
    return call.load_team()


def attend(call: Call) -> Any:
    """What the next model call has to know."""
    team = call.team
    return waking.payload(call.store, team, call.known, call.once_told)


def reply(call: Call, message: str, text: str) -> Any:
    """Answer a message; who replies to the message of a question has answered it."""
    question = answering.asked_by(call.store, call.team, call.caller, message)
    if question:
        return _answer(call, question, message, text)
    answer, original = reading.reply(call.store, call.team, call.caller, message, text, call.problems)
    _go_on(call)
    return {**answer.to_json(), "repliedTo": original.to_json()}


def _go_on(call: Call) -> None:
    """Say how a member goes on that has no task: with one, it knows."""
    from teams_cli.tasks import choosing

    def say() -> None:
        if choosing.is_free(call.store, call.load_team(), call.known):
            call.say_what_follows()

    call.try_to(say)


def _answer(call: Call, question: Question, word: str, text: str) -> dict[str, Any]:
    """Who replies to the message of a question has answered it; told in the form of a reply."""
    original = reading.received(call.store, call.team, call.agent, word)
    answered = answering.answer(call.store, call.team, call.caller, question.id, text)
    said = next(answer for answer in answered.answers if answer.responder == call.agent)
    _go_on(call)
    return {
        "id": answered.id,
        "from": call.agent,
        "to": answered.from_,
        "message": text,
        "timestamp": said.at,
        "type": "answer",
        "replyTo": original.id,
        "question": answered.id,
        "status": answered.status,
        "repliedTo": original.to_json(),
    }


def wait_and_read(call: Call, selection: Selection, peek: bool, wait: float) -> Reading:
    """Block until there is something new, and read it."""
    alarm = pace.Alarm()

    def sleep(ready: Any, timeout: float) -> bool:
        def look() -> bool:
            started = ending.children(call.store, call.team, call.agent)  # the end of one that was killed is news too
            ending.set_alarm(call.store, call.team, started, alarm)
            if ready():
                return True
            overviews.refuse_closed(call.store, call.load_team())
            return False

        return pace.sleep_until(
            call.store, call.team, look, timeout, ["team", f"message/{call.agent}"], alarm, call.say
        )

    once_told = None if peek else call.once_told
    return reading.wait_and_read(call.store, call.team, call.caller, selection, call.problems, wait, sleep, once_told)
