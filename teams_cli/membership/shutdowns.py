"""Asking a member to end, and its answer."""

from __future__ import annotations

from teams_cli import text
from teams_cli.errors import Conflict, InvalidValue, NotAllowed, NotFound, TeamsError, WrongState
from teams_cli.messages.notices import deliver, settle_request
from teams_cli.names import id_of
from teams_cli.records.annotations import Any, Iterator, Name, ShutdownId, ShutdownStatus, Text, Time
from teams_cli.records.owed import Owed, owing
from teams_cli.records.records import Record
from teams_cli.store.contract import Kind, Store
from teams_cli.store.retrying import update
from teams_cli.teams import history, teams
from teams_cli.teams.operations import LEADERS, WORKERS, operation
from teams_cli.teams.permission import require
from teams_cli.teams.teams import TEAM, Member, Team
from teams_cli.teams.tokens import verify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.caller import Caller


class ShutdownNotFound(NotFound):
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


_Said = tuple[str, str | None]
"""A status, and the words of an answer."""
_NOTHING: _Said = ("", None)
SHUTDOWN: Kind[Shutdown] = Kind("shutdown", Shutdown, numbered=True, logins="shutdown")


@operation("request-shutdown", may=LEADERS)
def request(store: Store, team_name: str, caller: Caller | None, agent: str, reason: str | None = None) -> Shutdown:
    """Ask a member to end its work; it approves, or rejects with a reason.

    Raises:
        AgentNotFound: There is no such active member.
        Conflict: A request to it is open already; names it.
    """
    at = require(store, team_name, caller, "request-shutdown", agent)
    team, caller = at.team, at.caller
    text.within(reason or "", "reason", text.MAX_MESSAGE)
    target = teams.get_recipient(team, agent)
    if team.member(target) is None or target == caller.name:
        raise InvalidValue(f"{target} can't be asked to shut down by you", "Name another member.")
    if target == team.leader:
        raise WrongState(f"{target} leads team {team_name}", "Hand the team over first: teams hand-over AGENT")
    draft = Shutdown(
        team_name=team_name, agent=target, requested_by=caller.name, reason=reason, created_at=teams.now(store)
    )
    made = _same_again(store, team, draft)
    if made is None:
        made, _ = store.create(team_name, SHUTDOWN, None, draft)
        _withdraw_if_second(store, team, made)
        history.note(store, team_name, caller.name, "shutdown requested", shutdown=made.id, agent=target, reason=reason)
    deliver(store, team_name, SHUTDOWN, made)
    return made


def _same_again(store: Store, team: Team, draft: Shutdown) -> Shutdown | None:
    """The same request by the same member, if it is open: who asked may not have heard that it was made.

    Raises:
        Conflict: Another request is open.
    """
    for earlier in open_requests(store, team, draft.agent):
        if (earlier.requested_by, earlier.reason) == (draft.requested_by, draft.reason):
            return earlier
        raise Conflict(f"{draft.agent} is asked to shut down already: {earlier.id}", "Wait for its answer.")
    return None


def _asking(made: Shutdown) -> Owed:
    told = f"{made.requested_by} asks you to shut down ({made.id}){f': {made.reason}' if made.reason else ''}. "
    told += f"Answer: teams approve-shutdown {made.id}, or teams reject-shutdown {made.id} --reason R"
    return Owed(
        to=made.agent, message=told, uid=f"requested-{made.id}", type="shutdown", by=made.requested_by, about=made.id
    )


def _withdraw_if_second(store: Store, team: Team, made: Shutdown) -> None:
    """Of two requests at the same moment the first stands; where that can't be seen, both do."""
    try:
        first = next(open_requests(store, team, made.agent), made)
    except TeamsError:
        return
    if first.id != made.id:
        withdrawn = f"{first.id} came first"
        update(store, team.name, SHUTDOWN, made.id, lambda s: s.having(status="rejected", answer=withdrawn, owed=None))
        raise Conflict(f"{made.agent} is asked to shut down already: {first.id}", "Wait for its answer.")


def open_requests(store: Store, team: Team, agent: str) -> Iterator[Shutdown]:
    """The requests to the agent that wait for its answer, oldest first."""
    return (found for found in all_of(store, team, []) if found.agent == agent and found.status == "requested")


def all_of(store: Store, team: Team, problems: list[TeamsError]) -> list[Shutdown]:
    """All requests, by number, each as the team's file has it."""
    return [_as_decided(found, team) for found, _ in store.scan(team.name, SHUTDOWN, problems)]


def _as_decided(found: Shutdown, team: Team) -> Shutdown:
    """The request, approved if its target was stopped by it: a crash may have come between the two files."""
    member = team.find(found.agent)
    if found.status == "requested" and member and member.stopped_by == found.id:
        return found.having(status="approved", decided_at=member.left_at)
    return found


def get(store: Store, team: Team, word: str | None, agent: str, again: _Said = _NOTHING) -> Shutdown:
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
        return _as_decided(store.get(team.name, SHUTDOWN, key)[0], team)
    except NotFound:
        raise ShutdownNotFound(f"team {team.name} has no request {key}", "See `teams brief`.") from None


