"""Founding, joining, leaving and handing over a team, and the database logins of its members."""

from __future__ import annotations

from teams_cli import errors, names, text
from teams_cli.membership import shutdowns
from teams_cli.membership.shutdowns import refuse_return
from teams_cli.messages.messages import MESSAGE
from teams_cli.store.contract import Kind, Store
from teams_cli.store.retrying import update
from teams_cli.tasks import assigning, claims, leases, overviews, tasks
from teams_cli.teams import history, permission, roles, settings, teams
from teams_cli.teams.permission import Caller, hash_token, new_token, require, verify
from teams_cli.teams.roles import lineage
from teams_cli.teams.teams import LEADER, MANAGER, MEMBER, TEAM, Member, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
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
    """Join a team. Without a name you get the next alias: agentA, agentB, …

    Joining again in the same role changes nothing. If you left, you may join again under your name. In a team made with
    `--secure` the answer has your token; you need it to join again.

    Raises:
        TeamNotFound: There is no such team.
        AlreadyExists: A member in another role has that name, in the same or another case.
        NotAllowed: You lead a team, you were shut down, or the token is wrong.
    """
    wish = _Wish(caller, role, specialty, display, answer, started_by, child_of, launcher)

    team = teams.get(store, team_name)
    if wish.admitted(store, team) is not team and (gone := team.find(wish.member.agent_id)):
        name = gone.agent_id  # it left, and what it comes back to is not what it went from
        claims.release_tasks_of(store, team, name, name, "its owner left the team")
    before, after = update(store, team_name, TEAM, team_name, lambda found: wish.admitted(store, found))
    if before is after:
        return wish.member, ""
    history.note(store, team_name, wish.member.agent_id, "member joined", role=wish.member.role)
    return wish.member, wish.token


class _Wish:
    """The wishes of a caller that joins; once it is admitted, also the member and its token."""

    member: Member
    token = ""

    def __init__(
        self,
        caller: Caller | None,
        role: str | None,
        specialty: str | None,
        display: str | None,
        answer: str | None,
        started_by: str | None,
        child_of: str | None,
        launcher: str | None,
    ) -> None:
        self.caller = caller
        self.config = caller.config if caller else None
        self.role = role
        self.specialty = specialty
        self.display = (caller.display or None) if caller and display is None else display
        self.answer = answer
        self.started_by = started_by
        self.child_of = child_of
        self.launcher = launcher

    def admitted(self, store: Store, team: Team) -> Team:
        """Return the team with the member in it; the same team if the member was in it before."""
        if team.state == "closed":
            raise history.of_closed(store, team.name, overviews.came_to(store, team.name))
        draft = self._draft(store, team)
        asking = self.caller or Caller(draft.agent_id)
        allowed = roles.verdict(draft.role, "join-team", team, asking.config)
        permission.judge(draft.role, "join-team", allowed, asking, team.name, team)
        _refuse_look_alike(team, draft.agent_id)
        found = team.find(draft.agent_id)
        if found and found.active:
            self.member = _same_again(team, found, draft, asking)
            return team
        if found:
            verify(team, asking)
            refuse_return(found)
        if team.secure:
            self.token = new_token()
            draft = draft.having(token_hash=hash_token(self.token))
        self.member = draft
        changed = team.with_member(draft)
        return changed if self.caller else changed.having(alias_count=_next_alias(team) + 1)

    def _draft(self, store: Store, team: Team) -> Member:
        """Return the member that the caller would become."""
        name = self.caller.name if self.caller else next_name(team)
        names.check_name(name, "agent")
        role, specialty = self._role(team, name)
        return Member(
            agent_id=name,
            agent_name=None if self.display is None else text.one_line(self.display, "name"),
            agent_type=None if specialty is None else text.one_line(specialty, "specialty", text.MAX_SKILL),
            role=role,
            joined_at=teams.now(store),
            answer=None if self.answer is None else text.checked(self.answer, "command"),
            answer_host=None if self.answer is None else store.host or None,
            started_by=self.started_by,
            child_of=self.child_of,
            launcher=self.launcher,
        )

    def _role(self, team: Team, name: str) -> tuple[str, str | None]:
        """Return its role and specialty: what it asks for, else what its type means, else what it had before."""
        word = self.caller.type if self.caller else ""
        meant = roles.role_for(word, team, self.config) if word else None
        specialty = word if self.specialty is None and word and meant is None else self.specialty
        if self.role is not None:
            return roles.known_role(self.role, team, self.config), specialty
        member = team.member(name)
        return meant or (member.role if member else MEMBER), specialty


