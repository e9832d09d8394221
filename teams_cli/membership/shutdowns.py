"""Shutdown requests: asking members to end, and their answers."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.messages.notices import deliver, settle_request
from teams_cli.names import id_of
from teams_cli.records.records import Owed, Record, owing
from teams_cli.store.contract import Kind, Store
from teams_cli.store.retrying import update
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
    """One request to end. Once it is approved, its target is stopped: the team's file records that, and this file the
    answer.
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
        """The request under its number, which the notice to its target names."""
        made = self.having(**numbers)
        return made.having(owed=[_asking(made)])


Said = tuple[str, str | None]
"""A status, and the words of an answer."""
NOTHING: Said = ("", None)
SHUTDOWN: Kind[Shutdown] = Kind("shutdown", Shutdown, numbered=True, logins="shutdown")


def open_requests(store: Store, team: Team, agent: str) -> Iterator[Shutdown]:
    """Return the requests to the agent that wait for its answer, oldest first."""
    return (found for found in all_of(store, team, []) if found.agent == agent and found.status == "requested")


def is_asked_to_end(store: Store, team: Team, agent: str) -> bool:
    """Whether a request to the agent waits for its answer."""
    return next(open_requests(store, team, agent), None) is not None


def all_of(store: Store, team: Team, problems: list[errors.TeamsError]) -> list[Shutdown]:
    """Return all requests by number, each with the state that the team's file shows."""
    return [as_decided(found, team) for found, _ in store.scan(team.name, SHUTDOWN, problems)]


def approval(key: str) -> str:
    """Return the `about` of the notice that a member agreed. The request, which is finished, has another."""
    return f"approved-{key}"


def is_approval(about: str | None) -> bool:
    """Whether that `about` belongs to the notice that a member agreed."""
    return (about or "").startswith(approval(""))


def as_decided(found: Shutdown, team: Team) -> Shutdown:
    """Return the request, approved if the team's file says that its target was stopped. A crash may have come between
    the two writes.
    """
    member = team.find(found.agent)
    if found.status == "requested" and member and member.stopped_by == found.id:
        return found.having(status="approved", decided_at=member.left_at)
    return found


