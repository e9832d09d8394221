"""The queue of questions to the human, who is shown one question at a time, and the human's earlier answers.

The time limit of a question starts when it becomes first in the queue, and starts again when it is shown. If the human
answers a question, other questions in the queue may be deferred: they are closed without being shown, and their askers
get the human's answers so far, and may ask again.
"""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import later, parse_rfc3339, rfc3339
from teams_cli.names import HUMAN
from teams_cli.questions import questions
from teams_cli.questions.questions import QUESTION, Question
from teams_cli.store.contract import Store, update
from teams_cli.teams import history, settings, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime


def deferred_to(store: Store, draft: Question) -> list[str]:
    """Return the ids of earlier questions whose answers the asker should read before the human is asked. If the list is
    empty, the human is asked at once.

    The asker should read them in two cases: it has not seen any answer of the human yet, or it asks a question a second
    time. The list is always empty for a request for permission, and in a team whose agents may ask each other.
    """
    if draft.operation or settings.value(teams.get(store, draft.team_name), "broadcast") != HUMAN:
        return []
    earlier = [question for question in questions.all_of(store, draft.team_name, []) if not question.operation]
    own = [q for q in earlier if q.from_ == draft.from_ and q.to == [HUMAN] and q.id != draft.id]
    has_seen_answers = any(question.known or question.answered_by_human for question in own)
    is_repeated = any(q.question == draft.question and (q.status == "deferred" or q.answered_by_human) for q in own)
    if has_seen_answers and not is_repeated:
        return []
    return [question.id for question in earlier if question.answered_by_human]


def in_line(store: Store, team: str) -> list[Question]:
    """Return the open questions to the human, oldest first. Questions whose askers no longer wait come last."""
    waiting = [question for question in questions.all_of(store, team, []) if question.to == [HUMAN] and question.open]
    return sorted(waiting, key=lambda question: question.is_abandoned)


def next_for_human(store: Store, team: str) -> Question | None:
    """Return the question that the human should be shown now; None if no question waits."""
    return next(iter(in_line(store, team)), None)


def gives_way(store: Store, question: Question) -> bool:
    """Return whether another question should be shown instead, because nobody waits for the answer to this one any
    more, but somebody waits for the answer to another.
    """
    if not question.is_abandoned:
        return False
    first = next_for_human(store, question.team_name)
    return first is not None and not first.is_abandoned


def time_of_last(store: Store, team: str) -> datetime:
    """Return the time at which a new question becomes first in the queue if the human answers none of the others."""
    ends = [parse_rfc3339(question.expires_at) for question in in_line(store, team) if not question.is_abandoned]
    return max([store.now(), *ends])


def begin_showing(store: Store, question: Question) -> Question:
    """Record that the human is shown the question now, so that its time begins, and return the question. But if the
    agent that asked it should first read earlier answers of the human, the question is closed as deferred instead.
    """
    question = _defer(store, question) or question
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
    """Move the queue up after the human has answered a question. Agents in the queue may have to read this answer
    before the human is asked for them: their questions are closed as deferred. The time of the next question begins.

    If this can't be stored, it has only two effects: agents wait longer, and the human may be asked more than
    necessary.
    """
    try:
        for question in in_line(store, team):
            _defer(store, question)
        _reschedule_queue(store, team, store.now())
    except errors.TeamsError:
        return


def _defer(store: Store, question: Question) -> Question | None:
    """Close the question as deferred, and return it. Do nothing and return None if the asker need not read earlier
    answers of the human, or if none of its processes waits for the answer.
    """
    if question.asker_pid is None or question.is_abandoned:
        return None
    answered = deferred_to(store, question)
    if not answered:
        return None
    now = rfc3339(store.now())

    def change(stored: Question) -> Question:
        return stored.having(status="deferred", known=answered, closed_at=now) if stored.open else stored

    before, after = update(store, question.team_name, QUESTION, question.id, change)
    if before is not after:
        history.note(store, question.team_name, question.from_, "question deferred", question=question.id)
    return after


def _reschedule_queue(store: Store, team: str, begin: datetime) -> None:
    """Set the ends of the waiting questions that were not shown yet. Each gets its full time after the one before it,
    the first from *begin* on.
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
    """Return the text of the question for the human. If nobody waits for the answer any more, a remark says so."""
    if not question.is_abandoned:
        return question.question
    return f"{question.question}\n\n({question.from_} no longer waits for the answer, but it is kept.)"


def answers_so_far(store: Store, team: str) -> list[dict[str, str]]:
    """Return the questions and answers of the human in this team as JSON, without requests for permission."""
    documents = []
    for question in questions.all_of(store, team, []):
        answer = question.answered_by_human
        if answer and not question.operation:
            documents.append({"question": question.question, "answer": answer.content})
    return documents
