"""The types of record fields, in one table: it checks records on writing and on reading, and makes the types of
pydantic.

`fits` is the quick check. Files with our checksum are checked too: the checksum shows that nothing changed by accident,
but not who wrote the file. A record that the quick check does not accept is checked by `validation`, which imports
pydantic.
"""

from __future__ import annotations

from teams_cli.clock import parse_rfc3339
from teams_cli.names import is_id, is_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from teams_cli.records.records import Record

    Check = Callable[[Any], bool]

_checks: dict[type[Record], dict[str, Check]] = {}
_always: dict[type[Record], frozenset[str]] = {}
"""The keys of fields that begin with a value, or need one."""
_good: dict[type[Record], dict[str, str]] = {}
"""The value that each text key of a record had when it was last accepted. Most records have the same value again."""


def fits(kind: type[Record], document: object) -> bool:
    """Whether every value of the document has the type that its field declares. Missing fields are not looked for."""
    if type(document) is not dict:
        return False
    checks = _checks.get(kind) or _checks_of(kind)
    good = _good[kind]
    for key, value in document.items():
        if type(value) is str:
            if good.get(key) == value:
                continue
            if check := checks.get(key):
                if not check(value):
                    return False
                good[key] = value
        elif (check := checks.get(key)) and not check(value):
            return False
    return True


def is_whole(kind: type[Record], document: dict[str, Any]) -> bool:
    """Whether the document, and each document within it, has all fields that a record of its kind always has."""
    if kind not in _always:
        _always[kind] = frozenset(key for key, default in kind.fields.values() if default is not None)
    if not _always[kind] <= document.keys():
        return False
    for name, within in kind.nested.items():
        items = document.get(kind.fields[name][0])
        if items and not all(is_whole(within, item) for item in items):
            return False
    return True


def misfit(kind: type[Record], document: dict[str, Any]) -> tuple[str, str]:
    """Return the key of the first value that does not have the type of its field, and what belongs there; empty if
    there is none.
    """
    checks = _checks.get(kind) or _checks_of(kind)
    for name, (key, _) in kind.fields.items():
        if key in document and not checks[key](document[key]):
            return key, "a list of objects" if name in kind.nested else _expected(_type_of(kind, name))
    return "", ""


def _expected(declared: str) -> str:
    if declared.startswith("list["):
        return f"a list, each {_expected(declared[5:-1].removesuffix(' | None'))}"
    return TYPES[declared].expected if declared in TYPES else declared


def knows(kind: type[Record]) -> list[str]:
    """Whether all declared types are in the table. Other documents always need the full check."""
    declared = [_type_of(kind, name) for name in kind.fields if name not in kind.nested]
    unknown = [name for name in declared if _check(name) is _never]
    return unknown + [name for nested in kind.nested.values() for name in knows(nested)]


def _checks_of(kind: type[Record]) -> dict[str, Check]:
    made: dict[str, Check] = {}
    for name, (key, _) in kind.fields.items():
        nested = kind.nested.get(name)
        made[key] = _records(nested) if nested else _check(_type_of(kind, name))
    _good[kind] = {}
    _checks[kind] = made
    return made


def _type_of(kind: type[Record], name: str) -> str:
    return str(kind.__annotations__[name]).removesuffix(" | None")  # what is none is left out


def _check(declared: str) -> Check:
    if declared.startswith("list["):
        part = _check(declared[5:-1].removesuffix(" | None"))
        return _list((lambda value: value is None or part(value)) if declared.endswith(" | None]") else part)
    return TYPES[declared].check if declared in TYPES else _never


def _never(_: Any) -> bool:
    return False


def _text(value: Any) -> bool:
    return type(value) is str and (value.isascii() or _encodes(value))


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _word(value: Any) -> bool:
    return _text(value) and 0 < len(value) <= 255


def _time(value: Any) -> bool:
    try:
        return type(value) is str and len(value) <= 64 and bool(parse_rfc3339(value))
    except ValueError:
        return False


def _list(check: Check) -> Check:
    return lambda value: type(value) is list and (not value or all(map(check, value)))


def _records(kind: type[Record]) -> Check:
    return lambda value: type(value) is list and (not value or all(fits(kind, item) for item in value))


def is_check(value: Any) -> bool:
    """Whether the value is the outcome of a check, as tasks and landings store it."""
    return _keeps(value, _CHECK, ("command", "status", "by", "at"))


def is_review(value: Any) -> bool:
    """Whether the value is the outcome of a review, as a task stores it."""
    return _keeps(value, _REVIEW, ("verdict", "by"))


def is_source(value: Any) -> bool:
    """Whether the value says where a task was imported from."""
    return _keeps(value, _SOURCE, ("from", "id"))


def _keeps(value: Any, known: dict[str, Check], needed: tuple[str, ...]) -> bool:
    if type(value) is not dict or not all(key in value for key in needed):
        return False
    return all(known[key](part) for key, part in value.items() if key in known)


def _roles(value: Any) -> bool:
    return type(value) is dict and all(map(is_name, value)) and all(map(_role, value.values()))


