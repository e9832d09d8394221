"""The types of record fields, in one table. Records are checked by this table when they are written and read, and the
pydantic types are made from it.

`fits` is the quick check. It also checks files with a right checksum: anybody can compute a checksum, so the checksum
only shows that nothing changed by accident. A record that the quick check refuses is checked by `types`, which
imports pydantic.
"""

from __future__ import annotations

from teams_cli.clock import parse_rfc3339
from teams_cli.environment import LEVELS
from teams_cli.names import is_id, is_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from teams_cli.records.records import Record

    Check = Callable[[Any], bool]

_checks: dict[type[Record], dict[str, Check]] = {}
_always_present: dict[type[Record], frozenset[str]] = {}
"""The keys of fields whose default is not None, and of those without a default."""
_accepted: dict[type[Record], dict[str, str]] = {}
"""The text that was last accepted under each key of a kind of record. Most records have the same text under a key as
the record before.
"""


def fits(kind: type[Record], document: object) -> bool:
    """Whether every value of the *document* has the type of its field, as *kind* declares it. Fields may be missing."""
    if type(document) is not dict:
        return False
    checks = _checks.get(kind) or _checks_of(kind)
    accepted = _accepted[kind]
    for key, value in document.items():
        if type(value) is str:
            if accepted.get(key) == value:  # it was checked in an earlier record
                continue
            if check := checks.get(key):
                if not check(value):
                    return False
                accepted[key] = value
        elif (check := checks.get(key)) and not check(value):
            return False
    return True


def is_whole(kind: type[Record], document: dict[str, Any]) -> bool:
    """Whether the *document*, and each record within it, has every field that this version always stores. If not,
    defaults must be filled in.
    """
    if kind not in _always_present:
        _always_present[kind] = frozenset(key for key, default in kind.fields.values() if default is not None)
    if not _always_present[kind] <= document.keys():
        return False
    for name, nested_kind in kind.nested.items():
        items = document.get(kind.fields[name][0])
        if items and not all(is_whole(nested_kind, item) for item in items):
            return False
    return True


def misfit(kind: type[Record], document: dict[str, Any]) -> tuple[str, str]:
    """Return the key of the first value that does not have the type of its field, and a description of the expected
    type. Return two empty texts if all values have the right types.
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


def unknown_types(kind: type[Record]) -> list[str]:
    """Return the types of fields that *kind* declares but the table of types lacks. The quick check refuses every
    record with a field of these types, so the record is checked by pydantic.
    """
    declared_types = [_type_of(kind, name) for name in kind.fields if name not in kind.nested]
    unknown = [declared for declared in declared_types if _check_for(declared) is _refuse]
    for nested_kind in kind.nested.values():
        unknown += unknown_types(nested_kind)
    return unknown


def _checks_of(kind: type[Record]) -> dict[str, Check]:
    """Return the check of each field of a kind of record, by the field's key, and remember these checks."""
    checks: dict[str, Check] = {}
    for name, (key, _) in kind.fields.items():
        nested_kind = kind.nested.get(name)
        checks[key] = _list_of_records(nested_kind) if nested_kind else _check_for(_type_of(kind, name))
    _accepted[kind] = {}
    _checks[kind] = checks
    return checks


def _type_of(kind: type[Record], name: str) -> str:
    """Return the declared type of the field *name*, such as `Time` for a field of the type `Time | None`."""
    return str(kind.__annotations__[name]).removesuffix(" | None")  # a document leaves out what is None


def _check_for(declared: str) -> Check:
    if declared.startswith("list["):
        check_item = _check_for(declared[5:-1].removesuffix(" | None"))
        if declared.endswith(" | None]"):
            return _list_of(lambda item: item is None or check_item(item))
        return _list_of(check_item)
    return TYPES[declared].check if declared in TYPES else _refuse


def _refuse(_: Any) -> bool:
    return False


def _is_text(value: Any) -> bool:
    if type(value) is not str:
        return False
    try:
        return value.isascii() or bool(value.encode())  # an error if a character is half a surrogate pair
    except UnicodeEncodeError:
        return False


def _is_word(value: Any) -> bool:
    return _is_text(value) and 0 < len(value) <= 255


