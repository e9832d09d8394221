"""The tokens and the time that agents used: record them turn by turn, add them up, and limit them by budgets."""

from __future__ import annotations

from contextlib import suppress

from teams_cli import errors
from teams_cli.agents import sessions
from teams_cli.agents.sessions import Session
from teams_cli.clients.output import Tokens, grows, of_turn_in, tokens_in
from teams_cli.clients.profiles import Profile
from teams_cli.clock import parse_rfc3339
from teams_cli.messages.notices import deliver
from teams_cli.names import HUMAN
from teams_cli.records.records import Owed, Record, field, owing
from teams_cli.store.contract import Kind, Store, update, upsert
from teams_cli.tasks import tasks
from teams_cli.teams import history, settings, teams
from teams_cli.teams.permission import require
from teams_cli.teams.teams import TEAM, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from teams_cli.records.types import Count, Name, Seconds, TaskId, Time, Word
    from teams_cli.teams.permission import Caller


class TurnUsage(Record):
    """The tokens and the time that one turn used. *tokens* is None if the client reported no tokens; *tasks* is empty
    if the turn was only for messages.
    """

    nested = {"tokens": Tokens}  # noqa: RUF012

    turn: Count
    run: Word
    at: Time
    seconds: Seconds
    tasks: list[TaskId] = field(default_factory=list)
    tokens: list[Tokens] | None = None


class Usage(Record):
    """The tokens and the time that one agent used, turn by turn. *said* has the last counts that the client reported,
    if it reports totals for its session instead of tokens per turn.
    """

    nested = {"turns": TurnUsage, "said": Tokens, "owed": Owed}  # noqa: RUF012

    agent: Name
    turns: list[TurnUsage] = field(default_factory=list)
    session_id: Word | None = None
    said: list[Tokens] = field(default_factory=list)
    owed: list[Owed] | None = None


USAGE: Kind[Usage] = Kind("usage", Usage, key="agent", logins="own")


def _all_usage(store: Store, team: str, problems: list[errors.TeamsError]) -> list[Usage]:
    """Return the usage of every agent that `teams` started."""
    return [usage for usage, _ in store.scan(team, USAGE, problems)]


def _total_tokens(turns: Iterable[TurnUsage]) -> int:
    """Return the number of tokens that these turns used. A turn whose tokens are not known adds nothing."""
    return sum(counts.total for turn in turns for counts in turn.tokens or ())


def record_usage(store: Store, team: str, session: Session, profile: Profile, printed: str, began: str) -> None:
    """Add a finished turn to the usage of its agent. Warnings about budgets that the turn uses up are stored together
    with the turn, and then sent. *printed* is what the client printed, and *began* is when the turn began.
    """
    now = teams.now(store)
    seconds = (parse_rfc3339(now) - parse_rfc3339(began)).total_seconds()
    printed_counts = tokens_in(profile, printed, session.model)  # of some clients, those of the whole session
    printed_of_turn = of_turn_in(profile, printed)  # the tokens of this turn alone, which few clients print
    worked_on = []  # the tasks that are in progress now, or were completed in this turn
    for task in tasks.all_of(store, team, []):
        was_completed_now = task.completed_at is not None and parse_rfc3339(task.completed_at) >= parse_rfc3339(began)
        if task.owner == session.agent and (task.status == tasks.IN_PROGRESS or was_completed_now):
            worked_on.append(task.id)
    turn = TurnUsage(
        turn=session.turns,
        run=session.run,
        at=now,
        seconds=round(max(0.0, seconds), 3),
        tasks=worked_on,
        tokens=printed_counts,
    )

    def with_turn(usage: Usage) -> Usage:
        added = turn
        if printed_counts is not None and grows(profile):  # the client counts from the start of its session
            is_same_session = usage.session_id == session.session_id
            counts_before = {counts.model: counts for counts in usage.said} if is_same_session else {}
            counts_now = {counts.model: counts for counts in printed_counts}
            tokens = []  # the counts of each model without what the earlier turns used
            for model, counts in counts_now.items():
                tokens.append(counts.minus(counts_before[model]) if model in counts_before else counts)
            if printed_of_turn and sum(counts.total for counts in tokens) < printed_of_turn.total:
                counts_before, tokens = {}, printed_counts  # the client began to count again within its session
            added = turn.having(tokens=tokens)
            # A model that this turn did not use keeps its last counts.
            usage = usage.having(session_id=session.session_id, said=list({**counts_before, **counts_now}.values()))
        return owing(usage.having(turns=[*usage.turns, added]), *_warnings(store, team, session, added))

    usage = upsert(store, team, USAGE.even_in_closed_team, session.agent, Usage(agent=session.agent), with_turn)[1]
    deliver(store, team, USAGE.even_in_closed_team, usage)


