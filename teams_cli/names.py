"""Names of teams, agents and roles, and numbered ids. Names that are typed and names that are read from disk are
checked in the same way.
"""

from __future__ import annotations

from teams_cli import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_DIGITS = frozenset("0123456789")
MAX_NAME = 64
HUMAN = "human"
SYSTEM = "system"
EVERYONE = "all"
RESERVED = frozenset({HUMAN, SYSTEM, EVERYONE})
_KINDS = ("task", "msg", "plan", "ask", "shutdown", "landing")
_DEVICES = frozenset({"con", "prn", "aux", "nul"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(10)})


def is_name(text: str) -> bool:
    """Return whether *text* has the form of a name: at most 64 ASCII letters, digits, `-` and `_`, of which the first
    is a letter or digit.
    """
    if not (text.isascii() and 0 < len(text) <= MAX_NAME and text[0] not in "-_"):
        return False
    return text.isalnum() or _ALLOWED.issuperset(text)


def check_name(text: str, what: str) -> str:
    """Return *text* if it can be the name of a new *what* ("team", "agent", "role").

    Raises:
        InvalidValue: *text* does not have the form of a name, is reserved, or is a device name on some system.
    """
    check_key(text, what)
    if text.lower() in RESERVED:
        raise errors.InvalidValue(f"{text!r} is reserved and can't name {_article(what)}", "Choose another name.")
    return text


def check_key(text: str, what: str) -> str:
    """Return *text* if it can be the key of a new *what*, such as "page".

    Raises:
        InvalidValue: *text* does not have the form of a key, or is a device name on some system.
    """
    if not is_name(text):
        raise errors.InvalidValue(
            f"{text!r} can't name {_article(what)}",
            f"Use 1 to {MAX_NAME} letters (a-z, A-Z), digits, '-' and '_', the first a letter or digit.",
        )
    if text.lower() in _DEVICES:
        raise errors.InvalidValue(
            f"{text!r} is a device name on some systems and can't name {_article(what)}", "Choose another."
        )
    return text


def number_of(text: str, kind: str) -> int:
    """Return the number in `7` or `#7`, or in a whole id of the *kind*, such as `task-7`.

    Raises:
        InvalidValue: *text* has none of these forms.
    """
    digits = text.removeprefix("#").removeprefix(f"{kind}-")
    if not is_number(digits):
        listed = " All tasks: teams get-tasks" if kind == "task" else ""
        raise errors.InvalidValue(
            f"{text!r} is not the id of {_article(kind)}", f"Write it as {kind}-7, #7 or 7.{listed}"
        )
    return int(digits)


def id_of(text: str, kind: str) -> str:
    """Return the whole id, such as `task-7`, for `7`, `#7` or `task-7` if *kind* is `task`. A task that another program
    made may have a name in place of the number: `task-abc123`.

    Raises:
        InvalidValue: *text* has none of these forms.
    """
    return text if is_id(text, kind) else f"{kind}-{number_of(text, kind)}"


def is_id(text: str, kind: str) -> bool:
    """Return whether *text* is a whole id: the *kind* and a number. A task that another program made may have a name in
    place of the number.
    """
    prefix, _, suffix = text.partition("-")
    if prefix != kind:
        return False
    return is_number(suffix) or (kind == "task" and is_name(suffix) and not _DIGITS.issuperset(suffix))


def each_name(words: Iterable[str]) -> list[str]:
    """Return the names in *words*. Each word may have several names, separated by commas or blanks."""
    return [name for word in words for name in word.replace(",", " ").split()]


def is_like_id(word: str) -> bool:
    """Return whether *word* is a number, an id of any kind, or several numbers and ids separated by commas."""
    refs = [ref for ref in word.split(",") if ref]
    for ref in refs:
        kind = ref.partition("-")[0]
        if not is_number(ref.removeprefix("#")) and not (kind in _KINDS and is_id(ref, kind)):
            return False
    return bool(refs)


def is_number(text: str) -> bool:
    """Return whether *text* is a whole number of at least 1, in at most 12 ASCII digits without leading zeros."""
    return len(text) <= 12 and text.isdecimal() and text.isascii() and text[0] != "0"


def alias(index: int) -> str:
    """Return the alias with the number *index*. From 0, they are agentA … agentZ, agentA1 … agentZ1, agentA2 …"""
    letter = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[index % 26]
    return f"agent{letter}{index // 26 or ''}"


def _article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
