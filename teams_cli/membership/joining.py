"""Creating teams, joining and leaving, handing a team over, and making database logins for the members of a team."""

from __future__ import annotations

from teams_cli import errors, names, text
from teams_cli.membership import shutdowns
from teams_cli.membership.shutdowns import refuse_return
from teams_cli.messages.messages import MESSAGE
from teams_cli.store.contract import Kind, Store, update
from teams_cli.tasks import assigning, claims, leases, overviews, reviews, tasks
from teams_cli.teams import history, permission, roles, settings, teams
from teams_cli.teams.permission import Caller, hash_token, new_token, require, verify
from teams_cli.teams.roles import lineage
from teams_cli.teams.teams import LEADER, MANAGER, MEMBER, TEAM, Member, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from teams_cli.teams.config import Config


def join(
    store: Store,
    team_name: str,
    caller: Caller | None,
    role: str | None = None,
    specialty: str | None = None,
    display: str | None = None,
    answer: str | None = None,
    started_by: str | None = None,
    child_of: str | None = None,
    launcher: str | None = None,
) -> tuple[Member, str]:
    """Join a team. If you have no name yet, you get the next alias: agentA, agentB, …

    Joining again in the same role changes nothing. If you left, you can join again under your name. In a team made with
    `--secure`, the answer shows your token, which you need to join again.

    Raises:
        TeamNotFound: There is no such team.
        AlreadyExists: A member in another role has that name; upper and lower case do not matter.
        NotAllowed: You lead a team, you were shut down, or the token is wrong.
    """
    token = new_token()
    if display is None and caller:
        display = caller.display or None

    def with_new_member(team: Team) -> Team:
        if team.state == "closed":
            raise history.of_closed(store, team.name, overviews.completed_in_brackets(store, team.name))
        name = caller.name if caller else next_name(team)
        names.check_name(name, "agent")
        new_role, new_specialty = _role_and_specialty(team, caller, role, specialty)
        draft = Member(
            agent_id=name,
            agent_name=None if display is None else text.one_line(display, "name"),
            agent_type=None if new_specialty is None else text.one_line(new_specialty, "specialty", text.MAX_SKILL),
            role=new_role,
            joined_at=teams.now(store),
            answer=None if answer is None else text.checked(answer, "command"),
            answer_host=None if answer is None else store.host or None,
            started_by=started_by,
            child_of=child_of,
            launcher=launcher,
        )
        return _admitted(team, caller, draft, token)

    team = teams.get(store, team_name)
    former = team.find(caller.name) if caller else None
    if with_new_member(team) is not team and former:  # a member that returns does not keep the tasks that it left
        claims.release_tasks_of(store, team, former.agent_id, former.agent_id, "its owner left the team")
    before, after = update(store, team_name, TEAM, team_name, with_new_member)
    name = caller.name if caller else names.alias(after.alias_count - 1)  # the alias that was given just now
    member = after.find(name)
    assert member
    if before is not after:
        history.note(store, team_name, member.agent_id, "member joined", role=member.role)
    try:
        claims.free_unfit(store, after, caller or Caller(name))
    except errors.TeamsError:  # the member has joined; when it joins again, this is tried again
        pass
    if before is after:
        return member, ""
    return member, token if after.secure else ""


def _role_and_specialty(
    team: Team, caller: Caller | None, role: str | None, specialty: str | None
) -> tuple[str, str | None]:
    """Return the role and the specialty of a caller that joins. The role is the first that is known: *role*, the one
    that the caller's type names, the caller's present role, or that of a plain member. A type that names no role
    becomes the specialty, unless *specialty* is given.
    """
    config = caller.config if caller else None
    type_ = caller.type if caller else ""
    role_by_type = roles.role_for(type_, team, config) if type_ else None
    if specialty is None and type_ and role_by_type is None:
        specialty = type_
    if role is not None:
        return roles.known_role(role, team, config), specialty
    member = team.member(caller.name) if caller else None
    present_role = member.role if member else MEMBER
    return role_by_type or present_role, specialty


