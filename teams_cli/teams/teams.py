"""Teams and their members."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import rfc3339
from teams_cli.names import HUMAN, check_name
from teams_cli.records.records import Owed, Record, field
from teams_cli.store.contract import Kind, Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from teams_cli.records.types import Count, Name, RoleTable, SettingTable, TeamState, Text, Time, Word

LEADER = "team-leader"
MEMBER = "team-member"
MANAGER = "task-manager"

SILENCE = 900
"""The default of `Team.silence`, in seconds."""


class Member(Record):
    """An agent of a team. The entry stays in the file after the agent left, so that no other agent gets its name.
    *launcher* is the process that started the agent.
    """

    agent_id: Name
    agent_name: Text | None = None
    agent_type: Word | None = None
    role: Name = MEMBER
    joined_at: Time | None = None
    left_at: Time | None = None
    stopped_by: Word | None = None
    started_by: Name | None = None
    child_of: Name | None = None
    launcher: Text | None = None
    answer: Text | None = None
    answer_host: Word | None = None
    token_hash: Word | None = None

    @property
    def active(self) -> bool:
        """Whether the agent is a member now: it neither left nor was shut down."""
        return self.left_at is None


class Grant(Record):
    """A lasting permission from the human: the agent may do the operation, although its rule says to `ask` first."""

    agent: Name
    operation: Word


class Team(Record):
    """A team: its leader, its members, its settings and its own roles."""

    nested = {"members": Member, "grants": Grant, "owed": Owed}  # noqa: RUF012

    name: Name
    description: Text | None = None
    leader: Name
    members: list[Member] = field(default_factory=list)
    created_at: Time
    state: TeamState = "active"
    closed_at: Time | None = None
    alias_count: Count = 0
    settings: SettingTable = field(default_factory=dict)
    budgets: SettingTable | None = None
    roles: RoleTable = field(default_factory=dict)
    grants: list[Grant] = field(default_factory=list)
    human_token_hash: Word | None = None
    copied_to: Text | None = None
    state_before: list[Text | None] | None = None
    copy_: Word | None = None
    owed: list[Owed] | None = None

    def uncopied(self) -> Team:
        """Return the team without the notes that say where it was copied to, and in what state it was before."""
        return self.having(copied_to=None, state_before=None, copy_=None)

    def find(self, agent: str) -> Member | None:
        """Return the member with that name, even if it left; None if there was never such a member."""
        return next((member for member in self.roster() if member.agent_id == agent), None)

    def member(self, agent: str) -> Member | None:
        """Return the active member with that name; None if there is no such member."""
        member = self.find(agent)
        return member if member and member.active else None

    def inside_clients(self) -> list[str]:
        """Return the names of members that run inside another agent's client. They are members only while they work."""
        return [member.agent_id for member in self.members if member.active and member.child_of]

    def active_names(self) -> list[str]:
        """Return the names of the active members, in the order of joining."""
        return [member.agent_id for member in self.roster() if member.active]

    def names_in_words(self, *more: str) -> str:
        """Return the names of the active members and the names *more*, separated by commas, for an error message."""
        return ", ".join([*self.active_names(), *more]) or "none has joined yet"

    def roster(self) -> list[Member]:
        """Return all present and former members in the order of joining. The leader is always among them, even if a
        hand-written file does not list it.
        """
        if self.leader == HUMAN or any(member.agent_id == self.leader for member in self.members):
            return list(self.members)
        return [Member(agent_id=self.leader, role=LEADER, joined_at=self.created_at), *self.members]

    def grants_to(self, agent: str, operation: str) -> bool:
        """Whether the human has given the agent a lasting permission for the operation."""
        return any(grant.agent == agent and grant.operation == operation for grant in self.grants)

    def with_member(self, member: Member) -> Team:
        """Return the team with *member*, which replaces a member of the same name or is added at the end."""
        members = {old.agent_id: old for old in self.members}
        return self.having(members=list({**members, member.agent_id: member}.values()))

    @property
    def secure(self) -> bool:
        """Whether each member of the team must prove its identity with a token."""
        return self.human_token_hash is not None

    @property
    def silence(self) -> float:
        """The seconds without a sign of life after which a member counts as gone and its claims end."""
        return float(self.settings.get("staleAfterSeconds", SILENCE))


