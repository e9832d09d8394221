"""Recording the answers to questions, and asking the human for permission. A request for permission is stored as a
question.
"""

from __future__ import annotations

import os

from teams_cli import errors, text
from teams_cli.clock import later, rfc3339
from teams_cli.messages import reading
from teams_cli.messages.notices import close_requests, deliver
from teams_cli.names import HUMAN
from teams_cli.questions import asking, questions
from teams_cli.questions import human as human_queue
from teams_cli.questions.questions import QUESTION, Answer, Question
from teams_cli.records.records import Owed, owing
from teams_cli.store import pace
from teams_cli.store.contract import Store, update
from teams_cli.teams import history, teams
from teams_cli.teams.permission import require
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.permission import Caller


ALLOW, ALWAYS = "allow", "always"
_TO_USE = "use "
"""The beginning of the operation of a question about a tool. The name of the tool follows."""
_SHOWN_OF_QUESTION, _SHOWN_OF_ANSWER = 60, 4000
"""The maximum number of characters of a question, and of an answer, that a notice shows."""
_SHOWN_OF_REFUSAL = 200
"""The maximum number of characters of the human's refusal that the agent is shown."""
_LONGEST_OPERATION = 200
_LONGEST_WISH = 4000
"""The maximum number of characters of an agent's wish to use a tool that the human is shown."""


def answer(store: Store, team_name: str, caller: Caller | None, ref: str, content: str) -> Question:
    """Answer a question that another agent asked you. You can answer a question only once. An answer after the time
    limit is kept, and marked as late.

    Raises:
        QuestionNotFound: There is no such question.
        NotAllowed: You were not asked.
        WrongState: You have already given a different answer.
    """
    caller = require(store, team_name, caller, "answer", ref).caller
    text.checked(content, "answer")
    key = questions.get(store, team_name, ref).id
    response = Answer(responder=caller.name, content=content, is_human=caller.is_human, at=teams.now(store))
    answered = record(store, team_name, key, response)
    close_requests(store, team_name, caller.name, key)
    return answered


def asked_by(store: Store, team_name: str, caller: Caller | None, message_ref: str) -> Question | None:
    """Return the open question that the message asks the caller. Return None if the message asks no question, or if the
    question no longer waits for the caller's answer.

    Raises:
        MessageNotFound: No such message was sent to the caller.
    """
    caller = require(store, team_name, caller, "reply", message_ref).caller
    message = reading.received(store, team_name, caller.name, message_ref)
    if message.type != "question" or not message.about:
        return None
    question = questions.get(store, team_name, message.about)
    return question if question.open and caller.name in question.waiting_for else None


def answer_as_human(store: Store, team: str, key: str, content: str) -> Question:
    """Record an answer that the human gave at the console; "" skips the question."""
    if content:
        text.checked(content, "answer")
    response = Answer(responder=HUMAN, content=content, is_human=True, at=teams.now(store), skipped=not content or None)
    return record(store, team, key, response)


def skip(store: Store, team_name: str, caller: Caller | None, ref: str) -> Question:
    """Skip a question that the human was asked: close it without an answer, so that the asking agent continues.

    Raises:
        QuestionNotFound: There is no such question.
        NotAllowed: The human was not asked.
        WrongState: The human has answered the question, or its time limit has passed.
    """
    require(store, team_name, caller, "skip-question", ref)
    return answer_as_human(store, team_name, questions.get(store, team_name, ref).id, "")


def record(store: Store, team: str, key: str, response: Answer) -> Question:
    """Add the answer *response* to the question, and return the question. With the last missing answer, the
    question is complete. If the human allows an operation for good, this is recorded for the agent that asked.

    Raises:
        NotAllowed: The responder was not asked.
        WrongState: The responder answered differently before, or skips a question that has ended.
    """
    responder = response.responder

    def with_response(stored: Question) -> Question:
        question = questions.in_time(store, stored)
        if responder not in question.to:
            only = f"Only {', '.join(question.to)} may answer."
            raise errors.NotAllowed(f"{responder} was not asked {question.id}", only)
        is_repeated = any(  # an answer, not a skip
            earlier.responder == responder and earlier.content == response.content and earlier.skipped is None
            for earlier in question.answers
        )
        if is_repeated and not response.skipped:
            return stored
        if response.skipped and not question.open:
            raise errors.WrongState(f"{question.id} has ended ({question.status})", "It can't be skipped.")
        if responder not in question.waiting_for:
            raise errors.WrongState(f"{responder} answered {question.id} before", "An answer is final.")
        accepted = response if question.open else response.having(late=True)
        changed = question.having(answers=[*question.answers, accepted])
        if question.is_unawaited and responder != question.from_:
            changed = owing(changed, _answer_notice(question, accepted))
        if not changed.open:
            return changed
        if changed.waiting_for:
            return changed.having(status="collecting")
        return changed.having(status="complete", closed_at=response.at)

    before, question = update(store, team, QUESTION, key, with_response)
    deliver(store, team, QUESTION, question)
    if responder == HUMAN and not question.open:
        human_queue.move_up(store, team)
    if before is not question:
        event = "question skipped" if response.skipped else "question answered"
        history.note(store, team, responder, event, question=key)
    if question.operation and _human_choice(question) == ALWAYS:
        _grant(store, team, question.from_, question.operation)
    return question


