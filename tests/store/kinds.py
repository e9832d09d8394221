"""Small kinds of records, declared as those of the domain, and functions that make messages and teams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from teams_cli.records.records import Record, field
from teams_cli.store.contract import Kind, update

if TYPE_CHECKING:
    from teams_cli.records.types import (
        Count,
        MessageId,
        Name,
        Number,
        Object,
        Seconds,
        TaskId,
        TaskStatus,
        TeamState,
        Text,
    )
    from teams_cli.store.contract import Store


class Member(Record):
    name: Name
    active: bool = True


class Team(Record):
    nested = {"members": Member}  # noqa: RUF012  # as the records of the domain do

    name: Name
    leader: Name
    members: list[Member] = field(default_factory=list)
    state: TeamState = "active"


class Task(Record):
    id: TaskId = ""
    title: Text
    status: TaskStatus = "pending"
    owner: Name | None = None
    count: Count = 0
    weight: Seconds = 0.0
    blocked_by: list[TaskId] = field(default_factory=list)
    notes: Object = field(default_factory=dict)


class Inbox(Record):
    agent: Name
    up_to: Count = 0


class Message(Record):
    id: MessageId = ""
    number: Number = 0
    from_: Name
    to: Name
    message: Text
    recipients: list[Name] | None = None


def _label(task: Task) -> str | None:
    return task.status if task.status in ("pending", "in_progress") else None


TEAM: Kind[Team] = Kind("team", Team, key="name", closes=lambda team: team.state == "closed")
TASK: Kind[Task] = Kind("task", Task, numbered=True, label=_label)
INBOX: Kind[Inbox] = Kind("inbox", Inbox, key="agent")
MESSAGE: Kind[Message] = Kind("message", Message, prefix="msg", numbered=True)


def make_team(store: Store, name: str = "alpha") -> None:
    store.create(name, TEAM, name, Team(name=name, leader="ann"))


def chain(store: Store, *titles: str, team: str = "alpha") -> list[Task]:
    """Create tasks at once, each blocked by the one before."""

    def make(keys: list[str]) -> list[Task]:
        behind = [[], *([key] for key in keys)]
        return [Task(title=title, blocked_by=before) for title, before in zip(titles, behind, strict=False)]

    return store.create_all(team, TASK, len(titles), make)


def close_team(store: Store, state: str = "closed") -> None:
    """Close the team alpha, or give it another state."""
    update(store, "alpha", TEAM.even_in_closed_team, "alpha", lambda team: team.having(state=state))


def send(store: Store, to: str, text: str, uid: str | None = None, team: str = "alpha") -> Message:
    """Append a message to one agent; return the stored message."""
    return store.append(team, MESSAGE, [to], Message(from_="ann", to=to, message=text), uid)[0]


def broadcast(store: Store, to: list[str], text: str, uid: str | None = None, team: str = "alpha") -> Message:
    """Append a message to several agents; return the stored message."""
    draft = Message(from_="ann", to="all", message=text, recipients=to)
    return store.append(team, MESSAGE, to, draft, uid)[0]


def texts(store: Store, agent: str | None, after: int = 0, limit: int = 0, team: str = "alpha") -> list[str]:
    """Return the texts that the agent reads. Nothing may be damaged."""
    problems: list[Exception] = []
    found = [message.message for message in store.read(team, MESSAGE, agent, after, problems, limit)]
    assert problems == []
    return found


def titles(store: Store, team: str = "alpha") -> dict[str, str]:
    """Return the titles of all tasks by id, in order. Nothing may be damaged."""
    problems: list[Exception] = []
    found = {task.id: task.title for task, _ in store.scan(team, TASK, problems)}
    assert problems == []
    return found


def seen(store: Store) -> dict[str, Any]:
    """Return everything that the store has of two teams. Nothing may be damaged."""
    problems: list[Exception] = []
    found: dict[str, Any] = {}
    for team in ("alpha", "beta"):
        list(store.history(team))  # derived: it may lose entries, but reading it works
        found[team] = {
            "team": store.get(team, TEAM, team)[0].to_json() if team in store.teams() else None,
            "tasks": [task.to_json() for task, _ in store.scan(team, TASK, problems)],
            "inboxes": [inbox.to_json() for inbox, _ in store.scan(team, INBOX, problems)],
            "messages": [message.to_json() for message in store.read(team, MESSAGE, None, 0, problems)],
        }
    assert problems == []
    return found


CHANGES = {
    "tasks/alpha": lambda store: store.create("alpha", TASK, None, Task(title="t")),
    "tasks/alpha/": lambda store: update(store, "alpha", TASK, "task-1", lambda task: task.having(title="new")),
    "teams/alpha/messages": lambda store: send(store, "bob", "hello"),
    "teams/alpha/inboxes": lambda store: store.create("alpha", INBOX, "eve", Inbox(agent="eve")),
    "teams/alpha": lambda store: update(store, "alpha", TEAM, "alpha", lambda team: team.having(leader="bob")),
    "teams": lambda store: make_team(store, f"beta{len(store.teams())}"),
}
"""A change of each place of the team alpha, by the directory of the place."""
