"""Records as JSON text: indented for people, with a checksum that shows whether this tool wrote it. Also conversion of
other values to and from JSON by the interpreter's own scanner and encoder, without importing `json`.

Importing `json` takes half as long as a command, because of parts in Python that are not needed here. `json` is
imported only for unusual or invalid input, or if this interpreter lacks the scanner or the encoder.
"""

from __future__ import annotations

from zlib import crc32

from teams_cli import errors
from teams_cli.records.field_types import fits, is_whole, misfit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from teams_cli.records.records import Record
    from teams_cli.store.contract import Kind

    R = TypeVar("R", bound=Record)

MAX_RECORD = 16 * 1024 * 1024
"""The size in bytes of the largest record that is read or written."""
_BEFORE_CHECKSUM = b',\n  "checksum": "'
_AFTER_CHECKSUM = b'"\n}\n'
_SPACE = 0x20
_DEEPEST = 100
"""The deepest nesting of objects and lists that is accepted in a file that this tool did not write."""


def encode(record: Record) -> bytes:
    """Return the text of a record's file: the fields in order, indented by two spaces, then the checksum, then a
    newline.

    Raises:
        InvalidValue: The file could not be read again: a value does not have the type of its field, a text is not
            Unicode, the record is nested too deeply, or the file would be too large.
    """
    document = record.to_json()
    _refuse_misfit(type(record), document)
    return _text_with_checksum(document)


def _refuse_misfit(kind: type[Record], document: dict[str, Any]) -> None:
    """Raise InvalidValue if a value of the *document* does not have the type of its field. The quick check `fits` may
    refuse a good document, so the full check confirms a refusal.
    """
    if not fits(kind, document):
        from teams_cli.records.types import check_record

        try:
            check_record(kind, document, kind.__name__)
        except errors.DamagedRecord as damage:
            key, expected = misfit(kind, document)
            if not key:
                raise errors.InvalidValue(damage.message, "") from None
            value = ascii(document[key])
            if len(value) > 60:
                value = f"{value[:60]}…"
            raise errors.InvalidValue(f"{key} can't be {value}", f"Give {expected}.") from None


def encode_unnumbered(record: Record, kind: Kind[Any], digits: int) -> bytes:
    """Return the file of a record that has no number yet. It begins with blanks, which leave room for the `heading` of
    a number with up to *digits* digits.

    The checksum is that of the file with the blanks. So it stays right if the heading is filled in later, and if a
    power failure turns the heading into blanks again.
    """
    document = record.to_json()
    document.pop("id", None)
    document.pop("number", None)
    _refuse_misfit(type(record), document)
    return _text_with_checksum(document, len(heading(kind, 10**digits - 1)))


def heading(kind: Kind[Any], number: int) -> bytes:
    """Return the beginning of the file of the record with this *number*: the brace, the id and the number. If a power
    failure destroys the heading, it can be made again, because the name of the file shows the number.
    """
    return b'{\n  "id": "%s-%d",\n  "number": %d,' % (kind.prefix.encode(), number, number)


def _text_with_checksum(document: dict[str, Any], width: int = 1) -> bytes:
    """Return *document* as JSON text with its checksum. Blanks after the opening brace pad it to *width* bytes."""
    try:
        body = b"{".ljust(width) + indented(document).encode()[1:-2]  # without the line end and the brace at the end
    except UnicodeEncodeError:
        raise errors.InvalidValue("the text is not valid Unicode", "Give UTF-8 text.") from None
    except (ValueError, RecursionError):
        raise errors.InvalidValue(
            "the record is nested too deeply, or has a number that JSON does not allow", ""
        ) from None
    data = b"%s%s%s" % (body, _BEFORE_CHECKSUM, _checksum_to_end(body))
    if len(data) > MAX_RECORD:
        raise errors.InvalidValue(
            f"the record would have {len(data)} bytes, more than the {MAX_RECORD} that are read again",
            "Give less, or put it in a file and give its path.",
        )
    return data


def _checksum_to_end(body: bytes) -> bytes:
    return b"%08x%s" % (crc32(body), _AFTER_CHECKSUM)


def own_document(data: bytes, kind: Kind[Any], key: str) -> dict[str, Any] | None:
    """Return the JSON object in the file *data*, with all fields that have a value. Return None if `decode` must check
    the file: another program wrote it, it belongs under another key, or it lacks a field that this version stores.
    """
    document = _unchanged_document(data, kind, key)
    if document is None or document.get(kind.key) != key or not is_whole(kind.record, document):
        return None
    return document