def _is_time(value: Any) -> bool:
    try:
        return type(value) is str and len(value) <= 64 and bool(parse_rfc3339(value))
    except ValueError:
        return False


def _list_of(check_item: Check) -> Check:
    return lambda value: type(value) is list and all(map(check_item, value))


def _list_of_records(kind: type[Record]) -> Check:
    return _list_of(lambda item: fits(kind, item))


def _object_with(needed: tuple[str, ...], checks: dict[str, Check]) -> Check:
    """Return a function that checks whether a value is an object that has the *needed* keys and passes the *checks*."""

    def check_object(value: Any) -> bool:
        if type(value) is not dict or not all(key in value for key in needed):
            return False
        return all(checks[key](part) for key, part in value.items() if key in checks)

    return check_object


def _is_role_table(value: Any) -> bool:
    return type(value) is dict and all(map(is_name, value)) and all(map(_is_role, value.values()))


def _is_role(value: Any) -> bool:
    if type(value) is not dict or type(value.get("extends")) is not str or not is_name(value["extends"]):
        return False
    return all(key in _ROLE and _ROLE[key](part) for key, part in value.items())


def _is_setting_table(value: Any) -> bool:
    return type(value) is dict and all(map(_is_word, value)) and all(map(_is_setting, value.values()))


def _is_setting(value: Any) -> bool:
    return type(value) in (bool, int, str) or (type(value) is float and abs(value) < 1e300)


class FieldType:
    """A type that a field can be declared with. *check* checks a value, and *expected* describes a valid value in
    words.

    The other arguments are for pydantic's type: the Python type *base*, and the allowed *words*, the *prefix* of an id,
    or the *bounds* of a number. The upper bound is excluded.
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


_NAME = FieldType("a name", lambda value: type(value) is str and is_name(value))
_INT = _whole_number(-(2**63), 2**63, "a whole number")
_BOOL = FieldType("true or false", lambda value: type(value) is bool, bool)
_OBJECT = FieldType("an object", lambda value: type(value) is dict, dict)
_ROLE: dict[str, Check] = {
    "extends": _is_text,
    "description": _is_text,
    "workflow": _is_word,
    **dict.fromkeys(("skill", "allow", "deny"), _list_of(_is_word)),
}
_CHECK: dict[str, Check] = {
    **dict.fromkeys(("command", "output", "directory"), _is_text),
    "by": _NAME.check,
    "at": _is_time,
    "status": _INT.check,
    "stale": _BOOL.check,
    "commit": _is_word,
    "left": _list_of(_is_text),
}
_REVIEW: dict[str, Check] = {"verdict": _is_word, "by": _NAME.check, "at": _is_time, "reason": _is_text}
_SOURCE: dict[str, Check] = {
    **dict.fromkeys(("from", "id", "author"), _is_word),
    "url": _is_text,
    "foreign": _BOOL.check,
    "seen": _OBJECT.check,
}
TYPES: dict[str, FieldType] = {
    "Name": _NAME,
    "Text": FieldType("a text", _is_text),
    "Word": FieldType("a text of 1 to 255 characters", _is_word),
    "Time": FieldType("a time such as 2030-01-02T03:04:05Z", _is_time),
    "Count": _whole_number(0, 2**53, "a whole number from 0"),
    "Number": _whole_number(1, 10**12, "a whole number from 1"),
    "int": _INT,
    "bool": _BOOL,
    "Seconds": FieldType(
        "a number of seconds from 0", lambda value: type(value) in (int, float) and 0 <= value < 1e12, float
    ),
    "Object": _OBJECT,
    "Checked": FieldType("the outcome of a check", _object_with(("command", "status", "by", "at"), _CHECK), dict),
    "Reviewed": FieldType("the outcome of a review", _object_with(("verdict", "by"), _REVIEW), dict),
    "Source": FieldType("where a task was imported from", _object_with(("from", "id"), _SOURCE), dict),
    "RoleTable": FieldType("roles by their names", _is_role_table, dict),
    "SettingTable": FieldType("settings by their names", _is_setting_table, dict),
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
    "Permissions": _one_of(*LEVELS),
}