def _same_again(team: Team, found: Member, draft: Member, caller: Caller) -> Member:
    if draft.role != found.role:
        raise errors.AlreadyExists(
            f"{found.agent_id} is in team {team.name} as {found.role} already",
            "Choose another name, or leave and join again.",
        )
    verify(team, caller)
    return found


def _refuse_look_alike(team: Team, name: str) -> None:
    if name.lower() == "leader" and team.leader != name:
        raise errors.AlreadyExists(f"{name} stands for {team.leader}, who leads the team", "Choose another name.")
    for member in team.roster():
        if member.agent_id.lower() == name.lower() and member.agent_id != name:
            raise errors.AlreadyExists(f"{name} differs only in case from {member.agent_id}", "Choose another name.")


def expected(store: Store, team: Team, named: list[str], config: Config | None) -> list[str]:
    """Return those of the names under which a member is still expected: roles and agents of the configuration, and
    assignees of tasks.
    """
    strangers = [name for name in named if name not in (names.HUMAN, "leader") and team.find(name) is None]
    if not strangers:
        return []
    kept = {task.assignee for task in tasks.labelled(store, team.name, tasks.KEPT)}
    had = {member.role for member in team.members if member.active}
    return [name for name in strangers if name in kept or (name not in had and roles.definition_of(name, team, config))]


def next_name(team: Team) -> str:
    """Return the alias of the next member without a name of its own."""
    return names.alias(_next_alias(team))


def _next_alias(team: Team) -> int:
    taken = {member.agent_id.lower() for member in team.roster()}
    index = team.alias_count
    while names.alias(index).lower() in taken:
        index += 1
    return index


def renew_token(store: Store, team_name: str, agent: str) -> str:
    """Make a new token for a member of a secure team, since the files have only the hash of the old one. Empty in other
    teams.
    """
    if not teams.get(store, team_name).secure:
        return ""
    token = new_token()

    def change(team: Team) -> Team:
        member = team.member(agent)
        return team.with_member(member.having(token_hash=hash_token(token))) if member else team

    update(store, team_name, TEAM.also_closed, team_name, change)
    return token


def spawn_team(
    store: Store, name: str, caller: Caller | None, description: str | None = None, secure: bool = False
) -> tuple[Team, dict[str, str]]:
    """Create a team. You become its leader and first member.

    With *secure*, every member needs a token. The answer shows your token and the human's; only hashes of
    them are stored.

    Raises:
        AlreadyExists: A team of that name exists, in the same or another case.
        InvalidValue: The name is not valid.
        NotAllowed: You are a member but not a leader, or agents of your type may not create teams.
        DamagedRecord: A team of that name has tasks or messages, but its own record is lost.
    """
    names.check_name(name, "team")
    text.within(description or "", "description", text.MAX_MESSAGE)
    if caller is None:
        raise errors.NoIdentity("a team needs a leader", "Name the leader: --as AGENT or TEAMS_AGENT_ID")
    _judge(store, caller, name)
    defaults = settings.of_user(caller.config) if caller.config else {}
    team = Team(name=name, description=description, leader=caller.name, created_at=teams.now(store), settings=defaults)
    if not caller.is_human:
        names.check_name(caller.name, "agent")
        display = text.one_line(caller.display, "name") if caller.display else None
        leader = Member(agent_id=caller.name, agent_name=display, role=LEADER, joined_at=team.created_at)
        team = team.having(members=[leader])
    team, tokens = _secured(team) if secure else (team, {})
    _refuse_remains(store, name)
    store.create(name, TEAM, name, team)
    history.note(store, name, caller.name, "team created", description=description)
    return team, tokens