def _role(value: Any) -> bool:
    if type(value) is not dict or not is_name(str(value.get("extends", ""))) or type(value["extends"]) is not str:
        return False
    known = {
        "extends": _text,
        "description": _text,
        "workflow": _word,
        **dict.fromkeys(("skill", "allow", "deny"), _list(_word)),
    }
    return all(key in known and known[key](part) for key, part in value.items())


def _settings(value: Any) -> bool:
    return type(value) is dict and all(map(_word, value)) and all(_setting(part) for part in value.values())


def _setting(value: Any) -> bool:
    return type(value) in (bool, int, str) or (type(value) is float and abs(value) < 1e300)


class FieldType:
    """A type that fields are declared with: the check, what is *expected*, and what pydantic's type is made of.

    That is the *base* in Python, and the *words* that are allowed, the *prefix* of an id, or the *bounds* of a number,
    the upper one excluded.
    """

    def __init__(
        self,
        expected: str,
        check: Check,
        base: type = str,
        words: tuple[str, ...] = (),
        prefix: str = "",
        bounds: tuple[int, int] | None = None,
    ) -> None:
        self.expected = expected
        self.check = check
        self.base = base
        self.words = words
        self.prefix = prefix
        self.bounds = bounds


def _whole_number(least: int, most: int, expected: str) -> FieldType:
    return FieldType(expected, lambda value: type(value) is int and least <= value < most, int, bounds=(least, most))


def _id(prefix: str) -> FieldType:
    def check(value: Any) -> bool:
        return type(value) is str and is_id(value, prefix[:-1])

    return FieldType(f"an id such as {prefix}1", check, prefix=prefix)


def _one_of(*words: str) -> FieldType:
    return FieldType(f"one of {', '.join(words)}", words.__contains__, words=words)


TYPES: dict[str, FieldType] = {
    "Name": FieldType("a name", lambda value: type(value) is str and is_name(value)),
    "Text": FieldType("a text", _text),
    "Word": FieldType("a text of 1 to 255 characters", _word),
    "Time": FieldType("a time such as 2030-01-02T03:04:05Z", _time),
    "Count": _whole_number(0, 2**53, "a whole number from 0"),
    "Number": _whole_number(1, 10**12, "a whole number from 1"),
    "int": _whole_number(-(2**63), 2**63, "a whole number"),
    "bool": FieldType("true or false", lambda value: type(value) is bool, bool),
    "Seconds": FieldType(
        "a number of seconds from 0", lambda value: type(value) in (int, float) and 0 <= value < 1e12, float
    ),
    "Object": FieldType("an object", lambda value: type(value) is dict, dict),
    "Checked": FieldType("the outcome of a check", is_check, dict),
    "Reviewed": FieldType("the outcome of a review", is_review, dict),
    "Source": FieldType("where a task was imported from", is_source, dict),
    "RoleTable": FieldType("roles by their names", _roles, dict),
    "SettingTable": FieldType("settings by their names", _settings, dict),
    "TaskId": _id("task-"),
    "MessageId": _id("msg-"),
    "PlanId": _id("plan-"),
    "ShutdownId": _id("shutdown-"),
    "QuestionId": _id("ask-"),
    "LandingId": _id("landing-"),
    "TeamState": _one_of("active", "closed"),
    "TaskStatus": _one_of("pending", "in_progress", "in_review", "completed", "failed", "cancelled"),
    "LandingState": _one_of("queued", "checking", "landed", "red", "conflict", "refused"),
    "Priority": _one_of("high", "normal", "low"),
    "PlanStatus": _one_of("proposed", "approved", "rejected"),
    "ShutdownStatus": _one_of("requested", "approved", "rejected"),
    "MessageType": _one_of("plain", "broadcast", "reply", "notice", "plan", "shutdown", "output", "question", "info"),
    "SessionState": _one_of("starting", "running", "waiting", "done", "paused"),
    "TerminalState": _one_of("idle", "working", "permission", "unknown", "gone"),
    "Outcome": _one_of("completed", "failed", "stopped", "lost"),
    "AskedWhom": _one_of("agents", "human"),
    "Depth": _one_of("low", "medium", "high"),
    "QuestionStatus": _one_of("pending", "collecting", "complete", "timeout", "deferred"),
    "Permissions": _one_of("ask", "edit", "all"),
}
_CHECK: dict[str, Check] = {
    **dict.fromkeys(("command", "output", "directory"), _text),
    **{key: TYPES[name].check for key, name in {"by": "Name", "at": "Time", "status": "int", "stale": "bool"}.items()},
    "commit": _word,
    "left": _list(_text),
}
_REVIEW: dict[str, Check] = {"verdict": _word, "by": TYPES["Name"].check, "at": _time, "reason": _text}
_SOURCE: dict[str, Check] = {
    **dict.fromkeys(("from", "id", "author"), _word),
    "url": _text,
    "foreign": TYPES["bool"].check,
    "seen": TYPES["Object"].check,
}
