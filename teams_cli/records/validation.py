"""Validation of data from outside: files that this tool did not write, and input from people and clients."""

from __future__ import annotations

import json
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from teams_cli import errors
from teams_cli.records import types
from teams_cli.records.records import MISSING, Fresh, Record

_checkers: dict[type[Record], TypeAdapter[Any]] = {}


def check_record(kind: type[Record], document: object, where: str) -> None:
    """Check that *document*, which was read from *where*, has the shape of the record *kind*.

    Raises:
        DamagedRecord: *document* does not have this shape. The error names the place, the field, and what is wrong with
            it.
    """
    if kind not in _checkers:
        _checkers[kind] = TypeAdapter(_model(kind))
    try:
        _checkers[kind].validate_python(document, strict=True)
    except ValidationError as error:
        raise errors.DamagedRecord(
            f"{where}: {first_problem(error)}", "Correct the file, or see `teams doctor`.", where
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
    """Return a model of pydantic with the fields of the record *kind*, for checks and for the JSON Schema."""
    models = {nested.__name__: _model(nested) for nested in kind.nested.values()}
    hints = get_type_hints(kind, globalns={**vars(types), **models}, include_extras=True)
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