def _judge(store: Store, caller: Caller, name: str) -> None:
    """Check that the caller may create teams: by its role if it is a member, and by its own type, which can only
    restrict it further.
    """
    if caller.is_human:
        judged = [_Judgement(names.HUMAN, None, caller)]
    else:
        judged = sorted(_judgements(store, caller), key=_Judgement.weight)[:1]
        if caller.type or not judged:
            # Who says what it is without naming a role is a member with a specialty, and members don't create teams.
            said = (roles.role_for(caller.type, None, caller.config) or MEMBER) if caller.type else LEADER
            judged.append(_Judgement(said, None, caller))
    strictest = max(judged, key=_Judgement.weight)
    permission.judge(strictest.role, "spawn-team", strictest.decision, caller, name, strictest.team)


class _Judgement:
    """A role of the caller, in a team or by its type, and the rule for it about creating a team."""

    def __init__(self, role: str, team: Team | None, caller: Caller) -> None:
        self.role = role
        self.team = team
        self.decision = roles.verdict(role, "spawn-team", team, caller.config)

    def weight(self) -> int:
        """Return a number that is greater for a role with fewer rights."""
        return ("allow", "ask", "deny").index(self.decision)


def _judgements(store: Store, caller: Caller) -> Iterator[_Judgement]:
    """Return the judgements for the roles of the caller in all open teams. Damaged teams are skipped."""
    for team in teams.all_of(store, []):
        member = team.member(caller.name) if team.state != "closed" else None
        if member:
            yield _Judgement(member.role, team, caller)


def _refuse_remains(store: Store, name: str) -> None:
    """Refuse to create a team where tasks and messages of another are left."""
    if name not in store.teams() and (store.last(name, MESSAGE) or any(tasks.all_of(store, name, []))):
        raise errors.DamagedRecord(
            f"team {name} lost its own record, but not its tasks or messages",
            "Restore the record from a backup, or move the team's tasks and messages away. See where: teams doctor",
        )


def _secured(team: Team) -> tuple[Team, dict[str, str]]:
    tokens = {"token": new_token(), "humanToken": new_token()}
    members = [member.having(token_hash=hash_token(tokens["token"])) for member in team.members]
    return team.having(members=members, human_token_hash=hash_token(tokens["humanToken"])), tokens


def set_up(store: Store, team_name: str, caller: Caller | None, kinds: Sequence[Kind[Any]] = ()) -> dict[str, str]:
    """Give every active member of a `--secure` team its own database login, and remove the logins of those who
    left.

    An agent with its own login can't change the team, decisions, how agents are run, or the inboxes, claims and results
    of others, by any program. The answer shows the addresses of new logins with their passwords, once: put each address
    into the TEAMS_STORE of its agent only. Repeat it when members join or leave.

    Raises:
        WrongState: The team was not made with --secure.
        InvalidValue: The team is in files, which have no logins.
        NotAllowed: The present database login may not create logins.
    """
    at = require(store, team_name, caller, "set-up-roles")
    team, caller = at.team, at.caller
    if not team.secure:
        raise errors.WrongState(
            f"team {team.name} was made without --secure", "Make one: teams spawn-team NAME --secure"
        )
    agents = {member.agent_id: _does(team, member, caller) for member in team.members if member.active}
    made = store.admit(team.name, agents, kinds)
    if made:
        history.note(store, team.name, caller.name, "logins made", agents=sorted(made))
    return made