SPENT_BY = ("agent", "task", "model")
_COUNTS = ("input", "cached", "output")
_MAIL = "(mail)"
"""The row of turns that were for no task."""


def spent(store: Store, team: Team, by: str, problems: list[errors.TeamsError]) -> dict[str, Any]:
    """Return the tokens and the time that were used. `rows` has them by agent, task or model, as *by* says. There is
    also the total.

    `input` and `output` count tokens, and `cached` is the part of the input that came from a cache. These counts are
    null if no turn was counted. `uncounted` is the number of turns whose client did not report tokens. The tokens of a
    turn for several tasks are divided evenly. `coordination` is the share of tokens in turns for mail alone, from 0 to
    1.
    """
    rows: dict[str, _Sum] = {}
    total = _Sum()
    turns = []
    for usage in _all_usage(store, team.name, problems):
        for turn in usage.turns:
            turns.append(turn)
            total.add(turn, 1.0)
            for name, share, turn_in_row in _rows_of_turn(by, usage.agent, turn):
                rows.setdefault(name, _Sum()).add(turn_in_row, share)
    all_tokens = _total_tokens(turns)
    mail_tokens = _total_tokens(turn for turn in turns if not turn.tasks)
    return {
        "by": by,
        "rows": [
            {by: name, **rows[name].to_document()} for name in sorted(rows, key=lambda name: (-rows[name].size, name))
        ],
        "total": total.to_document(),
        "coordination": round(mail_tokens / all_tokens, 3) if all_tokens else None,
        "budgets": [budget.to_document() for budget in _with_taken(store, team, _limits(team))],
    }


class _Sum:
    """The sum of what several turns used."""

    def __init__(self) -> None:
        self.turns = self.uncounted = 0
        self.seconds = 0.0
        self.counts = dict.fromkeys(_COUNTS, 0.0)

    def add(self, turn: TurnUsage, share: float) -> None:
        """Add what the turn used, multiplied by *share*, a number between 0 and 1."""
        self.turns += 1
        self.seconds += share * turn.seconds
        if turn.tokens is None:
            self.uncounted += 1
        for tokens in turn.tokens or ():
            for kind in _COUNTS:
                self.counts[kind] += share * getattr(tokens, kind)

    @property
    def size(self) -> float:
        """The number of all tokens. Those from a cache are counted with the input."""
        return self.counts["input"] + self.counts["output"]

    def to_document(self) -> dict[str, Any]:
        """Return the sum as JSON. Counts of tokens are None if no turn was counted."""
        counts = {**self.counts, "total": self.size}
        is_counted = self.turns > self.uncounted
        shown = {kind: round(count) if is_counted else None for kind, count in counts.items()}
        return {"turns": self.turns, "uncounted": self.uncounted, **shown, "seconds": round(self.seconds, 1)}


def _rows_of_turn(by: str, agent: str, turn: TurnUsage) -> Iterator[tuple[str, float, TurnUsage]]:
    """Yield the name of each row to which the agent's turn contributes, the share of the turn that counts for the row,
    and the turn. In a row of a model, the turn has only the tokens of this model.
    """
    if by == "agent":
        yield agent, 1.0, turn
    elif by == "task":
        names = turn.tasks or [_MAIL]
        for name in names:
            yield name, 1.0 / len(names), turn
    else:
        models = dict.fromkeys(tokens.model or "unknown" for tokens in turn.tokens or ())
        for model in models or ["unknown"]:  # a turn without tokens counts as uncounted
            tokens = turn.tokens and [each for each in turn.tokens if (each.model or "unknown") == model]
            yield model, 1.0, turn.having(tokens=tokens)


SETTING = "budget"
_WARNED_AT = 0.8
"""The first warning about a budget is sent when this share of it is used."""


