"""Making a team, joining it, leaving it, and handing over the lead."""

from __future__ import annotations

from teams_cli import claims, history, leases, names, roles, settings, shutdowns, tasks, teams, text
from teams_cli.caller import Caller
from teams_cli.errors import AlreadyExists, Conflict, DamagedRecord, InvalidValue, NoIdentity, NotAllowed, WrongState
from teams_cli.messages import MESSAGE
from teams_cli.roles import require
from teams_cli.store.contract import update
from teams_cli.teams import LEADER, MEMBER, TEAM, Member, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.store.contract import Store


def spawn_team(
    store: Store, name: str, caller: Caller | None, description: str | None = None, secure: bool = False
) -> tuple[Team, dict[str, str]]:
    """Create a team; the caller becomes its leader and first member.

    With *secure*, every member proves itself by a token from then on: the leader's and the human's are returned,
    and only their hashes are kept.

    Raises:
        AlreadyExists: There is a team of that name, or of one that differs only in case.
        InvalidValue: The name can't be one.
        NotAllowed: The caller's type is one of those that don't create teams.
        DamagedRecord: There are tasks or messages of a team of that name which lost its own record.
    """
    names.check_name(name, "team")
    text.within(description or "", "description", text.MAX_MESSAGE)
    if caller is None:
        raise NoIdentity("a team needs a leader", "Say who leads it: --as AGENT or TEAMS_AGENT_ID.")
    # Who says what it is without naming a role is a member with a specialty, and members don't create teams.
    said = (roles.role_for(caller.type, None, caller.config) or MEMBER) if caller.type else LEADER
    role = names.HUMAN if caller.is_human else said
    roles.judge(role, "spawn-team", roles.verdict(role, "spawn-team", None, caller.config), caller, name)
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


def _refuse_remains(store: Store, name: str) -> None:
    """Refuse to begin a team over the tasks and the mail of another."""
    if name not in store.teams() and (store.last(name, MESSAGE) or any(tasks.everything(store, name, []))):
        raise DamagedRecord(
            f"team {name} lost its own record, and there are tasks or messages of it",
            "Bring the record back from a backup, or move the others away; `teams doctor` names them.",
        )


def _secured(team: Team) -> tuple[Team, dict[str, str]]:
    tokens = {"token": roles.new_token(), "humanToken": roles.new_token()}
    members = [member.having(token_hash=roles.hash_token(tokens["token"])) for member in team.members]
    return team.having(members=members, human_token_hash=roles.hash_token(tokens["humanToken"])), tokens


def join(
    store: Store,
    team_name: str,
    caller: Caller | None,
    role: str | None = None,
    specialty: str | None = None,
    display: str | None = None,
    answer: str | None = None,
    started_by: str | None = None,
) -> tuple[Member, str]:
    """Become a member of a team. Without a name of its own, the caller gets the next alias: agentA, agentB, …

    Joining again with the same role changes nothing; who left may come back under its name. In a team made with
    `--secure`, the token of a new member is returned, and who comes back shows the one it had.

    Raises:
        TeamNotFound: There is no such team.
        AlreadyExists: The name is a member's in another role, or differs from a member's only in case.
        NotAllowed: Leaders create teams and don't join; who was shut down does not come back; the token is wrong.
    """
    wish = _Wish(caller, role, specialty, display, answer, started_by)

    def change(team: Team) -> Team:
        return wish.admitted(store, team)

    teams.load(store, team_name)
    before, after = update(store, team_name, TEAM, team_name, change)
    if before is after:
        return wish.member, ""
    history.note(store, team_name, wish.member.agent_id, "member joined", role=wish.member.role)
    return wish.member, wish.token