def _admitted(team: Team, caller: Caller | None, draft: Member, token: str) -> Team:
    """Return the team with the new member *draft*, or unchanged if it is an active member already. Refuse the draft if
    it may not join. In a secure team, the member gets the hash of the *token*. Without a *caller*, the draft's name is
    the next alias, which is then counted as given.
    """
    requester = caller or Caller(draft.agent_id)
    decision = roles.verdict(draft.role, "join-team", team, requester.config)
    permission.judge(draft.role, "join-team", decision, requester, team.name, team)
    refuse_look_alike(team, draft.agent_id)
    earlier = team.find(draft.agent_id)
    if earlier and earlier.active:
        if draft.role != earlier.role:
            leave = "" if earlier.agent_id == team.leader else ", or leave and join again"  # the leader can't leave
            raise errors.AlreadyExists(
                f"{earlier.agent_id} is in team {team.name} as {earlier.role} already", f"Choose another name{leave}."
            )
        verify(team, requester)
        return team
    if earlier:
        verify(team, requester)
        refuse_return(earlier)
    if team.secure:
        draft = draft.having(token_hash=hash_token(token))
    changed = team.with_member(draft)
    return changed if caller else changed.having(alias_count=_next_alias(team) + 1)


def refuse_look_alike(team: Team, name: str) -> None:
    """Raise an error if a new *name* could be mistaken for another.

    Raises:
        AlreadyExists: The name stands for the leader, or differs only in case from the name of a member.
    """
    if why := teams.look_alike(team, name):
        raise errors.AlreadyExists(why, "Choose another name.")


def expected(store: Store, team: Team, candidates: list[str], config: Config | None) -> list[str]:
    """Return the *candidates* that have not joined, but are expected to join: a task is assigned to them, or the
    configuration defines a role of this name that no member has yet.
    """
    absent = [name for name in candidates if name not in (names.HUMAN, "leader") and team.find(name) is None]
    if not absent:
        return []
    assignees = {task.assignee for task in tasks.labelled(store, team.name, tasks.KEPT)}
    taken_roles = {member.role for member in team.members if member.active}
    return [
        name
        for name in absent
        if name in assignees or (name not in taken_roles and roles.definition_of(name, team, config))
    ]


def next_name(team: Team) -> str:
    """Return the alias that a member without a name of its own gets if it joins next."""
    return names.alias(_next_alias(team))


def _next_alias(team: Team) -> int:
    """Return the number of the first alias that was neither given out nor chosen as a name."""
    taken_names = {member.agent_id.lower() for member in team.roster()}
    index = team.alias_count
    while names.alias(index).lower() in taken_names:
        index += 1
    return index


def renew_token(store: Store, team_name: str, agent: str) -> str:
    """Make and return a new token for a member of a secure team. The old token can't be shown again, because the files
    have only its hash. Return "" in a team that is not secure.
    """
    if not teams.get(store, team_name).secure:
        return ""
    token = new_token()

    def change(team: Team) -> Team:
        member = team.member(agent)
        return team.with_member(member.having(token_hash=hash_token(token))) if member else team

    update(store, team_name, TEAM.even_in_closed_team, team_name, change)
    return token


