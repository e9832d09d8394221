"""The queue of questions to the human, who is shown one at a time, and the human's earlier answers.

The time of a question begins when it is first in the queue, and again when it is shown. If the human answers one
question, questions that still wait in the queue are not shown. Their askers get the answer, and may ask again.
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


def deferred_to(store: Store, draft: Question) -> list[str]:
    """Return the ids of earlier questions whose answers the asker should read before the human is asked. Return an
    empty list if the human is asked at once. This is so for a request for permission, and in a team where agents may
    ask each other.

    A question is deferred if the agent has not seen an answer of the human before, or if it repeats a question.
    """
    if draft.operation or settings.value(teams.get(store, draft.team_name), "broadcast") != HUMAN:
        return []
    earlier = [question for question in questions.all_of(store, draft.team_name, []) if not question.operation]
    answered = [question.id for question in earlier if question.answered_by_human]
    own = [q for q in earlier if q.from_ == draft.from_ and q.to == [HUMAN] and q.id != draft.id]
    has_seen_answers = any(question.known or question.answered_by_human for question in own)
    is_repeated = any(q.question == draft.question and (q.status == "deferred" or q.answered_by_human) for q in own)
    return answered if is_repeated or not has_seen_answers else []


def in_line(store: Store, team: str) -> list[Question]:
    """Return the questions that wait for the human, oldest first. Questions whose asker is gone come last."""
    waiting = [question for question in questions.all_of(store, team, []) if question.to == [HUMAN] and question.open]
    return sorted(waiting, key=lambda question: question.is_abandoned)


def next_for_human(store: Store, team: str) -> Question | None:
    """Return the question that the human should be shown now; None if no question waits."""
    return next(iter(in_line(store, team)), None)


def gives_way(store: Store, question: Question) -> bool:
    """Return whether nobody waits for this question any more, but somebody waits for another question in the queue."""
    if not question.is_abandoned:
        return False
    first = next_for_human(store, question.team_name)
    return first is not None and not first.is_abandoned


def time_of_last(store: Store, team: str) -> datetime:
    """Return when a new question would become first in the queue, if the human answers none of the questions before
    it.
    """
    ends = [parse_rfc3339(question.expires_at) for question in in_line(store, team) if not question.is_abandoned]
    return max([store.now(), *ends])


def begin_showing(store: Store, question: Question) -> Question:
    """Record that the human is shown the question now, so that its time begins, and return the question. If it need not
    be shown any more, defer it instead.
    """
    question = _deferred(store, question) or question
    if question.shown_at or not question.open:
        return question
    now = store.now()
    end = rfc3339(later(now, question.timeout))

    def change(stored: Question) -> Question:
        is_new = stored.open and not stored.shown_at
        return stored.having(shown_at=rfc3339(now), expires_at=end) if is_new else stored

    _, shown = update(store, question.team_name, QUESTION, question.id, change)
    _reschedule_queue(store, question.team_name, parse_rfc3339(shown.expires_at))
    return shown


def move_up(store: Store, team: str) -> None:
    """After the person has answered a question, defer those waiting questions whose askers are to read the answer
    first, and begin the time limit of the next question.

    If that can't be stored, an asker waits longer, or the person is asked one of these questions.
    """
    try:
        for question in in_line(store, team):
            _deferred(store, question)
        _reschedule_queue(store, team, store.now())
    except errors.TeamsError:
        return


def _deferred(store: Store, question: Question) -> Question | None:
    """Defer the question to the human's earlier answers, and return it. Return None if there is nothing to defer it to,
    or if no process waits for its answer.
    """
    if question.asker_pid is None or question.is_abandoned or not (answered := deferred_to(store, question)):
        return None
    now = rfc3339(store.now())

    def change(stored: Question) -> Question:
        return stored.having(status="deferred", known=answered, closed_at=now) if stored.open else stored

    before, after = update(store, question.team_name, QUESTION, question.id, change)
    if before is not after:
        history.note(store, question.team_name, question.from_, "question deferred", question=question.id)
    return after


def _reschedule_queue(store: Store, team: str, begin: datetime) -> None:
    """Give the waiting questions that were not shown yet their times. The time of the first of them begins at *begin*,
    and the time of each other one when the time of the question before it ends.
    """
    for question in in_line(store, team):
        if question.is_abandoned or question.shown_at:
            continue
        begin = later(begin, question.timeout)
        end = rfc3339(begin)

        def change(stored: Question, end: str = end) -> Question:
            return stored.having(expires_at=end) if stored.open and not stored.shown_at else stored

        if end != question.expires_at:
            update(store, team, QUESTION, question.id, change)


def text_for_person(question: Question) -> str:
    """Return the text of the question for the human, with a remark if the asker is gone."""
    if not question.is_abandoned:
        return question.question
    return f"{question.question}\n\n({question.from_} no longer waits for the answer, but it is kept.)"


def answers_so_far(store: Store, team: str) -> list[dict[str, str]]:
    """Return all questions that the human has answered in this team, with their answers. Requests for permission are
    left out.
    """
    return [
        {"question": question.question, "answer": answer.content}
        for question in questions.all_of(store, team, [])
        if (answer := question.answered_by_human) and not question.operation
    ]