def get(store: Store, team: Team, word: str | None, agent: str, again: Said = NOTHING) -> Shutdown:
    """Return the request of that id, or the agent's open one; else the last that it answered in this way, if its
    command is repeated.

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
        to=made.agent,
        message=told,
        uid=f"requested-{made.id}",
        type="shutdown",
        by=made.requested_by,
        about=made.id,
        event="shutdown-requested",
    )


def request_each(
    store: Store, team_name: str, caller: Caller | None, agents: list[str], reason: str | None = None
) -> list[Shutdown]:
    """Ask members to end their work, in one commit: all of them, or none if one cannot be asked.

    Raises:
        AgentNotFound: One of them is no active member.
        Conflict: A request to one of them is open already; names it.
    """
    drafts = [_drafted(store, team_name, caller, agent, reason) for agent in dict.fromkeys(agents)]
    earlier = [_same_again(store, team, draft) for team, draft in drafts]
    fresh = [draft for (_, draft), same in zip(drafts, earlier, strict=True) if same is None]
    made = store.create_all(team_name, SHUTDOWN, len(fresh), lambda keys: fresh) if fresh else []
    for new in made:
        _withdraw_if_second(store, drafts[0][0], new)
        who = new.requested_by
        history.note(store, team_name, who, "shutdown requested", shutdown=new.id, agent=new.agent, reason=reason)
    rest = iter(made)
    asked = [same or next(rest) for same in earlier]
    for each in asked:
        store.confirm(team_name, SHUTDOWN, each.id)
        deliver(store, team_name, SHUTDOWN, each)
    return asked


def request(store: Store, team_name: str, caller: Caller | None, agent: str, reason: str | None = None) -> Shutdown:
    """Ask members to end their work. Each of them approves, or rejects with a reason.

    Raises:
        AgentNotFound: There is no such active member.
        Conflict: A request to a member is open already; the error names it.
        WrongState: A member was stopped already.
    """
    return request_each(store, team_name, caller, [agent], reason)[0]


def _drafted(
    store: Store, team_name: str, caller: Caller | None, agent: str, reason: str | None
) -> tuple[Team, Shutdown]:
    """Return the request, if the caller may make it."""
    at = require(store, team_name, caller, "request-shutdown", agent)
    team, name = at.team, at.caller.name
    text.within(reason or "", "reason", text.MAX_MESSAGE)
    target = teams.get_recipient(team, agent)
    if team.member(target) is None or target == name:
        raise errors.InvalidValue(f"{target} can't be asked to shut down", "Name another member.")
    if target == team.leader:
        raise errors.WrongState(f"{target} leads team {team_name}", "Hand the team over first: teams hand-over AGENT")
    now = teams.now(store)
    return team, Shutdown(team_name=team_name, agent=target, requested_by=name, reason=reason, created_at=now)


def _same_again(store: Store, team: Team, draft: Shutdown) -> Shutdown | None:
    """Return the open request that *draft* repeats, with the same requester and reason. None if no request is open.

    Raises:
        Conflict: Another request is open.
    """
    for earlier in open_requests(store, team, draft.agent):
        if (earlier.requested_by, earlier.reason) == (draft.requested_by, draft.reason):
            return earlier
        raise errors.Conflict(f"{draft.agent} is asked to shut down already: {earlier.id}", "Wait for its answer.")
    return None


def _withdraw_if_second(store: Store, team: Team, made: Shutdown) -> None:
    """Withdraw the second of two requests made at the same moment; if their order is unknown, both stand."""
    try:
        first = next(open_requests(store, team, made.agent), made)
    except errors.TeamsError:
        return
    if first.id != made.id:
        withdrawn = f"{first.id} came first"
        update(store, team.name, SHUTDOWN, made.id, lambda s: s.having(status="rejected", answer=withdrawn, owed=None))
        raise errors.Conflict(f"{made.agent} is asked to shut down already: {first.id}", "Wait for its answer.")


def approve(store: Store, team_name: str, caller: Caller | None, word: str | None = None) -> tuple[Shutdown, list[str]]:
    """Agree to shut down. You are stopped, your tasks are released, and you may no longer change anything.

    A turn that `teams` started has five seconds to end.

    Raises:
        ShutdownNotFound: You have no such request.
        WrongState: The request is already answered.
        NotAllowed: The request is to another member.
    """
    asked = _approved_before(store, team_name, caller, word)
    if asked is not None:
        return _carried_out(store, teams.get(store, team_name), asked)
    asked, name = _answerable(store, team_name, caller, word, "approve-shutdown")
    return _carried_out(store, _stop(store, team_name, asked, name), asked)


def _stop(store: Store, team_name: str, asked: Shutdown, name: str) -> Team:
    """Return the team with the member stopped, which is the one commit of an approval and owes the requester its
    notice.
    """
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
    """Return the request by which the caller was stopped, if its command is repeated."""
    team = teams.get(store, team_name)
    member = team.find(caller.name) if caller else None
    if caller is None or member is None or not member.stopped_by:
        return None
    if word is not None and id_of(word, "shutdown") != member.stopped_by:
        return None
    verify(team, caller)
    store.confirm(team_name, TEAM, team_name)
    return get(store, team, member.stopped_by, caller.name)


def _carried_out(store: Store, team: Team, asked: Shutdown) -> tuple[Shutdown, list[str]]:
    """Finish the stop of a member: store the answer, and release its tasks. The stop holds even if this fails: see
    `as_decided`.
    """
    from teams_cli.tasks import assigning, claims

    decided = as_decided(asked, team)
    try:
        done = update(store, team.name, SHUTDOWN, asked.id, lambda found: as_decided(found, team))[1]
        freed = claims.release_tasks_of(store, team, asked.agent, asked.agent, f"its owner was shut down ({asked.id})")
        assigning.free_all(store, team, asked.agent, f"{asked.agent} was shut down ({asked.id})")
    except errors.TeamsError:
        done, freed = decided, []
    deliver(store, team.name, TEAM, team)
    settle_request(store, team.name, asked.agent, asked.id)
    return done, freed


def reject(store: Store, team_name: str, caller: Caller | None, word: str | None, reason: str) -> Shutdown:
    """Decline to shut down, and say why. The requester is notified.

    Raises:
        ShutdownNotFound: You have no such request.
        WrongState: The request is already answered.
        NotAllowed: The request is to another member.
    """
    text.checked(reason, "reason")
    asked, name = _answerable(store, team_name, caller, word, "reject-shutdown", ("rejected", reason))
    now = teams.now(store)

    def decline(found: Shutdown) -> Shutdown:
        if (found.status, found.answer) == ("rejected", reason):
            return found
        if found.status != "requested":
            raise errors.WrongState(f"{found.id} is {found.status} already", "An answer is final.")
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
    again: Said = NOTHING,
) -> tuple[Shutdown, str]:
    """Return the request that the caller may answer, or has answered *again* with the same status and words."""
    at = require(store, team_name, caller, operation, word or "")
    team, caller = at.team, at.caller
    asked = get(store, team, word, caller.name, again)
    if asked.agent != caller.name:
        raise errors.NotAllowed(f"{asked.id} is to {asked.agent}", "Only that member may answer.")
    if asked.status != "requested" and (asked.status, asked.answer) != again:
        raise errors.WrongState(f"{asked.id} is {asked.status} already", "An answer is final.")
    return asked, caller.name


def _answered(done: Shutdown) -> Owed:
    told = f"{done.agent} {done.status} {done.id}{f': {done.answer}' if done.answer else ''}"
    about = approval(done.id) if done.status == "approved" else None
    uid = f"{done.status}-{done.id}"
    return Owed(
        to=done.requested_by,
        message=told,
        uid=uid,
        type="shutdown",
        by=done.agent,
        about=about,
        event=f"shutdown-{done.status}",
    )


def refuse_return(found: Member) -> None:
    """Raises NotAllowed: The member was shut down, so nobody can join under its name."""
    if found.stopped_by:
        raise errors.NotAllowed(f"{found.agent_id} was shut down ({found.stopped_by})", "Join under another name.")