@operation("approve-shutdown", may=WORKERS)
def approve(store: Store, team_name: str, caller: Caller | None, word: str | None = None) -> tuple[Shutdown, list[str]]:
    """Agree to end: the caller is stopped, what it has in progress is free again, and it may change nothing more.

    A turn that `teams` started has five seconds to end by itself. Returns the request and the ids of the freed tasks.

    Raises:
        ShutdownNotFound: There is no such request to the caller.
        WrongState: It is answered already.
        NotAllowed: It is to another member.
    """
    asked = _approved_before(store, team_name, caller, word)
    if asked is not None:
        return _carried_out(store, teams.get(store, team_name), asked)
    asked, name = _answerable(store, team_name, caller, word, "approve-shutdown")
    return _carried_out(store, _stop(store, team_name, asked, name), asked)


def _stop(store: Store, team_name: str, asked: Shutdown, name: str) -> Team:
    """The team with the member stopped: the one commit of an approval, which owes the requester its notice."""
    now = teams.now(store)

    def stop(team: Team) -> Team:
        member = team.member(name)
        if member is None:
            return team
        stopped = team.with_member(member.having(left_at=now, stopped_by=asked.id))
        return owing(stopped, _answered(asked.having(status="approved")))

    _, team = update(store, team_name, TEAM, team_name, stop)
    history.note(store, team_name, name, "shutdown approved", shutdown=asked.id)
    return team


def _approved_before(store: Store, team_name: str, caller: Caller | None, word: str | None) -> Shutdown | None:
    """The request that the caller approved, if it was stopped by it: it did not hear that it was."""
    team = teams.get(store, team_name)
    member = team.find(caller.name) if caller else None
    if caller is None or member is None or not member.stopped_by:
        return None
    if word is not None and id_of(word, "shutdown") != member.stopped_by:
        return None
    verify(team, caller)
    return get(store, team, member.stopped_by, caller.name)


def _carried_out(store: Store, team: Team, asked: Shutdown) -> tuple[Shutdown, list[str]]:
    """What follows the stop of a member. It stands whether or not this can be written: see `_as_decided`, and a claim
    of one that is not a member is over.
    """
    from teams_cli.tasks import assigning, claims

    decided = _as_decided(asked, team)
    try:
        done = update(store, team.name, SHUTDOWN, asked.id, lambda found: _as_decided(found, team))[1]
        freed = claims.release_tasks_of(store, team, asked.agent, asked.agent, f"its owner was shut down ({asked.id})")
        assigning.free_all(store, team, asked.agent, f"{asked.agent} was shut down ({asked.id})")
    except TeamsError:
        done, freed = decided, []
    deliver(store, team.name, TEAM, team)
    settle_request(store, team.name, asked.agent, asked.id)
    return done, freed


@operation("reject-shutdown", may=WORKERS)
def reject(store: Store, team_name: str, caller: Caller | None, word: str | None, reason: str) -> Shutdown:
    """Decline to end, saying why; who asked is told.

    Raises:
        ShutdownNotFound: There is no such request to the caller.
        WrongState: It is answered already.
        NotAllowed: It is to another member.
    """
    text.checked(reason, "reason")
    asked, name = _answerable(store, team_name, caller, word, "reject-shutdown", ("rejected", reason))
    now = teams.now(store)

    def decline(found: Shutdown) -> Shutdown:
        if (found.status, found.answer) == ("rejected", reason):
            return found
        if found.status != "requested":
            raise WrongState(f"{found.id} is {found.status} already", "An answer stands.")
        declined = found.having(status="rejected", decided_at=now, answer=reason)
        return owing(declined, _answered(declined))

    before, done = update(store, team_name, SHUTDOWN, asked.id, decline)
    if before is not done:
        history.note(store, team_name, name, "shutdown rejected", shutdown=done.id, reason=done.answer)
    deliver(store, team_name, SHUTDOWN, done)
    settle_request(store, team_name, done.agent, done.id)
    return done


def _answerable(
    store: Store,
    team_name: str,
    caller: Caller | None,
    word: str | None,
    operation: str,
    again: _Said = _NOTHING,
) -> tuple[Shutdown, str]:
    """The request that the caller may answer, or has answered by the same status and words, *again*."""
    at = require(store, team_name, caller, operation, word or "")
    team, caller = at.team, at.caller
    asked = get(store, team, word, caller.name, again)
    if asked.agent != caller.name:
        raise NotAllowed(f"{asked.id} is to {asked.agent}", "Only its target answers it.")
    if asked.status != "requested" and (asked.status, asked.answer) != again:
        raise WrongState(f"{asked.id} is {asked.status} already", "An answer stands.")
    return asked, caller.name


def _answered(done: Shutdown) -> Owed:
    told = f"{done.agent} {done.status} {done.id}{f': {done.answer}' if done.answer else ''}"
    return Owed(to=done.requested_by, message=told, uid=f"{done.status}-{done.id}", type="shutdown", by=done.agent)


def refuse_return(found: Member) -> None:
    """Raises NotAllowed: The member was shut down, and its name is over."""
    if found.stopped_by:
        raise NotAllowed(f"{found.agent_id} was shut down ({found.stopped_by})", "Join under another name.")
