"""Records: the content of one JSON file as a light class, whose annotations define its shape.

Importing the standard library's dataclasses takes 17 ms, as much as the rest of a command, so records have a base class
of their own. Types stay strings until `validation` reads them.
"""

from __future__ import annotations

from teams_cli.names import SYSTEM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

    from teams_cli.records.types import MessageType, Name, Text, Word

    R = TypeVar("R", bound="Record")
else:

    def dataclass_transform(**_options):
        return lambda cls: cls


class Fresh:
    """A field default that is made anew for each record, like `default_factory` of dataclasses."""

    def __init__(self, factory: Callable[[], Any]) -> None:
        self.factory = factory


def field(*, default_factory: Callable[[], Any]) -> Any:
    """Give a field a fresh list or object as its default."""
    return Fresh(default_factory)


MISSING = object()
_SAID = "_said"
"""The attribute with the JSON object of which the record was made, as long as both are equal."""
_UNSHOWN = frozenset({"owed"})


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class Record:
    """Base of all records: snake_case here, camelCase on disk; unknown keys are kept in `extra` and written back."""

    if TYPE_CHECKING:
        fields: ClassVar[dict[str, tuple[str, Any]]]
        attributes: ClassVar[dict[str, str]]
        blank: ClassVar[dict[str, Any]]
        unsure: ClassVar[list[str]]
        nested: ClassVar[dict[str, type[Record]]]
        extra: dict[str, Any] = field(default_factory=dict)

    nested = {}  # noqa: RUF012  # declared above
    """The attributes that hold lists of records, with the class of each."""

    def __init_subclass__(cls) -> None:
        cls.fields, cls.attributes, cls.blank, cls.unsure = {}, {}, {}, []
        own = cls.__dict__
        for name in own.get("__annotations__", ()):  # inspect costs 10 ms to import
            key, default = key_of(name), own.get(name, MISSING)
            cls.fields[name] = key, default
            cls.attributes[key] = name
            cls.blank[name] = default
            if default is MISSING or type(default) is Fresh:
                cls.unsure.append(name)

    def __init__(self, **values: Any) -> None:
        extra = values.pop("extra", None) or {}
        if unknown := [name for name in values if name not in self.fields]:
            raise TypeError(f"{type(self).__name__} has no {', '.join(unknown)}")
        self._have({**self.blank, **values}, extra)

    def _have(self, own: dict[str, Any], extra: dict[str, Any]) -> None:
        """Set these values. A field without a value gets its default; plain defaults stay in the class."""
        for name in self.unsure:
            value = own.get(name, self.blank[name])
            if value is MISSING:
                raise TypeError(f"{type(self).__name__} needs {name}")
            if type(value) is Fresh:
                own[name] = value.factory()
        own["extra"] = extra
        self.__dict__ = own

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Make the record of a checked JSON object, which nobody may change afterwards."""
        attributes = cls.attributes
        extra: dict[str, Any] = {}
        try:  # nearly every key is known
            own = {attributes[key]: value for key, value in document.items()}
        except KeyError:
            own = {attributes[key]: value for key, value in document.items() if key in attributes}
            extra = {key: value for key, value in document.items() if key not in attributes}
        for name, kind in cls.nested.items():
            if value := own.get(name):
                own[name] = [kind.from_json(item) for item in value]
        record = object.__new__(cls)
        record._have(own, extra)
        own[_SAID] = document
        return record

    def _all(self) -> dict[str, Any]:
        """Return all values by attribute, those of fields first, in their order."""
        return {**self.blank, **self.__dict__, _SAID: None}

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object, in the order of the fields or as it was read. Unknown keys come last; None is left
        out.
        """
        own = self.__dict__
        said = own.get(_SAID)
        if said is None or None in said.values():
            pairs = zip(self.attributes, self._all().values(), strict=False)
            document = {key: value for key, value in pairs if value is not None}
            document.update(self.extra)
        else:
            document = said.copy()
        for name in self.nested:
            if value := own.get(name):
                document[self.fields[name][0]] = [item.to_json() for item in value]
        return document

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object for others: with the fields that a hand-written file left out, and without the keys
        that only the program needs.
        """
        return shown(self.having().to_json())

    def numbered(self, **numbers: Any) -> Self:
        """Return the record with the number that the store gave it."""
        return self.having(**numbers)

    def still_due(self, told: Any, store: Any, team: str) -> Any:
        """Return the notice if it is still due as things are now; else None."""
        return told

    def paid(self, told: Any, number: int) -> Self:
        """Return the record after a notice that it owed was sent as the message of that number."""
        return self

    def having(self, **changes: Any) -> Self:
        """Return a copy with other values in some fields."""
        if unknown := [name for name in changes if name not in self.fields]:
            raise TypeError(f"{type(self).__name__} has no {', '.join(unknown)}")
        other = object.__new__(type(self))
        other.__dict__ = {**self._all(), **changes}
        return other

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._all() == self._all()

    __hash__ = None  # type: ignore[assignment]  # records are values that hold lists

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.to_json().items())})"


def shown(document: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON object of a record without the keys that only the program needs."""
    for key in _UNSHOWN:
        document.pop(key, None)
    return document


def key_of(name: str) -> str:
    """The key on disk of the attribute *name*: `claimed_at` is `claimedAt`, `from_` is `from`."""
    if "_" not in name:
        return name
    words = name.title().replace("_", "")
    return name[0] + words[1:]


class Owed(Record):
    """A notice that is still to be sent. Its *uid* is made from its cause, so that sending it twice adds nothing.

    *by* is who caused it. Doing the thing that it is *about* handles it. *event* and *task* are for programs: see
    `messages.events`.
    """

    to: Name
    message: Text
    uid: Word
    type: MessageType = "notice"
    sender: Name = SYSTEM
    by: Name = SYSTEM
    about: Word | None = None
    event: Word | None = None
    task: Word | None = None


def owing(record: R, *notices: Owed) -> R:
    """Add notices to those that the record owes, for the commit that changes it."""
    return record.having(owed=[*(record.owed or ()), *notices]) if notices else record  # type: ignore[attr-defined]