def spawn_team(
    store: Store, name: str, caller: Caller | None, description: str | None = None, secure: bool = False
) -> tuple[Team, dict[str, str]]:
    """Create a team. You become its leader and first member.

    With *secure*, every member needs a token. The answer shows your token and the human's; only hashes of
    them are stored.

    Raises:
        AlreadyExists: A team has that name already; upper and lower case do not matter.
        InvalidValue: The name is not valid.
        NotAllowed: You are a member of other teams but lead none of them, or agents of your type may not create teams.
        DamagedRecord: A team of that name has tasks or messages, but its own record is missing.
    """
    names.check_name(name, "team")
    text.within(description or "", "description", text.MAX_MESSAGE)
    if caller is None:
        raise errors.NoIdentity("a team needs a leader", "Name the leader: --as AGENT or TEAMS_AGENT_ID")
    _refuse_founder(store, caller, name)
    defaults = settings.of_user(caller.config) if caller.config else {}
    team = Team(name=name, description=description, leader=caller.name, created_at=teams.now(store), settings=defaults)
    if not caller.is_human:
        names.check_name(caller.name, "agent")
        display = text.one_line(caller.display, "name") if caller.display else None
        leader = Member(agent_id=caller.name, agent_name=display, role=LEADER, joined_at=team.created_at)
        team = team.having(members=[leader])
    tokens: dict[str, str] = {}
    if secure:
        tokens = {"token": new_token(), "humanToken": new_token()}
        members = [member.having(token_hash=hash_token(tokens["token"])) for member in team.members]
        team = team.having(members=members, human_token_hash=hash_token(tokens["humanToken"]))
    if name not in store.teams() and (store.last(name, MESSAGE) or any(tasks.all_of(store, name, []))):
        raise errors.DamagedRecord(
            f"team {name} lost its own record, but not its tasks or messages",
            "Restore the record from a backup, or move the team's tasks and messages away. See where: teams doctor",
        )
    store.create(name, TEAM, name, team)
    history.note(store, name, caller.name, "team created", description=description)
    return team, tokens


def _refuse_founder(store: Store, caller: Caller, team_name: str) -> None:
    """Raise an error if the caller may not create teams. If it has roles in several teams, the one with the most rights
    decides. A role named by the caller's type can only take rights away.
    """

    def decision(role: str, team: Team | None) -> str:
        return roles.verdict(role, "spawn-team", team, caller.config)

    def strictness(role_in_team: tuple[str, Team | None]) -> int:
        return ("allow", "ask", "deny").index(decision(*role_in_team))

    if caller.is_human:
        roles_to_judge: list[tuple[str, Team | None]] = [(names.HUMAN, None)]
    else:
        as_member: list[tuple[str, Team | None]] = []
        for team in teams.all_of(store, []):  # without damaged teams
            member = team.member(caller.name)
            if member and team.state != "closed":
                as_member.append((member.role, team))
        roles_to_judge = sorted(as_member, key=strictness)[:1]  # the one with the most rights
        if caller.type:
            # A type that names no role is a specialty. Then the caller is a plain member, which may not create teams.
            roles_to_judge.append((roles.role_for(caller.type, None, caller.config) or MEMBER, None))
        elif not roles_to_judge:  # nobody gave the caller a role, so it may found a team and lead it
            roles_to_judge.append((LEADER, None))
    role, in_team = max(roles_to_judge, key=strictness)  # the type can only take rights away
    permission.judge(role, "spawn-team", decision(role, in_team), caller, team_name, in_team)


def set_up(store: Store, team_name: str, caller: Caller | None, kinds: Sequence[Kind[Any]] = ()) -> dict[str, str]:
    """Give every active member of a `--secure` team its own database login, and remove the logins of those who
    left.

    An agent with its own login can't change the team, decisions, how agents are run, or the inboxes, claims and results
    of others, whatever program it uses. The answer shows each new login once, as an address with a password. Set
    TEAMS_STORE to this address only for the agent with that login. Repeat the command when members join or leave.

    Raises:
        WrongState: The team was not made with --secure.
        InvalidValue: The team is in files, which have no logins.
        NotAllowed: Your own database login may not create logins.
    """
    standing = require(store, team_name, caller, "set-up-roles")
    team, caller = standing.team, standing.caller
    if not team.secure:
        raise errors.WrongState(
            f"team {team.name} was made without --secure", "Make one: teams spawn-team NAME --secure"
        )
    classes = {member.agent_id: _login_class(team, member, caller) for member in team.members if member.active}
    addresses = store.admit(team.name, classes, kinds)
    if addresses:
        history.note(store, team.name, caller.name, "logins made", agents=sorted(addresses))
    return addresses