def _does(team: Team, member: Member, caller: Caller) -> str:
    """Return the class of the member in the database: `leads`, `manages` (it may manage or add tasks), or another."""
    base = lineage(member.role, team, caller.config)[-1]
    if base == LEADER:
        return "leads"
    return "manages" if base == MANAGER or tasks.may_add(team, member.role, caller.config) else ""


def leave(
    store: Store, team_name: str, caller: Caller | None, problems: list[errors.TeamsError] | None = None
) -> list[str]:
    """Leave the team. Your tasks in progress are released; your messages stay.

    Raises:
        Conflict: The leader can't leave.
    """
    if caller and _has_left(store, team_name, caller):
        return _freed(store, teams.get(store, team_name), caller.name, problems)
    caller = require(store, team_name, caller, "leave-team").caller
    name = caller.name

    def change(team: Team) -> Team:
        if team.leader == name:
            raise errors.WrongState(
                f"{name} leads team {team_name} and can't leave it",
                "Hand it over (teams hand-over AGENT) or close it (teams close-team).",
            )
        member = team.member(name)
        return team.with_member(member.having(left_at=teams.now(store))) if member else team

    _, team = update(store, team_name, TEAM, team_name, change)
    history.note(store, team_name, name, "member left")
    return _freed(store, team, name, problems)


def _freed(store: Store, team: Team, name: str, problems: list[errors.TeamsError] | None) -> list[str]:
    """Release the tasks of a member that has left, and return their ids."""
    try:
        freed = claims.release_tasks_of(store, team, name, name, "its owner left the team")
        assigning.free_all(store, team, name, f"{name} left the team")
        return freed
    except errors.TeamsError as failure:  # it has left: its claims are over, whoever writes that down
        said = f"its tasks will be released by the next command: they could not be released now ({failure.message})"
        if problems is not None:
            problems.append(errors.StorageFailed(said, failure.hint))
        return []


def _has_left(store: Store, team_name: str, caller: Caller) -> bool:
    """Whether the caller left before: it repeats a command whose answer was lost."""
    team = teams.get(store, team_name)
    member = team.find(caller.name)
    if member is None or member.active or member.stopped_by:
        return False
    verify(team, caller)
    return True


def _free_kept(store: Store, team: Team, heir: str) -> None:
    """Free the tasks that are assigned to the new leader. The next search for work frees those that fail now."""
    try:
        assigning.free_all(store, team, heir, f"{heir} leads the team now")
    except errors.TeamsError:
        return


def hand_over(store: Store, team_name: str, caller: Caller | None, to: str) -> Team:
    """Make another member the leader. You stay as a member.

    Raises:
        AgentNotFound: There is no such active member.
        Conflict: The new leader has tasks in progress, or is asked to shut down.
    """
    at = require(store, team_name, caller, "hand-over", to)
    before, caller = at.team, at.caller
    name = caller.name

    def change(team: Team) -> Team:
        heir = team.member(to)
        if heir is None:
            teams.get_recipient(team, to)
            raise errors.InvalidValue(f"{to} can't lead a team", f"Members: {team.names_in_words()}.")
        if to == team.leader:
            return team
        old = team.member(team.leader)
        changed = team.with_member(heir.having(role=LEADER)).having(leader=to)
        return changed.with_member(old.having(role=MEMBER)) if old else changed

    leases.release_all(store, before)
    busy = [task.id for task in tasks.labelled(store, team_name, tasks.IN_PROGRESS) if task.owner == to]
    if busy:
        raise errors.Conflict(f"{to} has {', '.join(busy)} in progress", "It must complete or release them first.")
    for asked in shutdowns.open_requests(store, before, to):
        raise errors.Conflict(
            f"{to} is asked to shut down: {asked.id}", "Wait for its answer, or choose another member."
        )
    before, team = update(store, team_name, TEAM, team_name, change)
    if before is not team:
        history.note(store, team_name, name, "team handed over", to=to)
        _free_kept(store, team, to)
    return team
