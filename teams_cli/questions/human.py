"""The questions that wait for the human, one at a time, and what the human has answered before."""

from __future__ import annotations

from teams_cli.names import HUMAN
from teams_cli.questions import questions
from teams_cli.questions.questions import Question
from teams_cli.store.contract import Store


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


def next_for_human(store: Store, team: str) -> Question | None:
    """The oldest question that waits for the person; those for which nobody waits any more come last."""
    waiting = [q for q in questions.all_of(store, team, []) if q.to == [HUMAN] and q.open]
    return min(waiting, key=lambda question: question.left_alone, default=None)


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
