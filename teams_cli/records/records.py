"""Records: a record is the content of one JSON file as a light class, whose annotations define its shape.

Importing the standard library's dataclasses takes 17 ms, as much as the rest of a command, so records have a base class
of their own. Types stay strings until `types` reads them.
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
    """A default for which *factory* makes a new value for each record, like `default_factory` of dataclasses."""

    def __init__(self, factory: Callable[[], Any]) -> None:
        self.factory = factory


def field(*, default_factory: Callable[[], Any]) -> Any:
    """Declare a field whose default is a new list or object for each record."""
    return Fresh(default_factory)


MISSING = object()
"""Stands for the missing default of a field whose value must be given."""
_DOCUMENT = "_document"
"""The attribute with the JSON object from which the record was made. A changed copy of the record does not have it."""
_UNSHOWN = frozenset({"owed"})


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class Record:
    """The base class of all records. Names are in snake_case here and in camelCase on disk. Unknown keys are kept in
    `extra` and written back.
    """

    if TYPE_CHECKING:
        fields: ClassVar[dict[str, tuple[str, Any]]]
        attributes: ClassVar[dict[str, str]]
        defaults: ClassVar[dict[str, Any]]
        without_plain_default: ClassVar[list[str]]
        nested: ClassVar[dict[str, type[Record]]]
        extra: dict[str, Any] = field(default_factory=dict)

    nested = {}  # noqa: RUF012  # declared above
    """The attributes that hold lists of records, with the class of each."""

    def __init_subclass__(cls) -> None:
        """Fill the tables of a kind of records from the annotations of its class. A kind of records is never a subclass
        of another kind.
        """
        cls.fields, cls.attributes, cls.defaults, cls.without_plain_default = {}, {}, {}, []
        namespace = cls.__dict__
        for name in namespace.get("__annotations__", ()):  # inspect costs 10 ms to import
            key, default = key_of(name), namespace.get(name, MISSING)
            cls.fields[name] = key, default
            cls.attributes[key] = name
            cls.defaults[name] = default
            if default is MISSING or type(default) is Fresh:
                cls.without_plain_default.append(name)

    def __init__(self, **values: Any) -> None:
        extra = values.pop("extra", None) or {}
        self._refuse_unknown(values)
        self._set_values({**self.defaults, **values}, extra)

    def _refuse_unknown(self, values: dict[str, Any]) -> None:
        if unknown := [name for name in values if name not in self.fields]:
            raise TypeError(f"{type(self).__name__} has no {', '.join(unknown)}")

    def _set_values(self, values: dict[str, Any], extra: dict[str, Any]) -> None:
        # Plain defaults are attributes of the class already.
        for name in self.without_plain_default:
            value = values.get(name, self.defaults[name])
            if value is MISSING:
                raise TypeError(f"{type(self).__name__} needs {name}")
            if type(value) is Fresh:
                values[name] = value.factory()
        values["extra"] = extra
        self.__dict__ = values

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Make a record from a checked JSON object. The record keeps the *document*, which must not be changed
        afterwards.
        """
        attributes = cls.attributes
        extra: dict[str, Any] = {}
        try:  # in nearly all documents every key is known
            values = {attributes[key]: value for key, value in document.items()}
        except KeyError:
            values = {attributes[key]: value for key, value in document.items() if key in attributes}
            extra = {key: value for key, value in document.items() if key not in attributes}
        for name, kind in cls.nested.items():
            if items := values.get(name):
                values[name] = [kind.from_json(item) for item in items]
        record = object.__new__(cls)
        record._set_values(values, extra)
        values[_DOCUMENT] = document
        return record

    def _all_values(self) -> dict[str, Any]:
        return {**self.defaults, **self.__dict__, _DOCUMENT: None}

    def to_json(self) -> dict[str, Any]:
        """Return the record as a JSON object, without values that are None. Keys are in the order of the fields, and
        unknown keys come last. But a record that was read and not changed keeps the order of its file.
        """
        values = self.__dict__
        document_read = values.get(_DOCUMENT)
        if document_read is None or None in document_read.values():
            # The values begin in the order of the fields. After them come those that are no fields.
            pairs = zip(self.attributes, self._all_values().values(), strict=False)
            document = {key: value for key, value in pairs if value is not None}
            document.update(self.extra)
        else:
            document = document_read.copy()
        for name in self.nested:
            if items := values.get(name):
                document[self.fields[name][0]] = [item.to_json() for item in items]
        return document

    def to_document(self) -> dict[str, Any]:
        """Return the record as a JSON object for users, without the keys that only the program needs. A field that is
        missing in a file written by hand has its default.
        """
        return shown(self.to_complete_json())

    def to_complete_json(self) -> dict[str, Any]:
        """Return the record as a JSON object with every field that has a value. If the file of the record lacks a
        field, its default is included.
        """
        return self.having().to_json()  # a copy does not keep to the fields of the file

    def numbered(self, **numbers: Any) -> Self:
        """Return the record with the *numbers* that the store gave it: its id and number."""
        return self.having(**numbers)

    def still_due(self, notice: Any, store: Any, team: str) -> Any:
        """Return the *notice* about this record, which has not been sent yet, in the form in which it should be sent.
        Return None if it is no longer needed.
        """
        return notice

    def paid(self, notice: Any, number: int) -> Self:
        """Return the record after the *notice* that it owed was sent. *number* is the number of the message; 0 if the
        notice was not sent, because it is no longer needed.
        """
        return self

    def having(self, **changes: Any) -> Self:
        """Return a copy of the record, with the *changes* to its fields."""
        self._refuse_unknown(changes)
        other = object.__new__(type(self))
        other.__dict__ = {**self._all_values(), **changes}
        return other

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._all_values() == self._all_values()

    __hash__ = None  # type: ignore[assignment]  # records are values that hold lists

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.to_json().items())})"


def shown(document: dict[str, Any]) -> dict[str, Any]:
    """Remove from a record's JSON object the keys that only the program needs, and return the object."""
    for key in _UNSHOWN:
        document.pop(key, None)
    return document


def key_of(name: str) -> str:
    """Return the key on disk of the attribute *name*: `claimedAt` for `claimed_at`, `from` for `from_`."""
    if "_" not in name:
        return name
    in_capitals = name.title().replace("_", "")
    return name[0] + in_capitals[1:]


class Owed(Record):
    """A notice that is still to be sent. Its *uid* is made from what caused the notice, so that no second message is
    added if the notice is sent twice.

    *by* is the member who caused the notice. The notice counts as handled once its recipient does what it is *about*.
    *event* and *task* are for programs: what happened, and to which task.
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
    """Return the *record* with these *notices* added to those that it owes already. The record and its notices are
    stored in one commit.
    """
    return record.having(owed=[*(record.owed or ()), *notices]) if notices else record  # type: ignore[attr-defined]
