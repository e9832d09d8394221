"""Operations: what a role may be allowed. Each is declared at the function that does it, with who may from the start.

So whoever gets at the function, by a command or as a library, has the rule with it; there is no list to forget it in.
"""

from __future__ import annotations

from teams_cli.names import HUMAN
from teams_cli.teams.teams import LEADER, MANAGER, MEMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

MEMBERS = (LEADER, MEMBER, MANAGER)
EVERYBODY = (*MEMBERS, HUMAN)
WORKERS = (MEMBER, MANAGER)
LEADERS = (LEADER, HUMAN)


class Operation:
    """An operation: the roles that *may* do it unless rules say otherwise, in their order; whether it is possible in a
    closed team; and what leaders do *instead* who may not.
    """

    def __init__(self, name: str, may: Iterable[str], of_closed_team: bool = False, instead: str = "") -> None:
        self.name = name
        self.may = tuple(role for role in EVERYBODY if role in may)
        self.of_closed_team = of_closed_team
        self.instead = instead


_declared: dict[str, Operation] = {}
_reading: dict[str, Operation] = {}
_loaders: list[Callable[[], Any]] = []


def operation(name: str, *, may: Iterable[str], of_closed_team: bool = False, instead: str = "") -> Callable[[F], F]:
    """Declare that the function below does the operation of that name."""
    _declared[name] = Operation(name, may, of_closed_team, instead)
    return lambda function: function


def declare_reading(name: str) -> None:
    """Declare that looking at what is called so is open to everybody, members or not, unless rules say otherwise."""
    _reading[name] = Operation(name, EVERYBODY, of_closed_team=True)


def get(name: str) -> Operation:
    """The operation of that name, which the module that asks has declared, or imports.

    Raises:
        LookupError: Nobody has declared it: that is a bug, and nothing may be done under its name.
    """
    found = _declared.get(name) or _reading.get(name)
    if found is None:
        raise LookupError(f"no operation {name!r} is declared")
    return found


def find(name: str) -> Operation | None:
    """The operation that changes something under that name, if one is declared by what was imported."""
    return _declared.get(name)


def names() -> list[str]:
    """The names of all operations, in the order of the alphabet."""
    for load in _loaders:
        load()
    return sorted({**_declared, **_reading})


def declared_by(load: Callable[[], Any]) -> None:
    """Have *load* import what declares operations when all are asked for; else only what is needed is imported."""
    _loaders.append(load)
