"""The line of questions that wait for the human, one at a time, and what the human has answered before.

The time of a question runs from when it is the first in the line, and anew from when it is shown. Who waits in the line
while another is answered gets that answer, and the human is not asked, unless the asker asks for something else then.
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
    """The questions whose answers the asker shall look at before the human is asked; none when it may ask.

    Its first question after the human has answered anything is deferred to that, and so is one that it asks again.
    """
    earlier = questions.all_of(store, draft.team_name, [])
    answered = [q.id for q in earlier if q.answered_by_human and not q.operation]
    own = [q for q in earlier if q.from_ == draft.from_ and q.to == [HUMAN] and q.id != draft.id and not q.operation]
    shown = {key for question in own for key in question.known} | {q.id for q in own if q.answered_by_human}
    again = any(q.question == draft.question and (q.status == "deferred" or q.answered_by_human) for q in own)
    return answered if again or not shown else []


def deferred_to(store: Store, draft: Question) -> list[str]:
    """The same in a team where the human is the one who is asked, and there alone; of a request for leave nothing."""
    if draft.operation or settings.value(teams.get(store, draft.team_name), "broadcast") != HUMAN:
        return []
    return answered_before(store, draft)


def in_line(store: Store, team: str) -> list[Question]:
    """The questions that wait for the person, the oldest first; those for which nobody waits any more come last."""
    waiting = [q for q in questions.all_of(store, team, []) if q.to == [HUMAN] and q.open]
    return sorted(waiting, key=lambda question: question.left_alone)


def next_for_human(store: Store, team: str) -> Question | None:
    """The question that is to be put to the person now."""
    return next(iter(in_line(store, team)), None)


def gives_way(store: Store, question: Question) -> bool:
    """Whether nobody waits for this question any more, and somebody for another."""
    first = next_for_human(store, question.team_name) if question.left_alone else None
    return first is not None and not first.left_alone


def time_of_last(store: Store, team: str) -> datetime:
    """When one that comes now is the first in the line, if the person answers none of those before."""
    before = [parse_rfc3339(q.expires_at) for q in in_line(store, team) if not q.left_alone]
    return max([store.now(), *before])


def show(store: Store, question: Question) -> Question:
    """The question, which the person is shown now, with its time from now on; deferred, if it need not be shown."""
    question = _deferred(store, question) or question
    if question.shown_at or not question.open:
        return question
    now = store.now()
    end = rfc3339(later(now, question.timeout))

    def change(found: Question) -> Question:
        return found.having(shown_at=rfc3339(now), expires_at=end) if found.open and not found.shown_at else found

    shown = update(store, question.team_name, QUESTION, question.id, change)[1]
    _line_up(store, question.team_name, parse_rfc3339(shown.expires_at))
    return shown


def move_up(store: Store, team: str) -> None:
    """After the person has settled a question: answer those who wait in the line with it, and let the time of the next
    begin. What can't be written stays as it is: its asker waits longer, or the person is asked.
    """
    try:
        for question in in_line(store, team):
            _deferred(store, question)
        _line_up(store, team, store.now())
    except errors.TeamsError:
        return


def _deferred(store: Store, question: Question) -> Question | None:
    """The question deferred to what the human has answered, if it is to be, and its asker waits."""
    if question.asker_pid is None or question.left_alone or not (answered := deferred_to(store, question)):
        return None
    now = rfc3339(store.now())

    def change(found: Question) -> Question:
        return found.having(status="deferred", known=answered, closed_at=now) if found.open else found

    before, after = update(store, question.team_name, QUESTION, question.id, change)
    if before is not after:
        history.note(store, question.team_name, question.from_, "question deferred", question=question.id)
    return after


def _line_up(store: Store, team: str, begin: datetime) -> None:
    """Let the time of each that waits unseen begin where that of the one before is over, the first at *begin*."""
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
    """The question as the person is shown it."""
    if not question.left_alone:
        return question.question
    return f"{question.question}\n\n({question.from_} no longer waits for the answer, but it is kept.)"


def answers_so_far(store: Store, team: str) -> list[dict[str, str]]:
    """What the human answered in this team so far."""
    found = []
    for question in questions.all_of(store, team, []):
        if (said := question.answered_by_human) and not question.operation:
            found.append({"question": question.question, "answer": said.content})
    return found
