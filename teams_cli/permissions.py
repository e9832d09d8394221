"""Asking the human whether an agent may do what the rules say to ask about; through the same queue as questions."""

from __future__ import annotations

from datetime import timedelta

from teams_cli import answering, conditions, history, questions, settings, teams
from teams_cli.clock import rfc3339, seconds_since
from teams_cli.names import HUMAN
from teams_cli.questions import QUESTION, Question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.store.contract import Store


def ask_human(store: Store, team_name: str, agent: str, operation: str, about: str) -> bool:
    """Put the request to the human, and wait for the answer as long as a question waits; whether it was allowed."""
    team = teams.load(store, team_name)
    seconds = float(settings.value(team, "broadcast_timeout"))
    wish = f"{agent} wants to {operation}{f' ({about})' if about else ''}."
    now = store.now()
    draft = Question(
        team_name=team_name,
        from_=agent,
        question=f"{wish}\nAnswer allow (once), always (for this agent and command), or deny.",
        mode="human",
        to=[HUMAN],
        operation=operation,
        created_at=rfc3339(now),
        timeout=seconds,
        expires_at=rfc3339(now + timedelta(seconds=seconds)),
    )
    asked, _ = store.create(team_name, QUESTION, None, draft)
    history.note(store, team_name, agent, "permission asked", question=asked.id, operation=operation)

    def settled() -> bool:
        return not questions.load(store, team_name, asked.id).open

    left = max(0.0, -seconds_since(asked.expires_at, store.now()))
    conditions.sleep_until(store, team_name, settled, left)
    closed = questions.close(store, team_name, asked)
    return answering.allows(closed)
