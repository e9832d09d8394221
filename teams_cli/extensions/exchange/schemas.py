"""The command `schema`: JSON Schemas of the files that people write, made from the models that read them."""

from __future__ import annotations

from teams_cli.commands.declaration import Command, argument, in_group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ID = {"type": ["string", "integer"]}
NAMES = ("teams.yaml", "workflow", "tasks", "config.json")
_SCHEMA = """Show the JSON Schema with which your editor can check a file that you write.

`workflow` is for the front matter of a workflow file; `tasks` is for a file for `create-task --from`. Save the schema
beside your file, and name it in the first line of the file:

`# yaml-language-server: $schema=./teams.schema.json`
"""


def of(name: str) -> Schema:
    """Return the JSON Schema for the kind of file called *name*."""
    from teams_cli.records.types import schema_of
    from teams_cli.teams.config import Config
    from teams_cli.workflows.model import Workflow
    from teams_cli.workflows.roster import Roster

    if name == "teams.yaml":
        schema = Roster.model_json_schema()
        schema["$defs"]["ListedTask"]["required"].remove("id")  # a missing id is made from the title
    elif name == "workflow":
        schema = Workflow.model_json_schema()
    elif name == "tasks":
        schema = _tasks()
    else:
        schema = schema_of(Config, "#/$defs/{model}")
    return {"$schema": _DIALECT, "title": name, **{key: value for key, value in schema.items() if key != "title"}}


def _tasks() -> Schema:
    """Return the schema of a list of tasks, or of an object that has the list under `tasks`. In the list, a title alone
    can stand for a task, an id may be a number, and one text may list several ids.
    """
    from pydantic import TypeAdapter

    from teams_cli.workflows.roster import ListedTask

    schema = TypeAdapter(list[ListedTask]).json_schema()
    task = schema["$defs"]["ListedTask"]
    task["required"].remove("id")
    task["properties"]["id"] = _ID
    for key in ("blockedBy", "after", "blocks"):
        task["properties"][key]["anyOf"] = [{"items": _ID, "type": "array"}, {"type": ["integer", "string"]}]
    rows = {"type": "array", "minItems": 1, "items": {"anyOf": [schema["items"], {"type": "string"}]}}
    wrapped = {"type": "object", "properties": {"tasks": rows}, "required": ["tasks"]}
    return {"$defs": schema["$defs"], "anyOf": [rows, wrapped]}


def as_text(schema: Schema) -> str:
    """Return the schema as indented JSON with a line break at its end, as it is written to a file."""
    import json

    return json.dumps(schema, indent=2) + "\n"


COMMANDS = in_group(
    "Workflows",
    Command(
        "schema",
        lambda call, name: of(name),
        argument("FILE", f"The kind of file: {', '.join(NAMES)}.", name="name", choices=NAMES),
        doc=_SCHEMA,
        words=lambda schema: as_text(schema).splitlines(),
        traits="reads",
        example="schema teams.yaml",
        in_team=False,
        also="json-schema",
    ),
)
