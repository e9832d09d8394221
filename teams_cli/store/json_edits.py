"""Change single values in JSON files of other programs. Everything else, such as comments and indentation, stays as it
is.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    Path = Sequence[str | int]
    """The keys, and the numbers in lists, that lead to a value."""

_STRING = r'"(?:[^"\\]|\\.)*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)
_REST_OF_EMPTY_LINE = re.compile(r"[ \t]*\r?\n")
_BLANK = re.compile(r"\s*")
_decoder = json.JSONDecoder()


def without_comments(text: str) -> str:
    """Return the text with blanks in place of comments and trailing commas. Everything else keeps its position."""
    return _blanked(_LAST_COMMA, _blanked(_COMMENT, text))


def _blanked(pattern: re.Pattern[str], text: str, joins_lines: bool = False) -> str:
    """Return the text with blanks in place of each match of the *pattern*, except strings. The pattern matches a string
    as a whole, so that it matches nothing inside the string. With *joins_lines*, line breaks between `/*` and `*/`
    become blanks, too.
    """

    def replacement(match: re.Match[str]) -> str:
        if match[0].startswith('"'):
            return match[0]
        is_joined = joins_lines and match[0].startswith("/*")
        return " " * len(match[0]) if is_joined else re.sub(r"[^\r\n]", " ", match[0])

    return pattern.sub(replacement, text)


def _code_of(text: str) -> str:
    """Return the text with blanks in place of comments. The lines of a comment become one, so that nothing is put
    between them.
    """
    return _blanked(_COMMENT, text, joins_lines=True)


def has_comments(text: str) -> bool:
    """Whether the text has comments or trailing commas."""
    return without_comments(text).split() != text.split()


def with_member(text: str, path: Path, value: Any) -> str:
    """Return the text with *value* added at the *path*, where there must be no value yet. Missing objects and lists
    along the path are created. If the path ends with a number, the value is put at the end of a list. A text without
    any value, such as an empty file or one of comments alone, first gets an empty object at its end.
    """
    if not without_comments(text).strip():
        text = f"{text.rstrip()}\n{{}}\n".lstrip()
    bare = without_comments(text)
    start = _after_blanks(bare, 0)
    for depth, key in enumerate(path):
        container = _Container(bare, start)
        child = container.child(key)
        if child is None:
            for missing in reversed(path[depth + 1 :]):
                value = [value] if isinstance(missing, int) else {missing: value}
            return _inserted(text, container, key, value)
        start = child.value_start
    raise LookupError(f"{path} is there")


def without_member(text: str, path: Path) -> str:
    """Return the text without the value at the *path*, which must exist. Comments beside it stay."""
    bare = without_comments(text)
    start = _after_blanks(bare, 0)
    for key in path[:-1]:
        start = _Container(bare, start).existing_child(key).value_start
    container = _Container(bare, start)
    child = container.existing_child(path[-1])
    index = container.children.index(child)
    code = _code_of(text)  # it still has trailing commas, unlike `bare`
    comma_after = _comma_after(code, child.end)
    end = comma_after + 1 if comma_after >= 0 else child.end
    before_comma = text[child.end : comma_after] if comma_after >= 0 else ""
    has_comment_after = bool(before_comma.strip())
    rest = (before_comma if has_comment_after else "") + text[end:]
    if index > 0:  # remove one of the commas around it, too
        comma_before = _comma_after(code, container.children[index - 1].end)
        line_end = _end_of_line(code, comma_before + 1)  # a comment behind the value before stays
        kept = text[line_end : child.start]
        if _REST_OF_EMPTY_LINE.match(rest):
            kept = kept.rstrip()
        elif not text[comma_before + 1 : child.start].strip():  # else a comment might need its line break
            kept = ""
        if comma_after >= 0:
            return text[:line_end] + kept + rest
        return text[:comma_before] + text[comma_before + 1 : line_end] + kept + rest
    if len(container.children) > 1:  # it is the first of several
        kept = rest[: container.children[1].start - len(text)].lstrip()
        return text[: child.start] + kept + text[container.children[1].start :]
    # It is the only one.
    has_comment_before = bool(text[start + 1 : child.start].strip())
    if has_comment_before:
        return text[: child.start] + rest
    if not has_comment_after and text[end : container.close].isspace():
        rest = text[container.close :]
    return text[: start + 1] + rest


class _Child(NamedTuple):
    """A value in an object or a list: its key, where its entry starts, where the value itself starts, and where it
    ends. In an object, the entry starts with the key. In a list, the key is the value's number, and the entry starts
    with the value.
    """

    key: str | int
    start: int
    value_start: int
    end: int


class _Container:
    """The object or list that begins at *start* in *bare*, a text without comments. *close* is the position of its
    closing bracket.
    """

    def __init__(self, bare: str, start: int) -> None:
        self.start = start
        self.is_list = bare[start] == "["
        self.children = list(self._children(bare, start + 1))
        self.close = _after_blanks(bare, self.children[-1].end if self.children else start + 1)

    def _children(self, bare: str, position: int) -> Iterator[_Child]:
        """Yield the values from *position* to the closing bracket."""
        number = 0
        while bare[start := _after_blanks(bare, position)] not in "]}":
            if bare[start] == ",":
                start = _after_blanks(bare, start + 1)
            key: str | int = number
            value_start = start
            if not self.is_list:
                key, key_end = _decoder.raw_decode(bare, start)
                colon = _after_blanks(bare, key_end)
                value_start = _after_blanks(bare, colon + 1)
            _, position = _decoder.raw_decode(bare, value_start)
            yield _Child(key, start, value_start, position)
            number += 1

    def child(self, key: str | int) -> _Child | None:
        return next((child for child in self.children if child.key == key), None)

    def existing_child(self, key: str | int) -> _Child:
        child = self.child(key)
        assert child is not None
        return child


def _inserted(text: str, container: _Container, key: str | int, value: Any) -> str:
    """Return the text with *value* added at the end of the *container*, formatted like the values there. An object gets
    the value under the *key*.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    head = "" if container.is_list else f"{json.dumps(key)}: "
    last = container.children[-1] if container.children else None
    if last and "\n" not in text[container.start : last.start]:  # everything is on one line
        return f"{text[: last.end]}, {head}{_dumped(value)}{text[last.end :]}"
    text_lines = text.splitlines()
    indent_of_second_line = _leading_blanks(text_lines[1]) if len(text_lines) > 1 else ""
    unit = indent_of_second_line or "  "  # one level of indentation
    outer_indent = _indentation_at(text, container.start)
    inner_indent = _indentation_at(text, last.start) if last else outer_indent + unit
    lines = _dumped(value, indent=unit).split("\n")
    member = head + f"{newline}{inner_indent}".join(lines)
    if last is None:
        start = container.start + 1
        comment = text[start : container.close].rstrip(" \t\r\n")
        new_content = f"{comment}{newline}{inner_indent}{member}{newline}{outer_indent}"
        return f"{text[:start]}{new_content}{text[container.close :]}"
    code = _code_of(text)
    comma = _comma_after(code, last.end)
    # A comment behind the last value stays on its line.
    if comma >= 0:
        line_end = _end_of_line(code, comma + 1)
        return f"{text[:line_end]}{newline}{inner_indent}{member},{text[line_end:]}"
    line_end = _end_of_line(code, last.end)
    return f"{text[: last.end]},{text[last.end : line_end]}{newline}{inner_indent}{member}{text[line_end:]}"


def _dumped(value: Any, indent: str | None = None) -> str:
    """Return the value as JSON without what UTF-8 can't have, such as a byte of a path."""
    return json.dumps(value, indent=indent, ensure_ascii=False).encode(errors="backslashreplace").decode()


def _comma_after(code: str, position: int) -> int:
    """Return the position of the comma that comes next after *position*; -1 if something else comes next."""
    comma = _after_blanks(code, position)
    return comma if code[comma : comma + 1] == "," else -1


def _end_of_line(code: str, position: int) -> int:
    """Return the position of the end of the line if only blanks follow *position* on this line, else *position*."""
    match = re.compile(r"[ \t]*(?=\r?\n)").match(code, position)
    return match.end() if match else position


def _indentation_at(text: str, position: int) -> str:
    return _leading_blanks(text[text.rfind("\n", 0, position) + 1 : position])


def _leading_blanks(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _after_blanks(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position
