"""Making a team, joining it, leaving it, and handing over the lead."""

from __future__ import annotations

from teams_cli import errors, names, text
from teams_cli.membership.shutting_down import refuse_return
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.tasks import holding, overviews, tasks
from teams_cli.teams import chronicle, history, permission, roles, teams
from teams_cli.teams.caller import Caller
from teams_cli.teams.permission import hash_token, new_token, verify
from teams_cli.teams.teams import MEMBER, TEAM, Member, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
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

    Joining again in the same role changes nothing. If you left, you may come back under your name. In a team
    made with `--secure` the answer has your token; show it when you come back.

    Raises:
        TeamNotFound: There is no such team.
        AlreadyExists: A member in another role has that name, or one that differs only in case.
        NotAllowed: You lead a team, you were shut down, or the token is wrong.
    """
    wish = _Wish(caller, role, specialty, display, answer, started_by, child_of, launcher)

    team = teams.get(store, team_name)
    if wish.admitted(store, team) is not team and (gone := team.find(wish.member.agent_id)):
        name = gone.agent_id  # it left, and what it comes back to is not what it went from
        holding.release_tasks_of(store, team, name, name, "its owner left the team")
    before, after = update(store, team_name, TEAM, team_name, lambda found: wish.admitted(store, found))
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
        """The team with the member in it; the team itself if it was in it before."""
        if team.state == "closed":
            raise chronicle.of_closed(store, team.name, overviews.came_to(store, team.name))
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
            child_of=self.child_of,
            launcher=self.launcher,
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
        raise errors.AlreadyExists(
            f"{found.agent_id} is in team {team.name} as {found.role} already",
            "Choose another name, or leave and join again.",
        )
    verify(team, caller)
    return found


def _refuse_look_alike(team: Team, name: str) -> None:
    if name.lower() == "leader" and team.leader != name:
        raise errors.AlreadyExists(f"{name} means {team.leader}, who leads the team", "Choose another name.")
    for member in team.roster():
        if member.agent_id.lower() == name.lower() and member.agent_id != name:
            raise errors.AlreadyExists(f"{name} differs only in case from {member.agent_id}", "Choose another name.")


def expected(store: Store, team: Team, named: list[str], config: Config | None) -> list[str]:
    """Which of the names nobody has yet, and somebody may join under: a role or an agent in the configuration that no
    member has, or a task is kept for it.
    """
    strangers = [name for name in named if name not in (names.HUMAN, "leader") and team.find(name) is None]
    if not strangers:
        return []
    kept = {task.assignee for task in tasks.labelled(store, team.name, tasks.KEPT)}
    had = {member.role for member in team.members if member.active}
    return [name for name in strangers if name in kept or (name not in had and roles.definition_of(name, team, config))]


def next_name(team: Team) -> str:
    """The alias that the next member without a name of its own gets."""
    return names.alias(_next_alias(team))


def _next_alias(team: Team) -> int:
    taken = {member.agent_id.lower() for member in team.roster()}
    index = team.alias_count
    while names.alias(index).lower() in taken:
        index += 1
    return index


def renew_token(store: Store, team_name: str, agent: str) -> str:
    """Make a new token for a member of a secure team, whose own is known by its hash alone; empty in any other team."""
    if not teams.get(store, team_name).secure:
        return ""
    token = new_token()

    def change(team: Team) -> Team:
        member = team.member(agent)
        return team.with_member(member.having(token_hash=hash_token(token))) if member else team

    update(store, team_name, TEAM.also_closed, team_name, change)
    return token
