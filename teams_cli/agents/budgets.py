"""Budgets: how many tokens a team, one of its agents, or one run may take, and what happens when they are used up."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.agents import sessions, usage
from teams_cli.agents.sessions import Session
from teams_cli.agents.usage import TurnUsage
from teams_cli.names import HUMAN
from teams_cli.records.owed import Owed
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.teams import history, settings, teams
from teams_cli.teams.permission import require
from teams_cli.teams.teams import TEAM, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from teams_cli.teams.caller import Caller

SETTING = "budget"
_WARNED_AT = 0.8


class Budget:
    """How many tokens may be taken, and are: of the team, where *of* is empty, or of the agent or run of that name.
    What *uncounted* turns took nobody knows.
    """

    def __init__(self, of: str, limit: int, taken: int, uncounted: int) -> None:
        self.of = of
        self.limit = limit
        self.taken = taken
        self.uncounted = uncounted

    @property
    def used_up(self) -> bool:
        """Whether no new turn may begin."""
        return self.taken >= self.limit

    def __str__(self) -> str:
        whose = f"the budget of {self.of}" if self.of else "the budget of the team"
        return f"{whose}: {self.taken:,} of {self.limit:,} tokens are used"

    @property
    def raised_by(self) -> str:
        """The command that raises it."""
        return f"teams set {SETTING} TOKENS{f' --for {self.of}' if self.of else ''}"

    def to_document(self) -> dict[str, Any]:
        """The budget as JSON: `of` is the agent or run, or null for the team."""
        return {"of": self.of or None, "limit": self.limit, "taken": self.taken, "uncounted": self.uncounted}


def of_team(store: Store, team: Team) -> list[Budget]:
    """All budgets that were set."""
    return list(_with_taken(store, team, _limits(team)))


def used_up(store: Store, team_name: str, agent: str, run: str) -> Budget | None:
    """The first budget that keeps the agent from another turn; None if it may have one.

    Raises:
        DamagedRecord: There is one, and what the agent itself took can't be read.
    """
    team = teams.get(store, team_name)
    limits = _concerning(team, agent, run)
    if limits and agent:
        usage.of(store, team_name, agent)
    return next((budget for budget in _with_taken(store, team, limits) if budget.used_up), None)


def refuse_used_up(store: Store, team: Team, agent: str, run: str) -> None:
    """Raises WrongState: No turn may begin, since a budget is used up; says whose, and how it is raised."""
    if budget := used_up(store, team.name, agent, run):
        raise errors.WrongState(f"no agent can start: {budget}", f"Raise it: {budget.raised_by}")


def change(store: Store, team_name: str, caller: Caller | None, of: str, word: str) -> int:
    """Give the budget of one agent or one run another limit; 0 for none.

    Raises:
        InvalidValue: There is no such agent or run, or the limit is not a valid number of tokens.
    """
    by = require(store, team_name, caller, "set", SETTING).caller.name
    limit = int(settings.known(SETTING).parse(SETTING, word))
    team = teams.get(store, team_name)
    if team.find(of) is None and not any(s.run == of for s, _ in store.scan(team_name, sessions.SESSION, [])):
        raise errors.InvalidValue(f"team {team_name} has no agent and no run {of!r}", "See: teams list-agents --json")

    def edit(team: Team) -> Team:
        kept = {name: number for name, number in (team.budgets or {}).items() if name != of}
        return team.having(budgets={**kept, of: limit} if limit else kept or None)

    update(store, team_name, TEAM, team_name, edit)
    history.note(store, team_name, by, "setting changed", key=SETTING, value=limit, of=of)
    return limit


def warnings(store: Store, team_name: str, session: Session, took: TurnUsage) -> list[Owed]:
    """What the leader and the person are to be told of budgets that the turn brought near their end, or to it.

    The names of the notices are made from budget and limit, so that each is told once.
    """
    team = teams.get(store, team_name)
    now = usage.total([took])
    told = []
    for budget in _with_taken(store, team, _concerning(team, session.agent, session.run)):
        budget.taken += now
        if budget.taken < _WARNED_AT * budget.limit:
            continue
        share = "100" if budget.used_up else "80"
        what = f"no new turn begins; raise it: {budget.raised_by}" if budget.used_up else "at the limit no turn begins"
        uid = f"budget-{budget.of}-{budget.limit}-{share}"
        told += [
            Owed(to=to, message=f"{budget}; {what}", uid=f"{uid}~{to}", by=session.agent)
            for to in dict.fromkeys((team.leader, HUMAN))
        ]
    return told


def _limits(team: Team) -> dict[str, int]:
    """The limits that were set, by whose they are; the team's own under an empty name."""
    whole = int(settings.value(team, SETTING))
    return {**({"": whole} if whole else {}), **{of: int(limit) for of, limit in (team.budgets or {}).items()}}


def _concerning(team: Team, agent: str, run: str) -> dict[str, int]:
    return {of: limit for of, limit in _limits(team).items() if of in ("", agent, run)}


def _with_taken(store: Store, team: Team, limits: dict[str, int]) -> Iterator[Budget]:
    """The budgets with what was taken of each; what can't be read is not counted."""
    taken = usage.all_of(store, team.name, []) if limits else []
    for of, limit in limits.items():
        turns = [turn for each in taken for turn in each.turns if of in ("", each.agent, turn.run)]
        yield Budget(of, limit, usage.total(turns), sum(turn.tokens is None for turn in turns))
