"""Answering questions: once per agent, in time or late; and permissions that the human gives by an answer."""

from __future__ import annotations

import os

from teams_cli import errors, text
from teams_cli.clock import later, rfc3339
from teams_cli.messages import reading
from teams_cli.messages.notices import deliver
from teams_cli.names import HUMAN
from teams_cli.questions import asking, human, questions
from teams_cli.questions import human as human_queue
from teams_cli.questions.questions import QUESTION, Answer, Question
from teams_cli.records.records import Owed, owing
from teams_cli.store import pace
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.teams import history, teams
from teams_cli.teams.permission import require
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.permission import Caller


ALLOW, ALWAYS = "allow", "always"
_TO_USE = "use "
_ASKED = 60
_SAID = 4000
"""The characters of a question and of an answer that a notice shows."""


def answer(store: Store, team_name: str, caller: Caller | None, word: str, content: str) -> Question:
    """Answer a question that another agent asked you. You can answer it only once. An answer after the time limit is
    kept, and marked as late.

    Raises:
        QuestionNotFound: There is no such question.
        NotAllowed: You were not asked.
        WrongState: You answered it differently before.
    """
    caller = require(store, team_name, caller, "answer", word).caller
    text.checked(content, "answer")
    key = questions.get(store, team_name, word).id
    given = Answer(responder=caller.name, content=content, is_human=caller.is_human, at=teams.now(store))
    answered = record(store, team_name, key, given)
    reading.settle_about(store, team_name, caller.name, key)
    return answered


def asked_by(store: Store, team_name: str, caller: Caller | None, word: str) -> Question | None:
    """Return the question that this message to the caller asks, as long as its answer is awaited.

    Raises:
        MessageNotFound: No such message was sent to the caller.
    """
    caller = require(store, team_name, caller, "reply", word).caller
    message = reading.received(store, team_name, caller.name, word)
    if message.type != "question" or not message.about:
        return None
    question = questions.get(store, team_name, message.about)
    return question if question.open and caller.name in question.waiting_for else None


def answer_as_human(store: Store, team: str, key: str, content: str) -> Question:
    """Record the answer of the person at the console."""
    text.checked(content, "answer")
    given = Answer(responder=HUMAN, content=content, is_human=True, at=teams.now(store))
    return record(store, team, key, given)


def skip(store: Store, team_name: str, caller: Caller | None, word: str) -> Question:
    """Skip a question that was asked of the human: it is closed without an answer, and the asker goes on.

    Raises:
        QuestionNotFound: There is no such question.
        NotAllowed: The human was not asked.
        WrongState: The human has answered it, or its time has ended.
    """
    require(store, team_name, caller, "skip-question", word)
    return skip_as_human(store, team_name, questions.get(store, team_name, word).id)


def skip_as_human(store: Store, team: str, key: str) -> Question:
    """Skip the question for the person at the console."""
    given = Answer(responder=HUMAN, content="", is_human=True, at=teams.now(store), skipped=True)
    return record(store, team, key, given)


def record(store: Store, team: str, key: str, given: Answer) -> Question:
    """Add an answer to the question. The last one completes it."""

    def change(stored: Question) -> Question:
        question = questions.in_time(store, stored)
        if given.responder not in question.to:
            raise errors.NotAllowed(
                f"{given.responder} was not asked {question.id}", f"Only {', '.join(question.to)} may answer."
            )
        if _is_said(stored, given):
            return stored
        if given.skipped and not question.open:
            raise errors.WrongState(f"{question.id} has ended ({question.status})", "It can't be skipped.")
        if given.responder not in question.waiting_for:
            raise errors.WrongState(f"{given.responder} answered {question.id} before", "An answer is final.")
        said = given if question.open else given.having(late=True)
        changed = question.having(answers=[*question.answers, said])
        if question.is_unawaited and given.responder != question.from_:
            changed = owing(changed, _told(question, said))
        if changed.open and not changed.waiting_for:
            return changed.having(status="complete", closed_at=given.at)
        return changed.having(status="collecting") if changed.open else changed

    before, question = update(store, team, QUESTION, key, change)
    deliver(store, team, QUESTION, question)
    if given.responder == HUMAN and not question.open:
        human_queue.move_up(store, team)
    if before is not question:
        what = "question skipped" if given.skipped else "question answered"
        history.note(store, team, given.responder, what, question=key)
    if question.operation and _said(question) == ALWAYS:
        _grant(store, team, question.from_, question.operation)
    return question


