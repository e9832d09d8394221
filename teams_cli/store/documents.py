"""Records as JSON text: indented for people, with a checksum that shows who wrote it."""

from __future__ import annotations

from zlib import crc32

from teams_cli import errors
from teams_cli.records.field_types import fits, is_whole, misfit
from teams_cli.records.json_text import indented, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TypeVar

    from teams_cli.records.records import Record
    from teams_cli.store.contract import Kind

    R = TypeVar("R", bound=Record)

MAX_RECORD = 16 * 1024 * 1024
"""The size in bytes of the largest record that is read or written."""
_MARK = b',\n  "checksum": "'
_END = b'"\n}\n'
_SPACE = 0x20
_DEEPEST = 100
"""The deepest nesting of objects and lists that is accepted in files that others wrote."""


def encode(record: Record) -> bytes:
    """Return the file of a record: its keys in order, an indent of two, the checksum last, a newline at the end.

    Raises:
        InvalidValue: It could not be read again: a value is not of the type of its field, a text is not Unicode, it is
            nested too deeply, or it would be too large.
    """
    return _sealed(_readable(type(record), record.to_json()))


def _readable(kind: type[Record], document: dict[str, Any]) -> dict[str, Any]:
    """Return the document if its file could be read again as a record of that kind."""
    if not fits(kind, document):
        from teams_cli.records.validation import check_record

        try:
            check_record(kind, document, kind.__name__)
        except errors.DamagedRecord as damage:
            key, expected = misfit(kind, document)
            if not key:
                raise errors.InvalidValue(damage.message, "") from None
            raise errors.InvalidValue(f"{key} can't be {_short(document[key])}", f"Give {expected}.") from None
    return document


def _short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def encode_unnumbered(record: Record, kind: Kind[Any], digits: int) -> bytes:
    """Encode a record that has no number yet. Blanks stand where `heading` will put the number.

    The checksum is that of the text with blanks, so the heading can be filled in, or be lost, without changing anything
    else.

    Raises:
        InvalidValue: As for `encode`.
    """
    document = record.to_json()
    document.pop("id", None)
    document.pop("number", None)
    return _sealed(_readable(type(record), document), len(heading(kind, 10**digits - 1)))


def heading(kind: Kind[Any], number: int) -> bytes:
    """Return the first two lines of the file of the record with this number. They repeat the name of the file."""
    return b'{\n  "id": "%s-%d",\n  "number": %d,' % (kind.prefix.encode(), number, number)


def _sealed(document: dict[str, Any], blank: int = 1) -> bytes:
    """Return the JSON text with its checksum. Its opening brace is padded with blanks to *blank* characters."""
    try:
        body = b"{".ljust(blank) + indented(document).encode()[1:-2]
    except UnicodeEncodeError:
        raise errors.InvalidValue("the text is not valid Unicode", "Give UTF-8 text.") from None
    except (ValueError, RecursionError):
        raise errors.InvalidValue(
            "the record is nested too deeply, or has a number that JSON does not allow", ""
        ) from None
    data = b"%s%s%s" % (body, _MARK, _seal(body))
    if len(data) > MAX_RECORD:
        raise errors.InvalidValue(
            f"the record would have {len(data)} bytes, more than the {MAX_RECORD} that are read again",
            "Give less, or put it in a file and give its path.",
        )
    return data


def _seal(body: bytes) -> bytes:
    """Return the checksum of a text, with the end of the file."""
    return b"%08x%s" % (crc32(body), _END)


def own_document(data: bytes, kind: Kind[Any], key: str) -> dict[str, Any] | None:
    """Return the JSON object in a file that this tool wrote, with all fields that have a value; None if the file needs
    the full check of `decode`.
    """
    document = _own(data, kind, key)
    if document is None or document.get(kind.key) != key or not is_whole(kind.record, document):
        return None
    return document


def is_as_written(data: bytes) -> bool:
    """Whether the checksum says that the file of a record is exactly what `encode` returned."""
    cut = data.rfind(_MARK)
    return cut >= 0 and data[cut + len(_MARK) :] == _seal(data[:cut])


def decode(data: bytes, kind: Kind[R], key: str, path: str) -> R:
    """Read the record in a file. It is checked field by field unless the checksum shows that this tool wrote it.

    Raises:
        DamagedRecord: It is not a JSON object of that kind, or belongs under another key.
    """
    try:
        return _checked(data, kind, key, path)
    except errors.DamagedRecord as damage:
        damage.number = kind.number_in(key)
        raise