def is_as_written(data: bytes) -> bool:
    """Whether the checksum in *data*, the file of a record, shows that the file is exactly what `encode` returned."""
    end = data.rfind(_BEFORE_CHECKSUM)
    return end >= 0 and data[end + len(_BEFORE_CHECKSUM) :] == _checksum_to_end(data[:end])


def decode(data: bytes, kind: Kind[R], key: str, path: str) -> R:
    """Return the record in a file. A file whose checksum shows that this program wrote it gets only the quick check;
    any other file gets the full check.

    Raises:
        DamagedRecord: The file is not a JSON object of that kind, or belongs under another key.
    """
    try:
        record: R | None = None
        document: Any = _unchanged_document(data, kind, key)
        if document is not None:
            try:
                record = kind.record.from_json(document)
            except TypeError:  # a field is missing that an older version did not have: the full check names it
                pass
        if record is None:
            document = strict_json(data, path)
            if isinstance(document, dict):
                document.pop("checksum", None)
            from teams_cli.records.types import check_record

            check_record(kind.record, document, path)
            record = kind.record.from_json(document)
        if key and getattr(record, kind.key) != key:
            raise errors.DamagedRecord(
                f"{path}: {kind.key}: says {getattr(record, kind.key)!r}", "Correct the file or its name.", path
            )
        return record
    except errors.DamagedRecord as damage:
        damage.number = kind.number_in(key)
        raise


def _unchanged_document(data: bytes, kind: Kind[Any], key: str) -> dict[str, Any] | None:
    """Return the JSON object in a file that this program wrote and nobody has edited; else None. If a power failure
    turned the heading into blanks, the object gets its id and number from *key*.
    """
    if not is_as_written(data):
        number = kind.number_in(key)
        data = _blanked(data, heading(kind, number)) if number else data
        if not is_as_written(data):
            return None
    try:
        document = loads(data.decode())
        del document["checksum"]
        if data.startswith(b"{ "):  # the heading is blank
            document = {"id": key, "number": kind.number_in(key), **document}
        return document if fits(kind.record, document) else None
    except (ValueError, RecursionError, TypeError, KeyError):
        return None  # another version wrote the file, or it is a forgery: it is checked like any other


def _blanked(data: bytes, head: bytes) -> bytes:
    """Return the file with blanks in place of its heading *head*, as it was when its checksum was computed. If the
    file has another heading, return *data* itself.
    """
    beginning = data[: len(head)]
    pairs = zip(beginning, head, strict=False)
    if beginning != head and not all(byte in (wanted, _SPACE) for byte, wanted in pairs):
        return data
    return b"{".ljust(len(head)) + data[len(head) :]


def with_heading(data: bytes, kind: Kind[R], number: int) -> bytes:
    """Return the file *data* of the record with this *number*. If a power failure turned its heading into blanks, the
    returned file has the heading again.
    """
    head = heading(kind, number)
    has_other_heading = _blanked(data, head) is data  # it returns its argument then
    return data if has_other_heading else head + data[len(head) :]


def has_heading(data: bytes, kind: Kind[Any], key: str) -> bool:
    """Whether the file *data* begins with the id and the number of its record. Only the file of a message may lack
    them: a power failure may have turned them into blanks.
    """
    return kind.name != "message" or data.startswith(heading(kind, kind.number_in(key)))


def decode_unchecked(data: bytes, kind: Kind[R]) -> R:
    """Return the record in a file that `decode` has accepted before. The file must begin with the record's id and
    number, which a power failure can turn into blanks.
    """
    document = loads(data.decode())
    document.pop("checksum", None)
    return kind.record.from_json(document)


def says_closed(data: bytes, path: str) -> bool:
    """Whether the record of a team says that the team is closed. A file indented like those of `encode` is searched for
    the state; any other file is parsed.
    """
    if data.startswith(b'{\n  "'):  # indented as by `encode`, so lines with two spaces have fields of the team itself
        for state in (b"active", b"closed"):
            if b'\n  "state": "%s"' % state in data:
                return state == b"closed"
    document = strict_json(data, path)
    return isinstance(document, dict) and document.get("state") == "closed"


def team_closed(team: str) -> errors.WrongState:
    """Return the error for a change in a closed team."""
    return errors.WrongState(f"team {team} is closed", f"To reopen it (leader or human): teams restore-team {team}")