def _login_class(team: Team, member: Member, caller: Caller) -> str:
    """Return what a member's login may do, in the words of `Store.admit`: `leads`, `manages`, or "" for others."""
    base = lineage(member.role, team, caller.config)[-1]
    if base == LEADER:
        return "leads"
    may_add_tasks = roles.verdict(member.role, "create-task", team, caller.config) != "deny"
    return "manages" if base == MANAGER or may_add_tasks else ""


def leave(
    store: Store, team_name: str, caller: Caller | None, problems: list[errors.TeamsError] | None = None
) -> list[str]:
    """Leave the team. Your tasks in progress are released; your messages stay.

    Raises:
        Conflict: The leader can't leave.
    """
    if caller:
        team = teams.get(store, team_name)
        member = team.find(caller.name)
        if member and not member.active and not member.stopped_by:  # a repeat, for example because the answer was lost
            verify(team, caller)
            return _release_tasks(store, team, caller, problems)
    caller = require(store, team_name, caller, "leave-team").caller
    name = caller.name

    def without_member(team: Team) -> Team:
        if team.leader == name:
            raise errors.WrongState(
                f"{name} leads team {team_name} and can't leave it",
                "Hand it over (teams hand-over AGENT) or close it (teams close-team).",
            )
        member = team.member(name)
        return team.with_member(member.having(left_at=teams.now(store))) if member else team

    _, team = update(store, team_name, TEAM, team_name, without_member)
    history.note(store, team_name, name, "member left")
    return _release_tasks(store, team, caller, problems)


def _release_tasks(store: Store, team: Team, caller: Caller, problems: list[errors.TeamsError] | None) -> list[str]:
    """Release the tasks of a member that has left, and return their ids. The leader gets the reviews that only this
    member was asked for. If this fails, return an empty list, and add the error to *problems*.
    """
    name = caller.name
    try:
        released = claims.release_tasks_of(store, team, name, name, "its owner left the team")
        assigning.free_all(store, team, name, f"{name} left the team")
        reviews.ask_leader_instead(store, team, name, caller.config)
        return released
    except errors.TeamsError as failure:  # its claims are over, and any later command can record that
        message = f"its tasks will be released by the next command: they could not be released now ({failure.message})"
        if problems is not None:
            problems.append(errors.StorageFailed(message, failure.hint))
        return []


def hand_over(store: Store, team_name: str, caller: Caller | None, to: str) -> Team:
    """Make another member the leader. You stay as a member.

    Raises:
        AgentNotFound: There is no such active member.
        Conflict: The new leader has tasks in progress, or has been asked to shut down; or the team has been handed over
            to another member meanwhile.
    """
    standing = require(store, team_name, caller, "hand-over", to)

    def with_new_leader(team: Team) -> Team:
        heir = team.member(to)
        if heir is None:
            teams.get_recipient(team, to)  # refuses an unknown name; `leader` and `human` remain
            raise errors.InvalidValue(f"{to} can't lead a team", f"Members: {team.names_in_words()}.")
        if to == team.leader:
            return team
        if team.leader != standing.team.leader:
            raise errors.Conflict(
                f"{team.leader} leads team {team_name} now; nothing was changed", "See: teams list-agents"
            )
        old_leader = team.member(team.leader)
        changed = team.with_member(heir.having(role=LEADER)).having(leader=to)
        return changed.with_member(old_leader.having(role=MEMBER)) if old_leader else changed

    leases.release_all(store, standing.team)
    busy = [task.id for task in tasks.held_by(store, team_name, to)]
    if busy:
        raise errors.Conflict(f"{to} has {', '.join(busy)} in progress", "It must complete or release them first.")
    if shutdown := next(shutdowns.open_requests(store, standing.team, to), None):
        raise errors.Conflict(
            f"{to} is asked to shut down: {shutdown.id}", "Wait for its answer, or choose another member."
        )
    before, team = update(store, team_name, TEAM, team_name, with_new_leader)
    if before is not team:
        history.note(store, team_name, standing.name, "team handed over", to=to)
        try:
            assigning.free_all(store, team, to, f"{to} leads the team now")
        except errors.TeamsError:  # the next search for work frees the tasks that remain assigned
            pass
    return team