class _Wish:
    """What somebody who wants to join says of itself; and, once admitted, the member that it is, and its token."""

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
    ) -> None:
        self.caller = caller
        self.config = caller.config if caller else None
        self.role = role
        self.specialty = specialty
        self.display = (caller.display or None) if caller and display is None else display
        self.answer = answer
        self.started_by = started_by

    def admitted(self, store: Store, team: Team) -> Team:
        """The team with the member in it; the team itself if it was in it before."""
        if team.state == "closed":
            raise WrongState(f"team {team.name} is closed", f"`teams restore-team {team.name}` opens it again.")
        draft = self._draft(store, team)
        asking = self.caller or Caller(draft.agent_id)
        allowed = roles.verdict(draft.role, "join-team", team, asking.config)
        roles.judge(draft.role, "join-team", allowed, asking, team.name)
        _refuse_look_alike(team, draft.agent_id)
        found = team.find(draft.agent_id)
        if found and found.active:
            self.member = _same_again(team, found, draft, asking)
            return team
        if found:
            roles.verify(team, asking)
            _refuse_return(store, team, found)
        if team.secure:
            self.token = roles.new_token()
            draft = draft.having(token_hash=roles.hash_token(self.token))
        self.member = draft
        changed = team.with_member(draft)
        return changed if self.caller else changed.having(alias_count=_next_alias(team) + 1)

    def _draft(self, store: Store, team: Team) -> Member:
        """The member that the caller would become."""
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
        )

    def _role(self, team: Team, name: str) -> tuple[str, str | None]:
        """Its role and specialty: what it asks for, else what its type means, else what it was."""
        word = self.caller.type if self.caller else ""
        meant = roles.role_for(word, team, self.config) if word else None
        specialty = word if self.specialty is None and word and meant is None else self.specialty
        if self.role is not None:
            return roles.known_role(self.role, team, self.config), specialty
        member = team.member(name)
        return meant or (member.role if member else MEMBER), specialty


def _same_again(team: Team, found: Member, draft: Member, caller: Caller) -> Member:
    if draft.role != found.role:
        raise AlreadyExists(
            f"{found.agent_id} is in team {team.name} as {found.role} already",
            "Choose another name, or leave and join again.",
        )
    roles.verify(team, caller)
    return found


def _refuse_return(store: Store, team: Team, found: Member) -> None:
    if found.stopped_by:
        raise NotAllowed(f"{found.agent_id} was shut down ({found.stopped_by})", "Join under another name.")
    claims.release_tasks_of(store, team, found.agent_id, found.agent_id, "its owner left the team")


def _refuse_look_alike(team: Team, name: str) -> None:
    if name.lower() == "leader" and team.leader != name:
        raise AlreadyExists(f"{name} means {team.leader}, who leads the team", "Choose another name.")
    for member in team.members:
        if member.agent_id.lower() == name.lower() and member.agent_id != name:
            raise AlreadyExists(f"{name} differs only in case from {member.agent_id}", "Choose another name.")


def next_name(team: Team) -> str:
    """The alias that the next member without a name of its own gets."""
    return names.alias(_next_alias(team))


def _next_alias(team: Team) -> int:
    taken = {member.agent_id.lower() for member in team.members}
    index = team.alias_count
    while names.alias(index).lower() in taken:
        index += 1
    return index


def leave(store: Store, team_name: str, caller: Caller | None) -> list[str]:
    """Leave the team. What you have in progress becomes free, and your messages stay.

    Raises:
        Conflict: The leader can't leave.
    """
    require(store, team_name, caller, "leave-team")
    assert caller is not None
    name = caller.name

    def change(team: Team) -> Team:
        if team.leader == name:
            raise WrongState(
                f"{name} leads team {team_name} and can't leave it",
                "Hand it over (teams hand-over AGENT) or close it (teams close-team).",
            )
        member = team.member(name)
        return team.with_member(member.having(left_at=teams.now(store))) if member else team

    _, team = update(store, team_name, TEAM, team_name, change)
    history.note(store, team_name, name, "member left")
    return claims.release_tasks_of(store, team, name, name, "its owner left the team")


def hand_over(store: Store, team_name: str, caller: Caller | None, to: str) -> Team:
    """Make another member the leader; the old leader stays as a member.

    Raises:
        AgentNotFound: There is no such active member.
        Conflict: It has tasks in progress, which leaders have not, or is asked to shut down, which leaders are not.
    """
    before = require(store, team_name, caller, "hand-over", to)
    assert caller is not None
    name = caller.name

    def change(team: Team) -> Team:
        heir = team.member(to)
        if heir is None:
            teams.find_recipient(team, to)
            raise InvalidValue(f"{to} can't lead a team", f"Members: {', '.join(team.active_names())}.")
        if to == team.leader:
            return team
        old = team.member(team.leader)
        changed = team.with_member(heir.having(role=LEADER)).having(leader=to)
        return changed.with_member(old.having(role=MEMBER)) if old else changed

    leases.release_all(store, before)
    busy = [task.id for task in tasks.labelled(store, team_name, tasks.IN_PROGRESS) if task.owner == to]
    if busy:
        raise Conflict(f"{to} has {', '.join(busy)} in progress", "Let it complete or release them first.")
    for asked in shutdowns.open_requests(store, before, to):
        raise Conflict(f"{to} is asked to shut down: {asked.id}", "Let it answer first, or choose another member.")
    before, team = update(store, team_name, TEAM, team_name, change)
    if before is not team:
        history.note(store, team_name, name, "team handed over", to=to)
    return team
