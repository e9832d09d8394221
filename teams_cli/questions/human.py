"""The queue of questions to the human, one at a time, and the human's earlier answers.

The time of a question runs from when it is first in the queue, and again from when it is shown. An asker who waits in
the queue while another question is answered gets that answer and is not asked about, unless it then asks for something
else.
"""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import later, parse_rfc3339, rfc3339
from teams_cli.names import HUMAN
from teams_cli.questions import questions
from teams_cli.questions.questions import QUESTION, Question
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.teams import history, settings, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime


def answered_before(store: Store, draft: Question) -> list[str]:
    """Return the questions whose answers the asker should read before the human is asked; none if it may ask.

    An agent's first question after the human answered anything is deferred to those answers, and so is one that it
    repeats.
    """
    earlier = questions.all_of(store, draft.team_name, [])
    answered = [q.id for q in earlier if q.answered_by_human and not q.operation]
    own = [q for q in earlier if q.from_ == draft.from_ and q.to == [HUMAN] and q.id != draft.id and not q.operation]
    shown = {key for question in own for key in question.known} | {q.id for q in own if q.answered_by_human}
    again = any(q.question == draft.question and (q.status == "deferred" or q.answered_by_human) for q in own)
    return answered if again or not shown else []


def deferred_to(store: Store, draft: Question) -> list[str]:
    """Return the same in a team where only the human is asked; none for a request for permission."""
    if draft.operation or settings.value(teams.get(store, draft.team_name), "broadcast") != HUMAN:
        return []
    return answered_before(store, draft)


def in_line(store: Store, team: str) -> list[Question]:
    """Return the questions that wait for the person, oldest first. Questions whose asker is gone come last."""
    waiting = [q for q in questions.all_of(store, team, []) if q.to == [HUMAN] and q.open]
    return sorted(waiting, key=lambda question: question.left_alone)


def next_for_human(store: Store, team: str) -> Question | None:
    """Return the question that the person is to be shown now."""
    return next(iter(in_line(store, team)), None)


def gives_way(store: Store, question: Question) -> bool:
    """Whether nobody waits for this question any more, and somebody for another."""
    first = next_for_human(store, question.team_name) if question.left_alone else None
    return first is not None and not first.left_alone


def time_of_last(store: Store, team: str) -> datetime:
    """Return when a new question becomes first in the queue, if the person answers none of those before it."""
    before = [parse_rfc3339(q.expires_at) for q in in_line(store, team) if not q.left_alone]
    return max([store.now(), *before])


def begin_showing(store: Store, question: Question) -> Question:
    """Record that the person is shown the question now, so that its time begins, and return it. A question that need
    not be shown is deferred instead.
    """
    question = _deferred(store, question) or question
    if question.shown_at or not question.open:
        return question
    now = store.now()
    end = rfc3339(later(now, question.timeout))

    def change(found: Question) -> Question:
        return found.having(shown_at=rfc3339(now), expires_at=end) if found.open and not found.shown_at else found

    _, shown = update(store, question.team_name, QUESTION, question.id, change)
    _reschedule_queue(store, question.team_name, parse_rfc3339(shown.expires_at))
    return shown


def move_up(store: Store, team: str) -> None:
    """After the person has settled a question: answer those that wait in the queue with it, and begin the time of the
    next.

    If a write fails, its asker waits longer, or the person is asked.
    """
    try:
        for question in in_line(store, team):
            _deferred(store, question)
        _reschedule_queue(store, team, store.now())
    except errors.TeamsError:
        return


def _deferred(store: Store, question: Question) -> Question | None:
    """Return the question deferred to the human's earlier answers, if it is to be and its asker waits."""
    if question.asker_pid is None or question.left_alone or not (answered := deferred_to(store, question)):
        return None
    now = rfc3339(store.now())

    def change(found: Question) -> Question:
        return found.having(status="deferred", known=answered, closed_at=now) if found.open else found

    before, after = update(store, question.team_name, QUESTION, question.id, change)
    if before is not after:
        history.note(store, question.team_name, question.from_, "question deferred", question=question.id)
    return after


def _reschedule_queue(store: Store, team: str, begin: datetime) -> None:
    """Have the time of each waiting question begin when that of the question before it ends, the first at *begin*."""
    for question in in_line(store, team):
        if question.left_alone or question.shown_at:
            continue
        begin = later(begin, question.timeout)
        end = rfc3339(begin)

        def change(found: Question, end: str = end) -> Question:
            return found.having(expires_at=end) if found.open and not found.shown_at else found

        if end != question.expires_at:
            update(store, team, QUESTION, question.id, change)


def put(question: Question) -> str:
    """Return the question as the person is shown it."""
    if not question.left_alone:
        return question.question
    return f"{question.question}\n\n({question.from_} no longer waits for the answer, but it is kept.)"


def answers_so_far(store: Store, team: str) -> list[dict[str, str]]:
    """Return what the human has answered in this team."""
    found = []
    for question in questions.all_of(store, team, []):
        if (said := question.answered_by_human) and not question.operation:
            found.append({"question": question.question, "answer": said.content})
    return found
