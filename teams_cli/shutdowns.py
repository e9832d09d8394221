"""Asking a member to end, and its answer."""

from __future__ import annotations

from teams_cli import claims, history, messages, teams, text
from teams_cli.errors import Conflict, InvalidValue, NotAllowed, NotFound, ShutdownNotFound, TeamsError, WrongState
from teams_cli.names import id_of
from teams_cli.records import Record
from teams_cli.roles import require
from teams_cli.store.contract import Kind, update
from teams_cli.teams import TEAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from teams_cli.caller import Caller
    from teams_cli.shapes import Name, ShutdownId, ShutdownStatus, Text, Time
    from teams_cli.store.contract import Store
    from teams_cli.teams import Team


class Shutdown(Record):
    """One request to end. Approved, its target is stopped: the team's file says so, and this is its answer."""

    id: ShutdownId = ""
    team_name: Name
    agent: Name
    requested_by: Name
    reason: Text | None = None
    status: ShutdownStatus = "requested"
    created_at: Time
    decided_at: Time | None = None
    answer: Text | None = None


SHUTDOWN: Kind[Shutdown] = Kind("shutdown", Shutdown, numbered=True)


def request(store: Store, team_name: str, caller: Caller | None, agent: str, reason: str | None = None) -> Shutdown:
    """Ask a member to end its work; it approves, or rejects with a reason.

    Raises:
        AgentNotFound: There is no such active member.
        Conflict: A request to it is open already; names it.
    """
    team = require(store, team_name, caller, "request-shutdown", agent)
    assert caller is not None
    text.within(reason or "", "reason", text.MAX_MESSAGE)
    target = teams.find_recipient(team, agent)
    if team.member(target) is None or target == caller.name:
        raise InvalidValue(f"{target} can't be asked to shut down by you", "Name another member.")
    if target == team.leader:
        raise WrongState(f"{target} leads team {team_name}", "Hand the team over first: teams hand-over AGENT")
    _refuse_second(store, team, target)
    draft = Shutdown(
        team_name=team_name, agent=target, requested_by=caller.name, reason=reason, created_at=teams.now(store)
    )
    made, _ = store.create(team_name, SHUTDOWN, None, draft)
    _withdraw_if_second(store, team, made)
    history.note(store, team_name, caller.name, "shutdown requested", shutdown=made.id, agent=target, reason=reason)
    told = f"{caller.name} asks you to shut down ({made.id}){f': {reason}' if reason else ''}. "
    told += f"Answer: teams approve-shutdown {made.id}, or teams reject-shutdown {made.id} --reason R"
    messages.notify(store, team_name, target, told, f"requested-{made.id}", "shutdown")
    return made


def _refuse_second(store: Store, team: Team, agent: str) -> None:
    for earlier in open_requests(store, team, agent):
        raise Conflict(f"{agent} is asked to shut down already: {earlier.id}", "Wait for its answer.")


def _withdraw_if_second(store: Store, team: Team, made: Shutdown) -> None:
    """Of two requests at the same moment the first stands."""
    first = next(open_requests(store, team, made.agent), made)
    if first.id != made.id:
        withdrawn = f"{first.id} came first"
        update(store, team.name, SHUTDOWN, made.id, lambda s: s.having(status="rejected", answer=withdrawn))
        raise Conflict(f"{made.agent} is asked to shut down already: {first.id}", "Wait for its answer.")


def open_requests(store: Store, team: Team, agent: str) -> Iterator[Shutdown]:
    """The requests to the agent that wait for its answer, oldest first."""
    return (found for found in listing(store, team, []) if found.agent == agent and found.status == "requested")


def listing(store: Store, team: Team, problems: list[TeamsError]) -> list[Shutdown]:
    """All requests, by number, each as the team's file has it."""
    return [_as_decided(found, team) for found, _ in store.scan(team.name, SHUTDOWN, problems)]


def _as_decided(found: Shutdown, team: Team) -> Shutdown:
    """The request, approved if its target was stopped by it: a crash may have come between the two files."""
    member = team.find(found.agent)
    if found.status == "requested" and member and member.stopped_by == found.id:
        return found.having(status="approved", decided_at=member.left_at)
    return found


def load(store: Store, team: Team, word: str | None, agent: str) -> Shutdown:
    """The request of that id, or the agent's open one.

    Raises:
        ShutdownNotFound: There is none.
    """
    if word is None:
        found = next(open_requests(store, team, agent), None)
        if found is None:
            raise ShutdownNotFound(f"nobody asked {agent} to shut down", "There is nothing to answer.")
        return found
    key = id_of(word, "shutdown")
    try:
        return _as_decided(store.get(team.name, SHUTDOWN, key)[0], team)
    except NotFound:
        raise ShutdownNotFound(f"team {team.name} has no request {key}", "See `teams brief`.") from None


def approve(store: Store, team_name: str, caller: Caller | None, word: str | None = None) -> tuple[Shutdown, list[str]]:
    """Agree to end: the caller is stopped, what it has in progress is free again, and it may change nothing more.

    Returns the request and the ids of the freed tasks.

    Raises:
        ShutdownNotFound: There is no such request to the caller.
        WrongState: It is answered already.
        NotAllowed: It is to another member.
    """
    asked, name = _answerable(store, team_name, caller, word, "approve-shutdown")
    now = teams.now(store)

    def stop(team: Team) -> Team:
        member = team.member(name)
        return team.with_member(member.having(left_at=now, stopped_by=asked.id)) if member else team

    _, team = update(store, team_name, TEAM, team_name, stop)
    done = update(store, team_name, SHUTDOWN, asked.id, lambda s: s.having(status="approved", decided_at=now))[1]
    freed = claims.release_tasks_of(store, team, name, name, f"its owner was shut down ({asked.id})")
    _tell(store, team, done, name)
    return done, freed


def reject(store: Store, team_name: str, caller: Caller | None, word: str | None, reason: str) -> Shutdown:
    """Decline to end, saying why; who asked is told.

    Raises:
        ShutdownNotFound: There is no such request to the caller.
        WrongState: It is answered already.
        NotAllowed: It is to another member.
    """
    text.checked(reason, "reason")
    asked, name = _answerable(store, team_name, caller, word, "reject-shutdown")
    now = teams.now(store)

    def decline(found: Shutdown) -> Shutdown:
        if found.status != "requested":
            raise WrongState(f"{found.id} is {found.status} already", "An answer stands.")
        return found.having(status="rejected", decided_at=now, answer=reason)

    done = update(store, team_name, SHUTDOWN, asked.id, decline)[1]
    _tell(store, teams.load(store, team_name), done, name)
    return done


def _answerable(
    store: Store, team_name: str, caller: Caller | None, word: str | None, operation: str
) -> tuple[Shutdown, str]:
    team = require(store, team_name, caller, operation, word or "")
    assert caller is not None
    asked = load(store, team, word, caller.name)
    if asked.agent != caller.name:
        raise NotAllowed(f"{asked.id} is to {asked.agent}", "Only its target answers it.")
    if asked.status != "requested":
        raise WrongState(f"{asked.id} is {asked.status} already", "An answer stands.")
    return asked, caller.name


def _tell(store: Store, team: Team, done: Shutdown, name: str) -> None:
    history.note(store, team.name, name, f"shutdown {done.status}", shutdown=done.id, reason=done.answer)
    told = f"{name} {done.status} {done.id}{f': {done.answer}' if done.answer else ''}"
    messages.notify(store, team.name, done.requested_by, told, f"{done.status}-{done.id}", "shutdown")
