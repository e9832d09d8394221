"""Change single values in JSON that others wrote. Comments, indentation and everything else stay as they are."""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    Path = Sequence[str | int]
    """The keys, and the numbers in lists, that lead to a value."""

_STRING = r'"(?:[^"\\]|\\.)*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)
_BLANK = re.compile(r"\s*")
_decoder = json.JSONDecoder()


def without_comments(text: str) -> str:
    """Return the text with comments and trailing commas replaced by blanks; everything else stays in its place."""
    return _blanked(_LAST_COMMA, _blanked(_COMMENT, text))


def _blanked(kind: re.Pattern[str], text: str) -> str:
    return kind.sub(lambda match: match[0] if match[0][0] == '"' else re.sub(r"[^\r\n]", " ", match[0]), text)


def has_comments(text: str) -> bool:
    """Whether the text has comments or trailing commas."""
    return without_comments(text).split() != text.split()


def with_member(text: str, path: Path, value: Any) -> str:
    """Return the text with *value* added at the path, where no value is yet. Missing objects on the way are made. A
    number at the end of the path adds to a list.
    """
    bare = without_comments(text)
    start = _blank(bare, 0)
    for depth, key in enumerate(path):
        container = _Container(bare, start)
        child = container.child(key)
        if child is None:
            for missing in reversed(path[depth + 1 :]):
                value = [value] if isinstance(missing, int) else {missing: value}
            return _inserted(text, container, key, value)
        start = child.value
    raise LookupError(f"{path} is there")


def without_member(text: str, path: Path) -> str:
    """Return the text without the value at the path, which must exist."""
    bare = without_comments(text)
    start = _blank(bare, 0)
    for key in path[:-1]:
        start = _Container(bare, start).place(key).value
    container = _Container(bare, start)
    child = container.place(path[-1])
    number = container.children.index(child)
    code = _blanked(_COMMENT, text)
    own = _comma(code, child.end)
    if number:
        comma = _comma(code, container.children[number - 1].end)
        gap = _end_of_line(code, comma + 1)
        if own >= 0:
            return text[:gap] + text[own + 1 :]
        return text[:comma] + text[comma + 1 : gap] + text[child.end :]
    if len(container.children) > 1:
        return text[: child.start] + text[container.children[1].start :]
    end = own + 1 if own >= 0 else child.end
    if text[start + 1 : child.start].strip():  # a comment
        return text[: child.start] + text[end:]
    return text[: start + 1] + (text[container.close :] if text[end : container.close].isspace() else text[end:])


class _Child:
    """A value in an object or a list: its key, where the entry starts, where the value starts, and where it ends."""

    def __init__(self, key: str | int, start: int, value: int, end: int) -> None:
        self.key = key
        self.start = start
        self.value = value
        self.end = end


class _Container:
    """The object or list that begins at *start* in *bare*, a text without comments."""

    def __init__(self, bare: str, start: int) -> None:
        self.start = start
        self.is_list = bare[start] == "["
        self.children = list(self._children(bare, start + 1))
        self.close = _blank(bare, self.children[-1].end if self.children else start + 1)

    def _children(self, bare: str, place: int) -> Iterator[_Child]:
        number = 0
        while bare[start := _blank(bare, place)] not in "]}":
            start = _blank(bare, start + 1) if bare[start] == "," else start
            key: str | int = number
            value = start
            if not self.is_list:
                key, end = _decoder.raw_decode(bare, start)
                value = _blank(bare, _blank(bare, end) + 1)
            place = _decoder.raw_decode(bare, value)[1]
            yield _Child(key, start, value, place)
            number += 1

    def child(self, key: str | int) -> _Child | None:
        """Return the value under that key; None if there is none."""
        return next((child for child in self.children if child.key == key), None)

    def place(self, key: str | int) -> _Child:
        """Return the value under the key, which must exist."""
        child = self.child(key)
        assert child is not None
        return child


def _inserted(text: str, container: _Container, key: str | int, value: Any) -> str:
    """Return the text with the value at the end of the container, formatted like the values there."""
    newline = "\r\n" if "\r\n" in text else "\n"
    head = "" if container.is_list else f"{json.dumps(key)}: "
    end = container.children[-1].end if container.children else container.start + 1
    # Everything is on one line:
    if container.children and "\n" not in text[container.start : container.children[-1].start]:
        return f"{text[:end]}, {head}{json.dumps(value, ensure_ascii=False)}{text[end:]}"
    unit = _unit(text)
    outer = _indent_of(text, container.start)
    own = _indent_of(text, container.children[-1].start) if container.children else outer + unit
    lines = json.dumps(value, indent=unit, ensure_ascii=False).splitlines()
    member = head + f"{newline}{own}".join(lines)
    if container.children:  # after a comment on the line of the last value
        code = _blanked(_COMMENT, text)
        comma = _comma(code, end)
        place = _end_of_line(code, comma + 1 if comma >= 0 else end)
        before, after = ("", ",") if comma >= 0 else (",", "")
        return f"{text[:end]}{before}{text[end:place]}{newline}{own}{member}{after}{text[place:]}"
    inner = text[end : container.close].rstrip(" \t\r\n")  # it may hold a comment
    return f"{text[:end]}{inner}{newline}{own}{member}{newline}{outer}{text[container.close :]}"


def _comma(code: str, place: int) -> int:
    """Return the place of the comma after a value that ends at *place*; -1 if there is none."""
    comma = _blank(code, place)
    return comma if code[comma : comma + 1] == "," else -1


def _end_of_line(code: str, place: int) -> int:
    """Return the end of the line if only a comment is left on it, else *place*."""
    match = re.compile(r"[ \t]*(?=\r?\n)").match(code, place)
    return match.end() if match else place


def _unit(text: str) -> str:
    """Return one level of the text's indentation."""
    for line in text.splitlines()[1:2]:
        return line[: len(line) - len(line.lstrip())] or "  "
    return "  "


def _indent_of(text: str, place: int) -> str:
    """Return the blanks at the beginning of the line that contains *place*."""
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip())]


def _blank(text: str, place: int) -> int:
    """Return the end of the blanks that begin at *place*."""
    match = _BLANK.match(text, place)
    return match.end() if match else place
