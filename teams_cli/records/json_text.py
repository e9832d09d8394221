"""JSON text by the interpreter's own scanner and encoder, without importing `json`.

Importing `json` takes half as long as a command, because of parts in Python that are not needed here. `json` is
imported only for unusual or invalid input, or if this interpreter lacks the scanner or the encoder.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BLANK = " \t\n\r"


class _ScannerSettings:
    """The settings that make the interpreter's scanner parse JSON as `json.loads` does."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}.__getitem__


def _refuse(value: object) -> None:
    raise TypeError(f"{type(value).__name__} is not JSON")


def loads(text: str) -> Any:
    """Parse a JSON text, as `json.loads` does. For usual texts `json`, which is slow to import, is not imported.

    Raises:
        ValueError: *text* is no JSON text.
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
    """Return the value on several lines, as `json.dumps` does with an indent of two blanks, but without escapes for
    characters outside ASCII.
    """
    try:
        return _indented(value, "\n")
    except TypeError:  # a key is no text, or a value is unusual or no JSON
        return str(_json().dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def _indented(value: Any, line_start: str) -> str:
    """Return the value as `indented` does. *line_start* is a line end with the indent of the line that it is on."""
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
        return make_encoder(None, _refuse, quoted, None, ": ", ", ", False, False, allow_nan)

    _scan = make_scanner(_ScannerSettings)  # type: ignore[arg-type]  # it takes what has these attributes
    _encode, _encode_finite = _encoder(encode_basestring_ascii, True), _encoder(_quoted, False)
except (ImportError, TypeError):  # an interpreter without them, or with others
    import json
    from functools import partial

    loads, dumps = json.loads, json.dumps  # type: ignore[assignment]
    indented = partial(json.dumps, indent=2, ensure_ascii=False, allow_nan=False)