def _answer_notice(question: Question, response: Answer) -> Owed:
    """Return the notice to the asker about the answer *response*. It is for an asker that does not wait for answers."""
    responder = response.responder
    subject = f"{question.id} ({text.clipped(question.question, _SHOWN_OF_QUESTION)})"
    if response.skipped:
        body = f"{responder} skipped {subject}"
    else:
        if_cut = f" (all of it: teams show-question {question.id})"
        content = text.clipped(response.content, _SHOWN_OF_ANSWER, if_cut)
        body = f"{responder} {'can not answer' if response.failed else 'answered'} {subject}: {content}"
    return Owed(
        to=question.from_,
        message=body,
        uid=f"answered-{question.id}~{responder}",
        by=responder,
        event="question-answered",
    )


def _human_choice(question: Question) -> str:
    """Return the human's answer in lower case, to compare it with choices such as `allow`; "" without an answer."""
    answer = question.answered_by_human
    return answer.content.strip().lower() if answer else ""


def allows(question: Question) -> bool:
    """Return whether the human's answer allows the operation that the question asks permission for."""
    return _human_choice(question) in (ALLOW, ALWAYS, "y", "yes")


def _grant(store: Store, team_name: str, agent: str, operation: str) -> None:
    """Record in the team that the agent may do the operation without asking the human again."""

    def with_grant(team: Team) -> Team:
        if team.grants_to(agent, operation):
            return team
        return team.having(grants=[*team.grants, teams.Grant(agent=agent, operation=operation)])

    update(store, team_name, teams.TEAM, team_name, with_grant)


def ask_human(store: Store, team_name: str, agent: str, operation: str, about: str) -> bool:
    """Ask the human whether the agent may do the operation, and wait for the answer. Return False if nobody answers in
    time. *about* names the object of the operation, or is "".

    Raises:
        NeedsHuman: The human refused. The error has the human's words.
    """
    about_in_brackets = f" ({about})" if about else ""
    wish = f"{agent} wants to {operation}{about_in_brackets}."
    question = _ask_permission(store, team_name, agent, operation, wish, "command")
    if allows(question):
        return True
    if answer := question.answered_by_human:
        words = text.clipped_line(answer.content, _SHOWN_OF_REFUSAL)
        raise errors.NeedsHuman(f"{agent} may not {operation}; the human said: {words}", "Do something else meanwhile.")
    return False


def ask_for_tool(store: Store, team_name: str, caller: Caller | None, tool: str, about: str) -> str | None:
    """Ask the human whether the caller's client may use a tool. Return None if it may, else the reason why it may not.
    *about* says what the client would do with the tool.

    The human is not asked again about a tool that was allowed to this agent for good.

    Raises:
        NotAllowed: The caller is no active member.
    """
    standing = require(store, team_name, caller, "ask-others")
    agent, operation = standing.name, f"{_TO_USE}{tool}"[:_LONGEST_OPERATION]
    if standing.team.grants_to(agent, operation):
        return None
    wish = f"{agent} wants to use {tool}:\n{about}"[:_LONGEST_WISH]
    question = _ask_permission(store, team_name, agent, operation, wish, "tool")
    if allows(question):
        return None
    answer = question.answered_by_human
    if answer is None:
        return f"nobody allowed it within {question.timeout:g} seconds"
    return f"the person said: {answer.content}" if answer.content else "the person did not allow it"


def withdraw_for_tools(store: Store, team: str, agent: str) -> None:
    """Close the agent's open questions about tools: its client cancelled the turn, so nobody waits for answers."""
    for question in questions.all_of(store, team, []):
        if question.open and question.from_ == agent and (question.operation or "").startswith(_TO_USE):
            questions.close(store, team, question)


def _ask_permission(store: Store, team_name: str, agent: str, operation: str, wish: str, kind: str) -> Question:
    """Ask the human for permission, wait for the answer, and return the closed question. *wish* says what the agent
    wants to do. *kind* is what `always` allows for good: "command" or "tool".

    Raises:
        WrongState: The team is closed, or was closed before the human answered.
    """
    seconds = asking.seconds_of(teams.get(store, team_name))
    draft = Question(
        team_name=team_name,
        from_=agent,
        question=f"{wish}\nAnswer allow (once), always (for this agent and {kind}), or deny.",
        mode="human",
        to=[HUMAN],
        operation=operation,
        created_at=rfc3339(store.now()),
        timeout=seconds,
        expires_at=rfc3339(later(human_queue.time_of_last(store, team_name), seconds)),
    )
    asked, _ = store.create(team_name, QUESTION, None, draft.awaited_by(os.getpid(), store.host))
    history.note(store, team_name, agent, "permission asked", question=asked.id, operation=operation)
    alarm = pace.Alarm()

    def is_settled() -> bool:
        question = questions.get(store, team_name, asked.id)
        alarm.ring_after(questions.seconds_left(store, question))
        if question.open and teams.get(store, team_name).state == "closed":  # nobody can answer any more
            questions.stop_waiting(store, team_name, asked)
            raise history.of_closed(store, team_name)
        return not question.open

    pace.sleep_until(store, team_name, is_settled, None, {"team", f"question/{asked.id}"}, alarm)
    return questions.close(store, team_name, asked)
