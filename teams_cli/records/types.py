"""The pydantic types for the fields of records, settings and workflows. They validate data from outside: files that
this tool did not write, and input from people and clients. This module is imported only where something is validated.

The types for records are made from the table of field types, so pydantic's check and the quick check agree.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal, Required, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    create_model,
)
from typing_extensions import TypedDict

from teams_cli import errors
from teams_cli.names import MAX_NAME
from teams_cli.records.field_types import TYPES, FieldType
from teams_cli.records.records import MISSING, Fresh, Record

_CONSTRAINTS = {
    "Word": [StringConstraints(min_length=1, max_length=255)],
    "Time": [Field(max_length=64)],
    "Seconds": [Field(ge=0, lt=1e12)],
}
"""Constraints that the JSON Schema shows. The checks of the table of field types test them, too."""

if TYPE_CHECKING:
    Name = str
    Text = str
    Word = str
    Time = str
    Count = int
    Number = int
    Seconds = float
    Object = dict[str, Any]
    Checked = Object
    Reviewed = Object
    Source = Object
    TaskId = str
    MessageId = str
    PlanId = str
    ShutdownId = str
    QuestionId = str
    LandingId = str
    TeamState = str
    TaskStatus = str
    LandingState = str
    Priority = str
    PlanStatus = str
    ShutdownStatus = str
    MessageType = str
    SessionState = str
    TerminalState = str
    Outcome = str
    AskedWhom = str
    Depth = str
    QuestionStatus = str
    Permissions = str
else:

    def _type_of(name: str, declared: FieldType) -> Any:
        """Return the type of pydantic that accepts what *declared*, the field type called *name*, accepts."""
        if declared.words:
            return Literal[declared.words]
        if declared.prefix:
            suffix = r"[1-9][0-9]{0,11}"
            if name == "TaskId":  # the id of an imported task may have a name instead of a number
                suffix += r"|([A-Za-z]|[0-9]+[A-Za-z_-])[A-Za-z0-9_-]*"
            longest = len(declared.prefix) + MAX_NAME
            return Annotated[str, StringConstraints(pattern=rf"^{declared.prefix}({suffix})\z", max_length=longest)]
        if declared.bounds:
            return Annotated[int, Field(ge=declared.bounds[0], lt=declared.bounds[1])]

        def validate(value: Any) -> Any:
            if not declared.check(value):
                raise ValueError(f"is not {declared.expected}")
            return value

        base = dict[str, Any] if declared.base is dict else declared.base
        return Annotated[(base, *_CONSTRAINTS.get(name, ()), AfterValidator(validate))]

    globals().update({name: _type_of(name, declared) for name, declared in TYPES.items() if not name.islower()})


def _signal_and_seconds(pair: list[Any]) -> list[Any]:
    """Check a pair: a signal, and the seconds until the next one. A list of such pairs says how to end a client."""
    signals = ("HUP", "INT", "QUIT", "TERM", "KILL")
    seconds = pair[1] if len(pair) == 2 else -1
    if type(seconds) not in (int, float) or not 0 <= seconds < 1e6 or pair[0] not in signals:
        raise ValueError(f"is not a signal ({', '.join(signals)}) and the seconds that it is given")
    return pair


Verdict = Literal["allow", "ask", "deny"]
PermissionTable = dict[Literal["tool"], dict[Word, dict[Word, Verdict] | Verdict]]


class RoleDefinition(TypedDict, total=False):
    """A role that a team or a user defines."""

    extends: Required[Name]
    skill: list[Word]
    description: Text
    workflow: Word
    allow: list[Word]
    deny: list[Word]


RoleTable = dict[Name, RoleDefinition]
SettingTable = dict[Word, bool | int | float | str]
HarnessTable = dict[Name, Object]
HarnessInput = Literal["prompt", "messages"]
Ladder = list[Annotated[list[Any], AfterValidator(_signal_and_seconds)]]


_checkers: dict[type[Record], TypeAdapter[Any]] = {}


def check_record(kind: type[Record], document: object, where: str) -> None:
    """Check that *document*, which was read from *where*, has the shape of the record *kind*.

    Raises:
        DamagedRecord: *document* does not have this shape. The error names *where* and the field, and says what is
            wrong.
    """
    if kind not in _checkers:
        _checkers[kind] = TypeAdapter(_model(kind))
    try:
        _checkers[kind].validate_python(document, strict=True)
    except ValidationError as error:
        raise errors.DamagedRecord(
            f"{where}: {first_problem(error)}", "Correct the file, or move it away.", where
        ) from None


def schema_of(kind: type[Record], below: str = "#/components/schemas/{model}") -> dict[str, Any]:
    """Return the JSON Schema of the record *kind*. *below* is the form of references to the schemas of nested records,
    in which `{model}` stands for the name of the nested kind.
    """
    schema = TypeAdapter(_model(kind)).json_schema(ref_template=below)
    with_dollars: dict[str, Any] = json.loads(json.dumps(schema).replace("\\\\z", "$"))  # JSON Schema has no \\z
    return with_dollars


def first_problem(error: ValidationError) -> str:
    """Return one of the problems that *error* reports, as `field: what is wrong`. It is the first one, or one for the
    same field that lists the allowed words.
    """
    problems = error.errors(include_url=False, include_context=False)
    problem = problems[0]
    # If a value may have several forms, each has its problem. The one that lists the allowed words says most.
    for each in problems:
        if each["type"] == "literal_error" and each["loc"][:-1] == problem["loc"][:-1]:
            problem = each
            break
    field = ".".join(str(part) for part in problem["loc"] if "[" not in str(part)) or "the document"
    return f"{field}: {problem['msg']}"


def _model(kind: type[Record]) -> Any:
    """Return a pydantic model with the fields of the record *kind*, for checks and for the JSON Schema."""
    models = {nested.__name__: _model(nested) for nested in kind.nested.values()}
    # Annotations that name a nested record are resolved to its model.
    hints = get_type_hints(kind, globalns={**globals(), **models}, include_extras=True)
    fields: dict[str, Any] = {}
    for name, (key, default) in kind.fields.items():
        # A name that pydantic uses for its models must not be the name of a field.
        field_name = f"{name}_" if hasattr(BaseModel, name) else name
        options: dict[str, Any] = {}
        if isinstance(default, Fresh):
            options = {"default_factory": default.factory}
        elif default is not MISSING:
            options = {"default": default}
        fields[field_name] = hints[name], Field(alias=key, **options)
    return create_model(kind.__name__, __config__=ConfigDict(extra="allow", allow_inf_nan=False), **fields)
