"""Finding records by words, by the full-text search of the database."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.extensions.postgres import schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeVar

    from teams_cli.extensions.postgres.session import Session
    from teams_cli.records.records import Record
    from teams_cli.store.contract import Kind

    R = TypeVar("R", bound=Record)

_SINCE = 4
_BY_FUNCTION = 12
_ALL = 1 << 62
_RECORDS = "SELECT key, body FROM records WHERE team = %s AND kind = %s AND {}"
_MESSAGES = "(SELECT number, body FROM messages WHERE team = %s AND number < %s AND {} ORDER BY number DESC LIMIT 500)"
_PAGE = "SELECT number, body FROM ({}) AS found ORDER BY number DESC LIMIT 500"
_KEYS = "key = ANY (ARRAY (SELECT found_records(%s, %s, %s::tsquery)))"
_NUMBERS = "number = ANY (ARRAY (SELECT found_messages(%s, %s, %s::tsquery)))"
_WORDS = "words_of(record) @@ %s::tsquery"
_LONG = "length(body) > 100000"


def search(
    session: Session, team: str, kind: Kind[R], words: Sequence[str], problems: list[errors.TeamsError]
) -> Iterator[R]:
    """See the contract. The words go to the database as it would write them into its index itself."""
    version = schema.check(session.server)
    wanted = _wanted(session, words) if version >= _SINCE else None
    rows = _messages if kind.name == "message" else _records
    for key, body in rows(session, team, kind, wanted, version >= _BY_FUNCTION):
        try:
            yield session.decode(team, kind, key, body)
        except errors.TeamsError as problem:
            problems.append(problem)


def _wanted(session: Session, words: Sequence[str]) -> str | None:
    """What to look for in the index; None where nothing is left to look for."""
    found: str | None = session.look("SELECT wanted(%s)::text", [list(words)])[0][0]
    return found or None


def _records(
    session: Session, team: str, kind: Kind[R], wanted: str | None, by_function: bool
) -> Iterator[tuple[str, str]]:
    """The keys and texts of the records that may have it, the newest first."""
    found = session.look(*_having(_RECORDS, _KEYS, [team, kind.name], wanted, by_function))
    yield from sorted(found, key=lambda row: (kind.number_in(row[0]), row[0]), reverse=True)


def _messages(
    session: Session, team: str, kind: Kind[R], wanted: str | None, by_function: bool
) -> Iterator[tuple[str, str]]:
    """The keys and texts of the messages that may have it, the newest first. They come page by page: who asks may have
    enough soon.
    """
    before = _ALL
    while True:
        sql, values = _having(_MESSAGES, _NUMBERS, [team, before], wanted, by_function)
        page = session.look(_PAGE.format(sql), values)
        for number, body in page:
            yield f"{kind.prefix}-{number}", body
        if not page:
            return
        before = page[-1][0]


def _having(
    select: str, found: str, values: list[object], wanted: str | None, by_function: bool
) -> tuple[str, list[object]]:
    """The statement for what has the words or is long, with its values; of all, where there are no words.

    Reading brings no tables up to date. In those of before there were functions these are two questions, since of one
    with an `OR` the planner takes it that a third of all rows fulfil it.
    """
    if wanted is None:
        return select.format("true"), values
    if by_function:
        return select.format(found), [*values, *values, wanted]
    return f"{select.format(_WORDS)} UNION {select.format(_LONG)}", [*values, wanted, *values]