def _checked(data: bytes, kind: Kind[R], key: str, path: str) -> R:
    document: Any = _own(data, kind, key)
    record = None if document is None else _made(kind.record, document)
    if record is None:
        document = strict_json(data, path)
        if isinstance(document, dict):
            document.pop("checksum", None)
        from teams_cli.records.validation import check_record

        check_record(kind.record, document, path)
        record = kind.record.from_json(document)
    if key and getattr(record, kind.key) != key:
        raise errors.DamagedRecord(
            f"{path}: {kind.key}: says {getattr(record, kind.key)!r}", "Correct the file or its name.", path
        )
    return record


def _made(kind: type[R], document: dict[str, Any]) -> R | None:
    """Return the record of a document of our own; None if it lacks a field that records of this version have."""
    try:
        return kind.from_json(document)
    except TypeError:
        return None


def _own(data: bytes, kind: Kind[Any], key: str) -> dict[str, Any] | None:
    """Return the JSON object if the file is exactly what `encode` or `encode_unnumbered` returned and every value has
    the type of its field; else None.
    """
    if not is_as_written(data):
        number = kind.number_in(key)
        data = _blanked(data, heading(kind, number)) if number else data
        if not is_as_written(data):
            return None
    try:
        document = loads(data.decode())
        del document["checksum"]
        if data.startswith(b"{ "):
            document = {"id": key, "number": kind.number_in(key), **document}
        return document if fits(kind.record, document) else None
    except (ValueError, RecursionError, TypeError, KeyError):
        return None  # written by a version with other fields, or made up: to be checked like any other


def _blanked(data: bytes, head: bytes) -> bytes:
    """Return the file with blanks in place of this heading, of which a power failure may have kept any part. A file
    with another heading is returned unchanged.
    """
    said = data[: len(head)]
    if said != head and any(byte not in (ours, _SPACE) for byte, ours in zip(said, head, strict=False)):
        return data
    return b"{".ljust(len(head)) + data[len(head) :]


def headed(data: bytes, kind: Kind[R], number: int) -> bytes:
    """Return the file of the record with that number, with its heading filled in if a power failure took it."""
    head = heading(kind, number)
    return data if _blanked(data, head) is data else head + data[len(head) :]


def says_all(data: bytes, kind: Kind[Any], key: str) -> bool:
    """Whether the data has the whole record. After a power failure the heading of a message may be missing; its fields
    are restored from the name of the file.
    """
    return kind.name != "message" or data.startswith(heading(kind, kind.number_in(key)))


def decode_checked(data: bytes, kind: Kind[R]) -> R:
    """Read the record in a file that `decode` has accepted before, and that has the whole record."""
    document = loads(data.decode())
    document.pop("checksum", None)
    return kind.record.from_json(document)


def says_closed(data: bytes, path: str) -> bool:
    """Whether the record of a team says that it is closed. A record that `encode` made is not read in full for this.

    Raises:
        DamagedRecord: It is not a JSON object.
    """
    if data.startswith(b'{\n  "'):  # then what stands at two spaces is the team's own
        for state in (b"active", b"closed"):
            if b'\n  "state": "%s"' % state in data:
                return state == b"closed"
    document = strict_json(data, path)
    return isinstance(document, dict) and document.get("state") == "closed"


def team_closed(team: str) -> errors.WrongState:
    """Return the refusal of a change in a closed team."""
    return errors.WrongState(f"team {team} is closed", f"To reopen it (leader or human): teams restore-team {team}")


def strict_json(data: bytes, path: str) -> Any:
    """Parse JSON, and refuse what readers disagree about: NaN, infinities, and keys that are given twice.

    Raises:
        DamagedRecord: It is not JSON, or not of that strict kind, or nested too deeply.
    """
    import json

    try:
        value = json.loads(
            data.decode(), parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_unique_keys
        )
        if not _is_deep(value):
            return value
        problem = f"is nested more than {_DEEPEST} deep"
    except RecursionError:
        problem = "is nested too deeply"
    except UnicodeDecodeError:
        problem = "is not UTF-8"
    except ValueError as error:
        problem = f"is not JSON: {error}"
    raise errors.DamagedRecord(f"{path}: {problem}", "Correct the file, or move it away.", path)


def _is_deep(value: Any) -> bool:
    """Whether the value is nested too deeply to be read and written everywhere."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [within for outer in level if isinstance(outer, list | dict) for within in _values(outer)]
        if not level:
            return False
    return True


def _values(outer: list[Any] | dict[str, Any]) -> Iterable[Any]:
    return outer.values() if isinstance(outer, dict) else outer


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not a number in JSON")


def _finite(word: str) -> float:
    number = float(word)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{word} is too large")
    return number


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found
