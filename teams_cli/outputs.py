"""Outputs: the last that came out of each agent that was started, kept for whoever recalls it."""

from __future__ import annotations

from teams_cli.errors import NotFound
from teams_cli.records import Record
from teams_cli.store.contract import Kind, upsert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.shapes import Count, Name, Text
    from teams_cli.store.contract import Store


class Output(Record):
    """What came out of one generation of a session. Beside the session: it is long, and that is looked at often."""

    agent: Name
    generation: Count
    text: Text


OUTPUT: Kind[Output] = Kind("output", Output, key="agent")


def keep(store: Store, team: str, agent: str, generation: int, text: str) -> None:
    """Keep the output in place of the one before; one of a session that was given up does not replace a newer one."""
    made = Output(agent=agent, generation=generation, text=text)

    def change(kept: Output) -> Output:
        return made if generation >= kept.generation else kept

    upsert(store, team, OUTPUT, agent, Output(agent=agent, generation=0, text=""), change)


def find(store: Store, team: str, agent: str) -> str | None:
    """What came out of the agent last; None if nothing ever did."""
    try:
        return store.get(team, OUTPUT, agent)[0].text
    except NotFound:
        return None
