"""Founding a team."""

from __future__ import annotations

from teams_cli import errors, names, text
from teams_cli.messages.messages import MESSAGE
from teams_cli.store.contract import Store
from teams_cli.tasks import tasks
from teams_cli.teams import history, permission, roles, settings, teams
from teams_cli.teams.caller import Caller
from teams_cli.teams.permission import hash_token, new_token
from teams_cli.teams.teams import LEADER, MEMBER, TEAM, Member, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def spawn_team(
    store: Store, name: str, caller: Caller | None, description: str | None = None, secure: bool = False
) -> tuple[Team, dict[str, str]]:
    """Create a team. You become its leader and first member.

    With *secure*, every member needs a token from then on. The answer has yours and the human's; only hashes
    are kept.

    Raises:
        AlreadyExists: A team has that name, or one that differs only in case.
        InvalidValue: The name is not valid.
        NotAllowed: You are a member of a team and lead none, or agents of your type do not create teams.
        DamagedRecord: A team of that name lost its own record, but not its tasks or messages.
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
    """Check that the caller may create teams: by its role where it is a member, and by what it says of itself, which
    can only take from that.
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
    """A role of the caller, in a team or by its own word, and what the rules say of it when it makes a team."""

    def __init__(self, role: str, team: Team | None, caller: Caller) -> None:
        self.role = role
        self.team = team
        self.decision = roles.verdict(role, "spawn-team", team, caller.config)

    def weight(self) -> int:
        """The heavier, the less is allowed."""
        return ("allow", "ask", "deny").index(self.decision)


def _judgements(store: Store, caller: Caller) -> Iterator[_Judgement]:
    """Where the caller stands in the teams that are open; what one that is damaged would say of that is not known."""
    for team in teams.all_of(store, []):
        member = team.member(caller.name) if team.state != "closed" else None
        if member:
            yield _Judgement(member.role, team, caller)


def _refuse_remains(store: Store, name: str) -> None:
    """Refuse to begin a team over the tasks and the mail of another."""
    if name not in store.teams() and (store.last(name, MESSAGE) or any(tasks.all_of(store, name, []))):
        raise errors.DamagedRecord(
            f"team {name} lost its own record, and there are tasks or messages of it",
            "Restore the record from a backup, or move the rest away; to list it: teams doctor",
        )


def _secured(team: Team) -> tuple[Team, dict[str, str]]:
    tokens = {"token": new_token(), "humanToken": new_token()}
    members = [member.having(token_hash=hash_token(tokens["token"])) for member in team.members]
    return team.having(members=members, human_token_hash=hash_token(tokens["humanToken"])), tokens
