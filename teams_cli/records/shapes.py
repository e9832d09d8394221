"""Whether a document surely has the shape of its record: the quick half of checking, for what carries our checksum.

A checksum tells that nothing was changed by accident, and not who wrote it. So each value is looked at by the type that
its field declares. What does not surely fit is for `validation` to judge, which costs its import and names what is
wrong; what fits here fits there.
"""

from __future__ import annotations

from teams_cli.clock import parse_rfc3339
from teams_cli.names import is_name, is_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from teams_cli.records.records import Record

    Check = Callable[[Any], bool]

_checks: dict[type[Record], dict[str, Check]] = {}
_always: dict[type[Record], frozenset[str]] = {}
"""The keys of the fields that begin with a value, or need one."""
_good: dict[type[Record], dict[str, str]] = {}
"""The text that each key of a record had when it was last looked at, if it was good: most have the same again."""


def fits(kind: type[Record], document: object) -> bool:
    """Whether every value of the document is of the type that its field declares; what is missing is not looked for."""
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
    """Whether the document, and each within it, has every field that a record of its kind always has."""
    if kind not in _always:
        _always[kind] = frozenset(key for key, default in kind.fields.values() if default is not None)
    if not _always[kind] <= document.keys():
        return False
    for name, within in kind.nested.items():
        items = document.get(kind.fields[name][0])
        if items and not all(is_whole(within, item) for item in items):
            return False
    return True


def knows(kind: type[Record]) -> list[str]:
    """The declared types that are not known here: documents with these always go the slow way."""
    unknown = [_type_of(kind, name) for name in kind.fields if name not in kind.nested]
    found = [said for said in unknown if _check(said) is _never]
    return found + [said for nested in kind.nested.values() for said in knows(nested)]


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


def _check(said: str) -> Check:
    if said.startswith("list["):
        part = _check(said[5:-1].removesuffix(" | None"))
        return _list((lambda value: value is None or part(value)) if said.endswith(" | None]") else part)
    if said in _WORDS:
        return _WORDS[said].__contains__
    return _id(_IDS[said]) if said in _IDS else _TYPES.get(said, _never)


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


def _whole(least: int, most: int) -> Check:
    return lambda value: type(value) is int and least <= value < most


def _id(prefix: str) -> Check:
    return lambda value: type(value) is str and value.startswith(prefix) and is_number(value[len(prefix) :])


def _list(check: Check) -> Check:
    return lambda value: type(value) is list and (not value or all(map(check, value)))


def _records(kind: type[Record]) -> Check:
    return lambda value: type(value) is list and (not value or all(fits(kind, item) for item in value))


def is_check(value: Any) -> bool:
    """Whether it is what came of a check, as tasks and landings keep it."""
    return _keeps(value, _CHECK, ("command", "status", "by", "at"))


def is_review(value: Any) -> bool:
    """Whether it is what came of a review, as a task keeps it."""
    return _keeps(value, _REVIEW, ("verdict", "by"))


def _keeps(value: Any, known: dict[str, Check], needed: tuple[str, ...]) -> bool:
    if type(value) is not dict or not all(key in value for key in needed):
        return False
    return all(known[key](part) for key, part in value.items() if key in known)


def _roles(value: Any) -> bool:
    return type(value) is dict and all(map(is_name, value)) and all(map(_role, value.values()))


def _role(value: Any) -> bool:
    if type(value) is not dict or not is_name(str(value.get("extends", ""))) or type(value["extends"]) is not str:
        return False
    known = {"extends": _text, "description": _text, **dict.fromkeys(("skill", "allow", "deny"), _list(_word))}
    return all(key in known and known[key](part) for key, part in value.items())


def _settings(value: Any) -> bool:
    return type(value) is dict and all(map(_word, value)) and all(_setting(part) for part in value.values())


def _setting(value: Any) -> bool:
    return type(value) in (bool, int, str) or (type(value) is float and abs(value) < 1e300)


_TYPES: dict[str, Check] = {
    "Name": lambda value: type(value) is str and is_name(value),
    "Text": _text,
    "Word": _word,
    "Time": _time,
    "Count": _whole(0, 2**53),
    "Number": _whole(1, 10**12),
    "int": _whole(-(2**63), 2**63),
    "bool": lambda value: type(value) is bool,
    "Seconds": lambda value: type(value) in (int, float) and 0 <= value < 1e12,
    "Object": lambda value: type(value) is dict,
    "Checked": is_check,
    "Reviewed": is_review,
    "RoleTable": _roles,
    "SettingTable": _settings,
}
_CHECK: dict[str, Check] = {
    **dict.fromkeys(("command", "output", "directory"), _text),
    **{key: _TYPES[said] for key, said in {"by": "Name", "at": "Time", "status": "int", "stale": "bool"}.items()},
    "commit": _word,
    "left": _list(_text),
}
_REVIEW: dict[str, Check] = {"verdict": _word, "by": _TYPES["Name"], "at": _time, "reason": _text}
_IDS = {
    "TaskId": "task-",
    "MessageId": "msg-",
    "PlanId": "plan-",
    "ShutdownId": "shutdown-",
    "QuestionId": "ask-",
    "LandingId": "landing-",
}
_WORDS = {
    "TeamState": ("active", "closed"),
    "TaskStatus": ("pending", "in_progress", "in_review", "completed", "failed", "cancelled"),
    "LandingState": ("queued", "checking", "landed", "red", "conflict", "refused"),
    "Priority": ("high", "normal", "low"),
    "PlanStatus": ("proposed", "approved", "rejected"),
    "ShutdownStatus": ("requested", "approved", "rejected"),
    "MessageType": ("plain", "broadcast", "reply", "notice", "plan", "shutdown", "output", "question", "info"),
    "SessionState": ("starting", "running", "waiting", "done", "paused"),
    "TerminalState": ("idle", "working", "permission", "unknown", "gone"),
    "Outcome": ("completed", "failed", "stopped", "lost"),
    "AskedWhom": ("agents", "human"),
    "Depth": ("low", "medium", "high"),
    "QuestionStatus": ("pending", "collecting", "complete", "timeout", "deferred"),
    "Permissions": ("ask", "edit", "all"),
}
