"""Asking the human whether an agent may do what the rules say to ask about; through the same queue as questions."""

from __future__ import annotations

import os

from teams_cli import errors, text
from teams_cli.clock import later, rfc3339
from teams_cli.names import HUMAN
from teams_cli.questions import answering, asking, human, questions
from teams_cli.questions.questions import QUESTION, Question
from teams_cli.store import pace
from teams_cli.store.contract import Store
from teams_cli.teams import history, teams
from teams_cli.teams.permission import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.caller import Caller

_LONGEST = 200
_ROOM = 4000
"""Characters of what a tool is given that the person is shown."""


def ask_human(store: Store, team_name: str, agent: str, operation: str, about: str) -> bool:
    """Put the request to the human, and wait for the answer as long as a question waits; whether it was allowed.

    Raises:
        NeedsHuman: The human said no, in these words.
    """
    wish = f"{agent} wants to {operation}{f' ({about})' if about else ''}."
    said = _put(store, team_name, agent, operation, wish, "command")
    if not answering.allows(said) and (answer := said.answered_by_human):
        words = text.clipped_line(answer.content, _LONGEST)
        raise errors.NeedsHuman(f"{agent} may not {operation}; the human said: {words}", "Do something else meanwhile.")
    return answering.allows(said)


def ask_for_tool(store: Store, team_name: str, caller: Caller | None, tool: str, about: str) -> str | None:
    """Have the human say whether the caller's client may use a tool of its own; why not, None if it may.

    What was once allowed always is not asked again.

    Raises:
        NotAllowed: The caller is no active member.
    """
    standing = require(store, team_name, caller, "ask-others")
    agent, wanted = standing.name, f"use {tool}"[:_LONGEST]
    if standing.team.grants_to(agent, wanted):
        return None
    wish = f"{agent} wants to use {tool}:\n{about}"[:_ROOM]
    said = _put(store, team_name, agent, wanted, wish, "tool")
    if answering.allows(said):
        return None
    answer = said.answered_by_human
    if answer is None:
        return f"nobody allowed it within {said.timeout:g} seconds"
    return f"the person said: {answer.content}" if answer.content else "the person did not allow it"


def _put(store: Store, team_name: str, agent: str, operation: str, wish: str, what: str) -> Question:
    """Ask, and wait for the answer; the question as it is when it is over."""
    team = teams.get(store, team_name)
    seconds = asking.seconds_of(team)
    now = store.now()
    draft = Question(
        team_name=team_name,
        from_=agent,
        question=f"{wish}\nAnswer allow (once), always (for this agent and {what}), or deny.",
        mode="human",
        to=[HUMAN],
        operation=operation,
        created_at=rfc3339(now),
        timeout=seconds,
        expires_at=rfc3339(later(human.time_of_last(store, team_name), seconds)),
    )
    asked, _ = store.create(team_name, QUESTION, None, draft.awaited_by(os.getpid(), store.host))
    history.note(store, team_name, agent, "permission asked", question=asked.id, operation=operation)

    alarm = pace.Alarm()

    def settled() -> bool:
        found = questions.get(store, team_name, asked.id)
        alarm.ring_after(questions.seconds_left(store, found))
        return not found.open

    pace.sleep_until(store, team_name, settled, None, {"team", f"question/{asked.id}"}, alarm)
    return questions.close(store, team_name, asked)