class Budget:
    """A limit on the number of tokens that may be used. *taken* is the number of tokens used so far. *of* is the agent
    or the run that the limit applies to, or "" for the whole team. *uncounted* is the number of turns whose tokens are
    not known.
    """

    def __init__(self, of: str, limit: int, taken: int, uncounted: int) -> None:
        self.of = of
        self.limit = limit
        self.taken = taken
        self.uncounted = uncounted

    @property
    def used_up(self) -> bool:
        """Whether the limit is reached, so that no new turn may begin."""
        return self.taken >= self.limit

    def __str__(self) -> str:
        whose = f"the budget of {self.of}" if self.of else "the budget of the team"
        return f"{whose}: {self.taken:,} of {self.limit:,} tokens are used"

    @property
    def raised_by(self) -> str:
        """The command that raises the budget."""
        for_whom = f" --for {self.of}" if self.of else ""
        return f"teams set {SETTING} TOKENS{for_whom}"

    def to_document(self) -> dict[str, Any]:
        """Return the budget as JSON. `of` is the agent or the run that the budget limits, or null for the team."""
        return {"of": self.of or None, "limit": self.limit, "taken": self.taken, "uncounted": self.uncounted}


def used_up(store: Store, team_name: str, agent: str, run: str) -> Budget | None:
    """Return the first used-up budget among those of the team, the agent and the *run*, or None if none is used up, so
    that the agent may begin another turn. *agent* is "" if the agent has no name yet.

    Raises:
        DamagedRecord: A budget applies, but the agent's usage can't be read.
    """
    team = teams.get(store, team_name)
    limits = _limits_for(team, agent, run)
    if limits and agent:
        with suppress(errors.NotFound):  # refuses a damaged record, which would count as no tokens below
            store.get(team_name, USAGE, agent)
    return next((budget for budget in _with_taken(store, team, limits) if budget.used_up), None)


def change(store: Store, team_name: str, caller: Caller | None, of: str, tokens: str) -> int:
    """Set the budget of the agent or run *of* to *tokens*, or remove the budget if *tokens* is 0 or empty. Returns the
    new limit, or 0 if there is no budget now.

    Raises:
        InvalidValue: There is no such agent or run, or the limit is not a valid number of tokens.
    """
    by = require(store, team_name, caller, "set", SETTING).caller.name
    limit = int(settings.known(SETTING).parse(SETTING, tokens)) if tokens else 0
    team = teams.get(store, team_name)
    if team.find(of) is None:
        is_run = any(session.run == of for session, _ in store.scan(team_name, sessions.SESSION, []))
        if not is_run:
            why = f"team {team_name} has no agent and no run {of!r}"
            raise errors.InvalidValue(why, "See: teams list-agents --json")

    def with_limit(team: Team) -> Team:
        budgets = {name: number for name, number in (team.budgets or {}).items() if name != of}
        if limit:
            budgets[of] = limit
        return team.having(budgets=budgets or None)

    update(store, team_name, TEAM, team_name, with_limit)
    history.note(store, team_name, by, "setting changed", key=SETTING, value=limit, of=of)
    return limit


def _warnings(store: Store, team_name: str, session: Session, turn: TurnUsage) -> list[Owed]:
    """Return notices to the leader and the human about each budget that is used to 80 % or 100 %, counting *turn*,
    which is not stored yet. The uid of a notice ensures that it is sent once for each limit and percentage.
    """
    team = teams.get(store, team_name)
    notices = []
    for budget in _with_taken(store, team, _limits_for(team, session.agent, session.run)):
        budget.taken += _total_tokens([turn])
        if budget.taken < _WARNED_AT * budget.limit:
            continue
        if budget.used_up:
            percent, consequence = 100, f"no new turn begins; raise it: {budget.raised_by}"
        else:
            percent, consequence = 80, "at the limit no turn begins"
        uid = f"budget-{budget.of}-{budget.limit}-{percent}"
        notices += [
            Owed(to=to, message=f"{budget}; {consequence}", uid=f"{uid}~{to}", by=session.agent, event="budget")
            for to in dict.fromkeys((team.leader, HUMAN))  # once, if the human leads the team
        ]
    return notices


def _limits(team: Team) -> dict[str, int]:
    """Return the token limits by the name of the agent or run. The limit of the whole team has the key ""."""
    limits = {of: int(limit) for of, limit in (team.budgets or {}).items()}
    of_team = int(settings.value(team, SETTING))
    return {"": of_team, **limits} if of_team else limits


def _limits_for(team: Team, agent: str, run: str) -> dict[str, int]:
    return {of: limit for of, limit in _limits(team).items() if of in ("", agent, run)}


def _with_taken(store: Store, team: Team, limits: dict[str, int]) -> Iterator[Budget]:
    """Yield a budget for each of the *limits*, with the tokens used so far. Usage that can't be read is not counted."""
    usages = _all_usage(store, team.name, []) if limits else []
    for of, limit in limits.items():
        turns = [turn for usage in usages for turn in usage.turns if of in ("", usage.agent, turn.run)]
        yield Budget(of, limit, _total_tokens(turns), sum(turn.tokens is None for turn in turns))
