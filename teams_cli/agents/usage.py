"""Usage of agents: what each turn took, in tokens and seconds, as its client says, and the tasks that it was for."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.agents.sessions import Session
from teams_cli.clients.profiles import Profile
from teams_cli.clients.usage import Tokens, grows, of_turn_in, tokens_in
from teams_cli.clock import parse_rfc3339
from teams_cli.messages.notices import deliver
from teams_cli.records.owed import Owed, owing
from teams_cli.records.records import Record, field
from teams_cli.store.contract import Kind, Store
from teams_cli.store.retrying import upsert
from teams_cli.tasks import tasks
from teams_cli.teams import teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from teams_cli.records.types import Count, Name, Seconds, TaskId, Time, Word


class TurnUsage(Record):
    """What one turn took. Without *tokens* its client did not say; without *tasks* it was for mail alone."""

    nested = {"tokens": Tokens}  # noqa: RUF012

    turn: Count
    run: Word
    at: Time
    seconds: Seconds
    tasks: list[TaskId] = field(default_factory=list)
    tokens: list[Tokens] | None = None


class Usage(Record):
    """What one agent took, turn by turn; *said* is what its client counts since the beginning of that session."""

    nested = {"turns": TurnUsage, "said": Tokens, "owed": Owed}  # noqa: RUF012

    agent: Name
    turns: list[TurnUsage] = field(default_factory=list)
    session_id: Word | None = None
    said: list[Tokens] = field(default_factory=list)
    owed: list[Owed] | None = None


USAGE: Kind[Usage] = Kind("usage", Usage, key="agent", logins="own")


def all_of(store: Store, team: str, problems: list[errors.TeamsError]) -> list[Usage]:
    """What every agent took that `teams` started."""
    return [found for found, _ in store.scan(team, USAGE, problems)]


def of(store: Store, team: str, agent: str) -> Usage:
    """What that agent took.

    Raises:
        DamagedRecord: It can't be read.
    """
    try:
        return store.get(team, USAGE, agent)[0]
    except errors.NotFound:
        return Usage(agent=agent)


def total(turns: Iterable[TurnUsage]) -> int:
    """All tokens that these turns are known to have taken."""
    return sum(each.total for turn in turns for each in turn.tokens or ())


def record(
    store: Store,
    team: str,
    session: Session,
    profile: Profile,
    printed: str,
    began: str,
    owes: Callable[[TurnUsage], Sequence[Owed]],
) -> TurnUsage:
    """Add a turn that is over to what its agent took; with it goes what is to be told of that."""
    now = teams.now(store)
    seconds = (parse_rfc3339(now) - parse_rfc3339(began)).total_seconds()
    counted, alone = tokens_in(profile, printed, session.model), of_turn_in(profile, printed)
    turn = TurnUsage(
        turn=session.turns,
        run=session.run,
        at=now,
        seconds=round(max(0.0, seconds), 3),
        tasks=_worked_on(store, team, session.agent, began),
        tokens=counted,
    )

    def add(found: Usage) -> Usage:
        if counted is None or not grows(profile):
            took, changed = turn, found
        else:
            earlier = {each.model: each for each in found.said} if found.session_id == session.session_id else {}
            since = [each.minus(earlier[each.model]) if each.model in earlier else each for each in counted]
            if alone and sum(each.total for each in since) < alone.total:
                earlier, since = {}, counted
            said = list({**earlier, **{each.model: each for each in counted}}.values())
            took = turn.having(tokens=since)
            changed = found.having(session_id=session.session_id, said=said)
        return owing(changed.having(turns=[*found.turns, took]), *owes(took))

    added = upsert(store, team, USAGE.also_closed, session.agent, Usage(agent=session.agent), add)[1]
    deliver(store, team, USAGE.also_closed, added)
    return added.turns[-1]


def _worked_on(store: Store, team: str, agent: str, began: str) -> list[str]:
    """The tasks that the agent has, or ended since."""
    since = parse_rfc3339(began)
    return [
        task.id
        for task in tasks.all_of(store, team, [])
        if task.owner == agent
        and (task.status == tasks.IN_PROGRESS or (task.completed_at and parse_rfc3339(task.completed_at) >= since))
    ]