TEAM: Kind[Team] = Kind("team", Team, key="name", closes=lambda team: team.state == "closed")


def get(store: Store, team: str) -> Team:
    """Return the team with that name.

    Raises:
        TeamNotFound: There is no such team. The hint names the team that was probably meant, or all teams.
        DamagedRecord: The file of the team is damaged.
    """
    try:
        return store.get(team, TEAM, team)[0]
    except errors.NotFound:
        names = store.teams()
        hint = f"Teams: {', '.join(names[:20])}." if names else "Create it: teams spawn-team NAME"
        if meant := nearest(team, names):
            hint = f"Did you mean {meant}?"
        raise errors.TeamNotFound(f"there is no team {team!r}", hint) from None


def is_member(store: Store, team: Team, name: str) -> bool:
    """Whether the agent *name* is an active member now. If *team* lacks this member, the team is read again, because
    the agent may have joined since.
    """
    return bool(team.member(name) or get(store, team.name).member(name))


def all_of(store: Store, problems: list[errors.TeamsError]) -> Iterator[Team]:
    """Yield all teams by name. The error of each damaged team is appended to *problems*."""
    for name in store.teams():
        try:
            yield get(store, name)
        except errors.TeamsError as problem:
            problems.append(problem)


def nearest(name: str, known_names: Sequence[str]) -> str:
    """Return the name in *known_names* that was probably meant by *name*; empty if none is similar."""
    from difflib import get_close_matches  # its import takes long, and only refusals need it

    same_but_case = [known for known in known_names if known.lower() == name.lower()]
    matches = same_but_case or get_close_matches(name, known_names, n=1, cutoff=0.75)
    return matches[0] if matches else ""


def look_alike(team: Team, name: str) -> str:
    """Return why a new *name* could be mistaken for another: it stands for the leader, or differs only in case from the
    name of a member. Nobody can join with such a name. Return "" for any other name.
    """
    if name.lower() == "leader" and team.leader != name:
        return f"{name} stands for {team.leader}, who leads the team"
    for member in team.roster():
        if member.agent_id.lower() == name.lower() and member.agent_id != name:
            return f"{name} differs only in case from {member.agent_id}"
    return ""


def refuse_unjoinable(team: Team, name: str) -> None:
    """Refuse a *name* of which something is expected, although nobody can join with this name.

    Raises:
        InvalidValue: The name is not valid, or is reserved.
        AgentNotFound: It could be mistaken for another name. The hint names the members.
    """
    check_name(name, "agent")
    if why := look_alike(team, name):
        raise errors.AgentNotFound(f"nobody can join as {name}: {why}", f"Members: {team.names_in_words(HUMAN)}.")


def get_recipient(team: Team, name: str) -> str:
    """Return the name of the active member or human that *name* means; `leader` means the leader.

    Raises:
        AgentNotFound: There is no such member; the hint names the active members.
    """
    if name == HUMAN or team.member(name):
        return name
    if name == "leader":
        return team.leader
    why, hint = "", ""
    former = team.find(name)
    if former is None:
        if meant := nearest(name, team.active_names()):
            hint = f"Did you mean {meant}? "
    elif former.child_of:
        why, hint = f": its task for {former.child_of} is done", f"{former.child_of} has its last answer: ask there. "
    else:
        why = f": it was shut down ({former.stopped_by})" if former.stopped_by else ": it left"
    raise errors.AgentNotFound(
        f"team {team.name} has no active member {name!r}{why}", f"{hint}Members: {team.names_in_words(HUMAN)}."
    )


def now(store: Store) -> str:
    """Return the store's time as text, in the form used in records."""
    return rfc3339(store.now())
