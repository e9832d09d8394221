"""Requests to a member to end, as they are kept."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.names import id_of
from teams_cli.records.owed import Owed
from teams_cli.records.records import Record
from teams_cli.store.contract import Kind, Store
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from teams_cli.records.types import Name, ShutdownId, ShutdownStatus, Text, Time


class ShutdownNotFound(errors.NotFound):
    """The team has no such shutdown request."""


class Shutdown(Record):
    """One request to end. Approved, its target is stopped: the team's file says so, and this is its answer."""

    nested = {"owed": Owed}  # noqa: RUF012

    id: ShutdownId = ""
    team_name: Name
    agent: Name
    requested_by: Name
    reason: Text | None = None
    status: ShutdownStatus = "requested"
    created_at: Time
    decided_at: Time | None = None
    answer: Text | None = None
    owed: list[Owed] | None = None

    def numbered(self, **numbers: Any) -> Shutdown:
        """The request under its number, which the notice to its target names."""
        made = self.having(**numbers)
        return made.having(owed=[_asking(made)])


Said = tuple[str, str | None]
"""A status, and the words of an answer."""
NOTHING: Said = ("", None)
SHUTDOWN: Kind[Shutdown] = Kind("shutdown", Shutdown, numbered=True, logins="shutdown")


def open_requests(store: Store, team: Team, agent: str) -> Iterator[Shutdown]:
    """The requests to the agent that wait for its answer, oldest first."""
    return (found for found in all_of(store, team, []) if found.agent == agent and found.status == "requested")


def is_asked_to_end(store: Store, team: Team, agent: str) -> bool:
    """Whether a request to the agent waits for its answer."""
    return next(open_requests(store, team, agent), None) is not None


def all_of(store: Store, team: Team, problems: list[errors.TeamsError]) -> list[Shutdown]:
    """All requests, by number, each as the team's file has it."""
    return [as_decided(found, team) for found, _ in store.scan(team.name, SHUTDOWN, problems)]


def approval(key: str) -> str:
    """What the answer of who agreed is about: not the request itself, of which nothing is to be done any more."""
    return f"approved-{key}"


def is_approval(about: str | None) -> bool:
    """Whether that is what the answer of who agreed is about."""
    return (about or "").startswith(approval(""))


def as_decided(found: Shutdown, team: Team) -> Shutdown:
    """The request, approved if its target was stopped by it: a crash may have come between the two files."""
    member = team.find(found.agent)
    if found.status == "requested" and member and member.stopped_by == found.id:
        return found.having(status="approved", decided_at=member.left_at)
    return found


def get(store: Store, team: Team, word: str | None, agent: str, again: Said = NOTHING) -> Shutdown:
    """The request of that id, or the agent's open one; else the last that it has answered so, which it may not know.

    Raises:
        ShutdownNotFound: There is none.
    """
    if word is None:
        own = [found for found in all_of(store, team, []) if found.agent == agent]
        waiting = (found for found in own if found.status == "requested")
        answered = (found for found in reversed(own) if (found.status, found.answer) == again)
        found = next(waiting, None) or next(answered, None)
        if found is None:
            raise ShutdownNotFound(f"nobody asked {agent} to shut down", "There is nothing to answer.")
        return found
    key = id_of(word, "shutdown")
    try:
        return as_decided(store.get(team.name, SHUTDOWN, key)[0], team)
    except errors.NotFound:
        raise ShutdownNotFound(f"team {team.name} has no request {key}", "See: teams brief") from None


def _asking(made: Shutdown) -> Owed:
    why = f": {made.reason.rstrip('.')}" if made.reason else ""
    told = f"{made.requested_by} asks you to shut down ({made.id}){why}. "
    told += f"Answer: teams approve-shutdown {made.id}, or teams reject-shutdown {made.id} WHY"
    return Owed(
        to=made.agent, message=told, uid=f"requested-{made.id}", type="shutdown", by=made.requested_by, about=made.id
    )
