"""The questions that wait for the human, one at a time, and what the human has answered before."""

from __future__ import annotations

from teams_cli.names import HUMAN
from teams_cli.questions import questions
from teams_cli.questions.questions import QUESTION, Question
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.teams import teams


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


def defer(store: Store, team: str, question: Question) -> Question:
    """The question as it is now: one that waits for the human is deferred once the human answered another's."""
    if question.status != "pending" or question.to != [HUMAN] or question.operation:
        return question
    answered = answered_before(store, question)
    if not answered:
        return question

    def change(found: Question) -> Question:
        if found.status != "pending":
            return found
        return found.having(status="deferred", known=answered, closed_at=teams.now(store))

    return update(store, team, QUESTION.also_closed, question.id, change)[1]


def next_for_human(store: Store, team: str) -> Question | None:
    """The oldest question that waits for the person."""
    for question in questions.all_of(store, team, []):
        if question.to == [HUMAN] and question.open:
            question = defer(store, team, question)
            if question.open:
                return question
    return None


def answers_so_far(store: Store, team: str) -> list[dict[str, str]]:
    """What the human answered in this team so far."""
    found = []
    for question in questions.all_of(store, team, []):
        if (said := question.answered_by_human) and not question.operation:
            found.append({"question": question.question, "answer": said.content})
    return found