def strict_json(data: bytes, path: str) -> Any:
    """Parse JSON, but refuse what parsers interpret differently: NaN, infinities, duplicate keys, and nesting that is
    too deep. The error DamagedRecord names the *path*.
    """
    import json

    try:
        value = json.loads(
            data.decode(),
            parse_constant=_refuse_constant,
            parse_float=_finite_number,
            object_pairs_hook=_object_with_unique_keys,
        )
        if not _is_too_deep(value):
            return value
        problem = f"is nested more than {_DEEPEST} deep"
    except RecursionError:
        problem = "is nested too deeply"
    except UnicodeDecodeError:
        problem = "is not UTF-8"
    except ValueError as error:
        problem = f"is not JSON: {error}"
    raise errors.DamagedRecord(f"{path}: {problem}", "Correct the file, or move it away.", path)


def _is_too_deep(value: Any) -> bool:
    values_of_level = [value]  # looked at level by level, because recursion could itself go too deep
    for _ in range(_DEEPEST):
        values_below: list[Any] = []
        for each in values_of_level:
            if isinstance(each, dict):
                values_below += each.values()
            elif isinstance(each, list):
                values_below += each
        if not values_below:
            return False
        values_of_level = values_below
    return True


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not a number in JSON")


def _finite_number(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is too large")
    return number


def _object_with_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("a key is given twice")
    return document


_BLANK = " \t\n\r"


class _ScannerSettings:
    """The settings with which Python's built-in JSON scanner parses as `json.loads` does."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}.__getitem__


def _refuse_value(value: object) -> None:
    raise TypeError(f"{type(value).__name__} is not JSON")


def loads(text: str) -> Any:
    """Parse a JSON text, as `json.loads` does. `json`, which is slow to import, is imported only for unusual texts.

    Raises:
        ValueError: *text* is not valid JSON.
    """
    try:
        value, end = _scan(text, 0)
    except StopIteration:  # it begins with blanks, or is no JSON
        return _json().loads(text)
    has_rest = bool(text[end:].strip(_BLANK))
    return _json().loads(text) if has_rest else value  # a rest is an error, which `json` words


def dumps(value: Any) -> str:
    """Return the value on one line in ASCII, as `json.dumps` does."""
    return "".join(_encode(value, 0))


def indented(value: Any) -> str:
    """Return the value on several lines, as `json.dumps` does with an indent of two spaces, but without escapes for
    characters outside ASCII.
    """
    try:
        return _indented(value, "\n")
    except TypeError:  # a key is no text, or a value is unusual or no JSON
        return str(_json().dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def _indented(value: Any, line_start: str) -> str:
    """Return the value as `indented` does. *line_start* is a newline and the indent of the value's first line."""
    if type(value) is str:
        return _quoted(value)
    inner_start = line_start + "  "
    separator = f",{inner_start}"
    if type(value) is dict and value:
        parts = [  # most values are texts, for which no call is needed
            f"{_quoted(key)}: {_quoted(part) if type(part) is str else _indented(part, inner_start)}"
            for key, part in value.items()
        ]
        return f"{{{inner_start}{separator.join(parts)}{line_start}}}"
    if type(value) is list and value:
        return f"[{inner_start}{separator.join([_indented(part, inner_start) for part in value])}{line_start}]"
    if isinstance(value, (dict, list, tuple)) and value:
        raise TypeError("a subclass, or a tuple: `json` writes it")
    return "".join(_encode_finite(value, 0))


def _json() -> Any:
    import json

    return json


try:
    from _json import encode_basestring as _quoted
    from _json import encode_basestring_ascii, make_encoder, make_scanner

    def _encoder(quoted: Any, allow_nan: bool) -> Any:
        return make_encoder(None, _refuse_value, quoted, None, ": ", ", ", False, False, allow_nan)

    _scan = make_scanner(_ScannerSettings)  # type: ignore[arg-type]  # it takes what has these attributes
    _encode, _encode_finite = _encoder(encode_basestring_ascii, True), _encoder(_quoted, False)
except (ImportError, TypeError):  # an interpreter without them, or with others
    import json
    from functools import partial

    loads, dumps = json.loads, json.dumps  # type: ignore[assignment]
    indented = partial(json.dumps, indent=2, ensure_ascii=False, allow_nan=False)
