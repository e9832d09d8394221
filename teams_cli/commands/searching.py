"""The command that searches a team."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.commands.declaration import Command, argument, option, table
from teams_cli.teams import history
from teams_cli.views import search

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call

_SEARCH = """Search the team's tasks, messages, results, notes and pages, the newest first.

A text must have all words, each as the beginning of a word, in any case. `tasks` are titles and descriptions,
`results` outcomes, and `notes` why a task was released, failed or cancelled. Add --in history for the history.
--since takes a time, a day, or how long ago: 90s, 10m, 2h, 1d.
"""
_HITS = 50


def _search(
    call: Call,
    words: tuple[str, ...],
    places: tuple[str, ...],
    sender: str | None,
    since: str | None,
    limit: int | None,
) -> Any:
    if limit is not None and limit < 1:
        raise errors.WrongUsage(f"{limit} is not a valid limit", "Give a number from 1.")
    team = call.load_team().name
    moment = history.moment(since, call.store.now()) if since else None
    wanted = search.Wanted(" ".join(words), sender, moment)
    return search.search(call.store, team, wanted, places, limit or _HITS, call.problems)


COMMANDS = table(
    "Inspect",
    Command(
        "search",
        _search,
        argument("WORDS", "What to search for.", many=True, name="words"),
        option("--in", "Only there; may be repeated.", choices=search.PLACES, many=True, name="places"),
        option("--from", "Only by this agent.", metavar="AGENT", name="sender"),
        option("--since", "Only from this time on.", metavar="TIME"),
        option("--limit", f"At most N; {_HITS} unless given.", type=int, metavar="N"),
        doc=_SEARCH,
        reads=True,
        words="inspection:hits",
        held="words places sender since limit",
        example="search parser --in results",
        also="find grep",
    ),
)