def _told(question: Question, given: Answer) -> Owed:
    """Return the notice to an asker who did not wait for the answer."""
    who, what = given.responder, f"{question.id} ({text.clipped(question.question, _ASKED)})"
    if given.skipped:
        body = f"{who} skipped {what}"
    else:
        content = text.clipped(given.content, _SAID, f" (all of it: teams show-question {question.id})")
        body = f"{who} {'can not answer' if given.failed else 'answered'} {what}: {content}"
    return Owed(to=question.from_, message=body, uid=f"answered-{question.id}~{who}", by=who, event="question-answered")


def _is_said(question: Question, given: Answer) -> bool:
    """Whether this answer is already recorded, because the command was repeated. A skip does not count as an answer."""
    said = (given.responder, given.content, None)
    return not given.skipped and any((a.responder, a.content, a.skipped) == said for a in question.answers)


def _said(question: Question) -> str:
    said = question.answered_by_human
    return said.content.strip().lower() if said else ""


def allows(question: Question) -> bool:
    """Whether the human allowed the operation for which the question asks permission."""
    return _said(question) in (ALLOW, ALWAYS, "y", "yes")


def _grant(store: Store, team_name: str, agent: str, operation: str) -> None:
    """Allow the operation for this agent from now on."""

    def change(team: Team) -> Team:
        if team.grants_to(agent, operation):
            return team
        return team.having(grants=[*team.grants, teams.Grant(agent=agent, operation=operation)])

    update(store, team_name, teams.TEAM, team_name, change)


_LONGEST = 200
_ROOM = 4000
"""The characters of a tool's input that the person is shown."""


def ask_human(store: Store, team_name: str, agent: str, operation: str, about: str) -> bool:
    """Ask the human for permission, and wait for the answer. Return whether it was given.

    Raises:
        NeedsHuman: The human said no, in these words.
    """
    wish = f"{agent} wants to {operation}{f' ({about})' if about else ''}."
    said = _put(store, team_name, agent, operation, wish, "command")
    if not allows(said) and (answer := said.answered_by_human):
        words = text.clipped_line(answer.content, _LONGEST)
        raise errors.NeedsHuman(f"{agent} may not {operation}; the human said: {words}", "Do something else meanwhile.")
    return allows(said)


def ask_for_tool(store: Store, team_name: str, caller: Caller | None, tool: str, about: str) -> str | None:
    """Ask the human whether the caller's client may use a tool. Return the reason if not, else None.

    A tool that was allowed for good is not asked for again.

    Raises:
        NotAllowed: The caller is no active member.
    """
    standing = require(store, team_name, caller, "ask-others")
    agent, wanted = standing.name, f"{_TO_USE}{tool}"[:_LONGEST]
    if standing.team.grants_to(agent, wanted):
        return None
    wish = f"{agent} wants to use {tool}:\n{about}"[:_ROOM]
    said = _put(store, team_name, agent, wanted, wish, "tool")
    if allows(said):
        return None
    answer = said.answered_by_human
    if answer is None:
        return f"nobody allowed it within {said.timeout:g} seconds"
    return f"the person said: {answer.content}" if answer.content else "the person did not allow it"


def withdraw_for_tools(store: Store, team: str, agent: str) -> None:
    """Close the questions about tools of the agent's client: the turn was cancelled, and nobody waits for an answer."""
    for question in questions.all_of(store, team, []):
        if question.open and question.from_ == agent and (question.operation or "").startswith(_TO_USE):
            questions.close(store, team, question)


def _put(store: Store, team_name: str, agent: str, operation: str, wish: str, what: str) -> Question:
    """Ask, wait for the answer, and return the question once it is over."""
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
