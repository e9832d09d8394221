"""Requests to members to shut down, and the members' answers."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.messages.notices import close_requests, deliver
from teams_cli.names import id_of
from teams_cli.records.records import Owed, Record, owing
from teams_cli.store.contract import Kind, Store, update
from teams_cli.teams import history, teams
from teams_cli.teams.permission import require, verify
from teams_cli.teams.teams import TEAM, Member, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from teams_cli.records.types import Name, ShutdownId, ShutdownStatus, Text, Time
    from teams_cli.teams.permission import Caller


class ShutdownNotFound(errors.NotFound):
    """The team has no such shutdown request."""


class Shutdown(Record):
    """A request to an agent to shut down. If the agent approves, the team's file is written first, with the id of the
    request that stopped the agent. Then the approval is recorded in the request itself.
    """

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
        """Return the request with its number, and with the notice to the agent, which names this number."""
        numbered = self.having(**numbers)
        return numbered.having(owed=[_request_notice(numbered)])

    def is_rejected_with(self, reason: str | None) -> bool:
        """Return whether the agent has rejected the request with that *reason*; False if *reason* is None."""
        return reason is not None and (self.status, self.answer) == ("rejected", reason)


SHUTDOWN: Kind[Shutdown] = Kind("shutdown", Shutdown, numbered=True, logins="shutdown")


def open_requests(store: Store, team: Team, agent: str) -> Iterator[Shutdown]:
    """Yield the requests to shut down that wait for the answer of the agent, oldest first."""
    shutdowns = all_of(store, team, [])
    return (shutdown for shutdown in shutdowns if (shutdown.agent, shutdown.status) == (agent, "requested"))


def is_asked_to_end(store: Store, team: Team, agent: str) -> bool:
    """Return whether a request to shut down waits for the answer of the agent."""
    return next(open_requests(store, team, agent), None) is not None


def all_of(store: Store, team: Team, problems: list[errors.TeamsError]) -> list[Shutdown]:
    """Return all requests, sorted by number. If the team's file says that a request stopped its agent, the request is
    returned as approved. Errors of damaged requests are added to *problems*.
    """
    return [as_decided(shutdown, team) for shutdown, _ in store.scan(team.name, SHUTDOWN, problems)]


_APPROVED = "approved-"


def is_approval(about: str | None) -> bool:
    """Return whether *about*, the field of a notice, says that an agent approved a request."""
    return (about or "").startswith(_APPROVED)


def as_decided(shutdown: Shutdown, team: Team) -> Shutdown:
    """Return the request as approved if the team's file says that this request stopped its agent; otherwise return it
    unchanged. The process that approves a request writes the team's file first, and may have died before it wrote the
    request.
    """
    member = team.find(shutdown.agent)
    if shutdown.status == "requested" and member and member.stopped_by == shutdown.id:
        return shutdown.having(status="approved", decided_at=member.left_at)
    return shutdown


def get(store: Store, team: Team, ref: str | None, agent: str, rejection: str | None = None) -> Shutdown:
    """Return the request with the id *ref*. If *ref* is None, return the agent's open request. If no request is open,
    the agent may be repeating an answer: return the last request that it rejected with the reason *rejection*.

    Raises:
        ShutdownNotFound: There is no such request.
    """
    if ref is None:
        requests_to_agent = [shutdown for shutdown in all_of(store, team, []) if shutdown.agent == agent]
        for shutdown in requests_to_agent:
            if shutdown.status == "requested":
                return shutdown
        for shutdown in reversed(requests_to_agent):
            if shutdown.is_rejected_with(rejection):
                return shutdown
        raise ShutdownNotFound(f"nobody asked {agent} to shut down", "There is nothing to answer.")
    key = id_of(ref, "shutdown")
    try:
        return as_decided(store.get(team.name, SHUTDOWN, key)[0], team)
    except errors.NotFound:
        raise ShutdownNotFound(f"team {team.name} has no request {key}", "See: teams brief") from None


def _request_notice(shutdown: Shutdown) -> Owed:
    reason = f": {shutdown.reason.rstrip('.')}" if shutdown.reason else ""
    return Owed(
        to=shutdown.agent,
        message=(
            f"{shutdown.requested_by} asks you to shut down ({shutdown.id}){reason}. "
            f"Answer: teams approve-shutdown {shutdown.id}, or teams reject-shutdown {shutdown.id} WHY"
        ),
        uid=f"requested-{shutdown.id}",
        type="shutdown",
        by=shutdown.requested_by,
        about=shutdown.id,
        event="shutdown-requested",
    )


def _answer_notice(shutdown: Shutdown) -> Owed:
    status = shutdown.status
    message = f"{shutdown.agent} {status} {shutdown.id}"
    if shutdown.answer:
        message += f": {shutdown.answer}"
    return Owed(
        to=shutdown.requested_by,
        message=message,
        uid=f"{status}-{shutdown.id}",
        type="shutdown",
        by=shutdown.agent,
        about=f"{_APPROVED}{shutdown.id}" if status == "approved" else None,  # for `is_approval`
        event=f"shutdown-{status}",
    )


def request(
    store: Store, team_name: str, caller: Caller | None, agents: list[str], reason: str | None = None
) -> list[Shutdown]:
    """Ask members to end their work. Each of them approves the request, or rejects it with a reason.

    Raises:
        AgentNotFound: There is no such active member.
        Conflict: A member already has an open request; the error names the request.
        WrongState: A member was stopped already.
    """
    # One commit: if one of them can't be asked, nobody is.
    drafts = [_draft(store, team_name, caller, agent, reason) for agent in dict.fromkeys(agents)]
    repeated = [_repeated(store, team, draft) for team, draft in drafts]  # None for a new request
    new_drafts = [draft for (_, draft), earlier in zip(drafts, repeated, strict=True) if earlier is None]
    created = store.create_all(team_name, SHUTDOWN, len(new_drafts), lambda keys: new_drafts) if new_drafts else []
    for new in created:
        team = drafts[0][0]
        _withdraw_if_second(store, team, new)
        by = new.requested_by
        history.note(store, team_name, by, "shutdown requested", shutdown=new.id, agent=new.agent, reason=reason)
    created_in_order = iter(created)
    requests = [earlier or next(created_in_order) for earlier in repeated]
    for shutdown in requests:
        store.confirm(team_name, SHUTDOWN, shutdown.id)
        deliver(store, team_name, SHUTDOWN, shutdown)
    return requests


def _draft(
    store: Store, team_name: str, caller: Caller | None, agent: str, reason: str | None
) -> tuple[Team, Shutdown]:
    """Check that the caller may ask *agent* to shut down. Return the team, and the request, which is not stored yet."""
    standing = require(store, team_name, caller, "request-shutdown", agent)
    team, name = standing.team, standing.name
    text.within(reason or "", "reason", text.MAX_MESSAGE)
    target = teams.get_recipient(team, agent)
    if team.member(target) is None or target == name:
        raise errors.InvalidValue(f"{target} can't be asked to shut down", "Name another member.")
    if target == team.leader:
        raise errors.WrongState(f"{target} leads team {team_name}", "Hand the team over first: teams hand-over AGENT")
    now = teams.now(store)
    return team, Shutdown(team_name=team_name, agent=target, requested_by=name, reason=reason, created_at=now)


def _repeated(store: Store, team: Team, draft: Shutdown) -> Shutdown | None:
    """Return the agent's open request if *draft* repeats it; None if the agent has none. Refuse *draft* if the open
    request is another one.
    """
    earlier = next(open_requests(store, team, draft.agent), None)
    if earlier and (earlier.requested_by, earlier.reason) != (draft.requested_by, draft.reason):
        raise errors.Conflict(f"{draft.agent} is asked to shut down already: {earlier.id}", "Wait for its answer.")
    return earlier


def _withdraw_if_second(store: Store, team: Team, new: Shutdown) -> None:
    """Withdraw and refuse the request *new* if another process asked the same agent just before."""
    try:
        first = next(open_requests(store, team, new.agent), new)
    except errors.TeamsError:  # both requests stand
        return
    if first.id != new.id:
        answer = f"{first.id} came first"

        def withdrawn(stored: Shutdown) -> Shutdown:
            return stored.having(status="rejected", answer=answer, owed=None)

        update(store, team.name, SHUTDOWN, new.id, withdrawn)
        raise errors.Conflict(f"{new.agent} is asked to shut down already: {first.id}", "Wait for its answer.")


def approve(store: Store, team_name: str, caller: Caller | None, ref: str | None = None) -> tuple[Shutdown, list[str]]:
    """Agree to shut down. You are stopped, your tasks are released, and you may no longer change anything.

    A turn that `teams` started has five seconds to end.

    Raises:
        ShutdownNotFound: You have no such request.
        WrongState: The request is already answered.
        NotAllowed: The request is to another member.
    """
    approved = _approved_before(store, team_name, caller, ref)
    if approved is not None:
        return _finish_approval(store, teams.get(store, team_name), approved, caller)
    shutdown = _answerable(store, team_name, caller, ref, "approve-shutdown")
    now = teams.now(store)

    def stop(team: Team) -> Team:
        # The team may have changed since the check: the agent may have left it, or lead it.
        member = team.find(shutdown.agent)
        if member and member.stopped_by == shutdown.id:
            return team
        if member is None or not member.active:
            raise errors.NotAllowed(
                f"{shutdown.agent} left team {team_name}", "It has ended, so nothing is left to do."
            )
        if team.leader == shutdown.agent:
            raise errors.WrongState(
                f"{shutdown.agent} leads team {team_name} and can't be shut down",
                "Hand it over (teams hand-over AGENT) or close it (teams close-team).",
            )
        stopped = team.with_member(member.having(left_at=now, stopped_by=shutdown.id))
        return owing(stopped, _answer_notice(shutdown.having(status="approved")))

    _, team = update(store, team_name, TEAM, team_name, stop)  # this commit alone decides: see `as_decided`
    history.note(store, team_name, shutdown.agent, "shutdown approved", shutdown=shutdown.id)
    return _finish_approval(store, team, shutdown, caller)


def _approved_before(store: Store, team_name: str, caller: Caller | None, ref: str | None) -> Shutdown | None:
    """Return the request that stopped the caller, if the caller only repeats its approval. Return None if no request
    stopped the caller, or if *ref* is another request.
    """
    team = teams.get(store, team_name)
    member = team.find(caller.name) if caller else None
    if caller is None or member is None or not member.stopped_by:
        return None
    if ref is not None and id_of(ref, "shutdown") != member.stopped_by:
        return None
    verify(team, caller)
    store.confirm(team_name, TEAM, team_name)
    return get(store, team, member.stopped_by, caller.name)


def _finish_approval(store: Store, team: Team, shutdown: Shutdown, caller: Caller | None) -> tuple[Shutdown, list[str]]:
    """Store the approval, release the tasks, and deliver the notices. The leader gets the reviews that only the agent
    was asked for. Return the request and the released tasks' ids. If a step fails, the agent stays stopped.
    """
    from teams_cli.tasks import assigning, claims, reviews

    key, agent = shutdown.id, shutdown.agent
    try:
        _, approved = update(store, team.name, SHUTDOWN, key, lambda stored: as_decided(stored, team))
        released = claims.release_tasks_of(store, team, agent, agent, f"its owner was shut down ({key})")
        assigning.free_all(store, team, agent, f"{agent} was shut down ({key})")
        reviews.ask_leader_instead(store, team, agent, caller.config if caller else None)
    except errors.TeamsError:  # the agent is stopped; its claims end, and any later command can record that
        approved, released = as_decided(shutdown, team), []
    deliver(store, team.name, TEAM, team)
    close_requests(store, team.name, agent, key)
    return approved, released


def reject(store: Store, team_name: str, caller: Caller | None, ref: str | None, reason: str) -> Shutdown:
    """Decline to shut down, and say why. The requester is notified.

    Raises:
        ShutdownNotFound: You have no such request.
        WrongState: The request is already answered.
        NotAllowed: The request is to another member.
    """
    text.checked(reason, "reason")
    shutdown = _answerable(store, team_name, caller, ref, "reject-shutdown", reason)
    now = teams.now(store)

    def decline(stored: Shutdown) -> Shutdown:
        if stored.is_rejected_with(reason):
            return stored
        if stored.status != "requested":
            raise errors.WrongState(f"{stored.id} is {stored.status} already", "An answer is final.")
        rejected = stored.having(status="rejected", decided_at=now, answer=reason)
        return owing(rejected, _answer_notice(rejected))

    before, rejected = update(store, team_name, SHUTDOWN, shutdown.id, decline)
    if before is not rejected:
        history.note(store, team_name, rejected.agent, "shutdown rejected", shutdown=rejected.id, reason=reason)
    deliver(store, team_name, SHUTDOWN, rejected)
    close_requests(store, team_name, rejected.agent, rejected.id)
    return rejected


def _answerable(
    store: Store, team_name: str, caller: Caller | None, ref: str | None, operation: str, rejection: str | None = None
) -> Shutdown:
    """Return the request that the caller wants to answer, or raise an error if it may not. A caller that rejected it
    before with the reason *rejection* only repeats its command, which is allowed.
    """
    standing = require(store, team_name, caller, operation, ref or "")
    shutdown = get(store, standing.team, ref, standing.name, rejection)
    if shutdown.agent != standing.name:
        raise errors.NotAllowed(f"{shutdown.id} is to {shutdown.agent}", "Only that member may answer.")
    if shutdown.status != "requested" and not shutdown.is_rejected_with(rejection):
        raise errors.WrongState(f"{shutdown.id} is {shutdown.status} already", "An answer is final.")
    return shutdown


def refuse_return(former: Member) -> None:
    """Raise NotAllowed if *former*, a former member, was shut down, because it may not join again."""
    if former.stopped_by:
        raise errors.NotAllowed(f"{former.agent_id} was shut down ({former.stopped_by})", "Join under another name.")
