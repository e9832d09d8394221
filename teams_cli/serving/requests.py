"""Requests from programs: commands called with JSON, through MCP or HTTP."""

from __future__ import annotations

import re
from functools import cache
from typing import cast

from teams_cli import commands, errors
from teams_cli.commands.call import Call, Outcome
from teams_cli.commands.declaration import AS, JSON, TEAM

# Imported now, although needed only later: the program may be updated while a server runs.
from teams_cli.questions import answering  # noqa: F401
from teams_cli.serving.watching import WatchedStore
from teams_cli.teams import config
from teams_cli.teams.permission import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from pydantic import BaseModel

    from teams_cli.commands.declaration import Command, Parameter
    from teams_cli.serving.watching import Requester, Watchers
    from teams_cli.store.contract import Store

    Spelling = Callable[[str], str]
    Arguments = Sequence[tuple[Parameter, str]]


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object from its keys and values, for the parser of a request.

    Raises:
        InvalidValue: A key occurs twice, so one of its values would be lost.
    """
    document: dict[str, Any] = {}
    for key, value in pairs:
        if key in document:
            raise errors.InvalidValue(f"the JSON has {key[:100]!r} twice in one object", "Give it once.")
        document[key] = value
    return document


def offered() -> list[Command]:
    """Return the commands that programs may request, in the order of the help."""
    return [command for command in commands.every().values() if not command.at_shell]


_WORD = re.compile(r""" (--[a-z-]+|"[^"\n]*"|'[^'\n]*'|…|(?!or\b|and\b)[\w@~/][\w@~/-]*(?:[.,][\w-]+)*(?:\.{3})?)""")
_NAMES = "|".join(sorted(commands.every(), key=len, reverse=True))
_COMMAND = re.compile(rf"\bteams ({_NAMES})\b(?!-)((?:{_WORD.pattern})*)")
_ENDS = re.compile(r"$|[^\w ]| (or|and)\b| \(")
"""Matches the text that may follow the arguments of a command. If other text follows, the words are part of a sentence.
"""
_OF_ALL_COMMANDS = {"--as": AS, "--team": TEAM}


def in_calls(text: str, written: Callable[[Command, Arguments], str | None], otherwise: Callable[[str], str]) -> str:
    """Return the *text* for a program: each shell command in it is replaced by what *written* returns for the command
    and its arguments, such as a call of a tool. If the words after a command are not arguments but the rest of a
    sentence, only the name of the command is replaced. *otherwise* adapts the text between the commands.

    A command stays as it is, for a shell, if programs can't request it with these arguments, or if *written* returns
    None.
    """

    def replacement(match: re.Match[str]) -> str:
        command, words = commands.get(match[1]), match[2]
        if command.at_shell:
            return match[0]
        arguments = _arguments(command, words) if _ENDS.match(text, match.end()) else None
        if arguments is None:
            return f"{written(command, ())}{otherwise(words)}"
        requestable = [*parameters(command), TEAM, AS]
        is_requestable = all(parameter in requestable for parameter, _ in arguments)
        return (is_requestable and written(command, arguments)) or match[0]

    parts, end = [], 0
    for match in _COMMAND.finditer(text):
        parts += [otherwise(text[end : match.start()]), replacement(match)]
        end = match.end()
    return "".join([*parts, otherwise(text[end:])])


def _arguments(command: Command, words: str) -> Arguments | None:
    """Return the parameters that *words* set, with their values; None if *words* are not arguments of the command."""
    unfilled_places, tokens = command.places, _WORD.findall(words)  # places are parameters without a `--`
    arguments: list[tuple[Parameter, str]] = []
    while tokens:
        token = tokens.pop(0)
        if not token.startswith("--"):
            if not unfilled_places:
                return None
            arguments.append((unfilled_places.pop(0), token))
            continue
        option = command.options.get(token, _OF_ALL_COMMANDS.get(token))
        if option is JSON:  # programs get JSON in any case
            continue
        if option is None or (not option.flag and not tokens):
            return None
        arguments.append((option, "true" if option.flag else tokens.pop(0)))
    return arguments


def parameters(command: Command) -> list[Parameter]:
    """Return the parameters that a request of the command may have."""
    return [parameter for parameter in command.own if not parameter.at_shell]


def snake_case(key: str) -> str:
    """Return the key as it is, in snake case, which tools and functions use: `blocked_by`."""
    return key


def camel_case(key: str) -> str:
    """Return the key in camel case, which files use: `blockedBy` for `blocked_by`."""
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)


def schema(name: str, spelling: Spelling) -> dict[str, Any]:
    """Return the JSON Schema for a request of the command, with its fields in the *spelling*."""
    derived = _model(name, spelling).model_json_schema()
    properties = derived.get("properties", {})
    for field in properties.values():  # models read the schema with every call, so each word costs
        field.pop("title", None)
        if field.get("default", ...) in (None, False, []):  # `...` stands for no default
            field.pop("default")
        options = [option for option in field.get("anyOf", ()) if option != {"type": "null"}]
        if len(options) == 1:
            del field["anyOf"]
            field.update(options[0])
    required = {"required": derived["required"]} if "required" in derived else {}
    return {"type": "object", "properties": properties, **required, "additionalProperties": False}


def values(name: str, request: object, spelling: Spelling) -> dict[str, Any]:
    """Check the JSON of a *request* for the command *name*, and return the values of the command's parameters.

    Raises:
        InvalidValue: A field is missing, unknown, or not of its type; the message names it.
    """
    command = commands.get(name)
    defaults = {parameter.name: parameter.default for parameter in command.own}
    if request == {} and not any(parameter.required or parameter.needed for parameter in parameters(command)):
        return defaults  # without pydantic, whose import takes long
    from pydantic import ValidationError

    from teams_cli.records.types import first_problem

    if isinstance(request, dict) and spelling is snake_case:
        request = _in_snake_case(name, request)
    try:
        checked = _model(name, spelling).model_validate(request)
    except ValidationError as error:
        keys = ", ".join(spelling(parameter.key) for parameter in parameters(command))
        shown_name = name.replace("-", "_") if spelling is snake_case else name
        raise errors.InvalidValue(first_problem(error), f"{shown_name} takes {keys or 'nothing'}.") from None
    stated = {key: value for key, value in checked if key in checked.model_fields_set and value is not None}
    return defaults | stated


def _in_snake_case(name: str, request: dict[str, Any]) -> dict[str, Any]:
    """Return the request with `blocked_by` for `blockedBy`. If it has both, it keeps both, and is refused later."""
    spellings = [key for parameter in parameters(commands.get(name)) for key in parameter.spellings]
    snake_case_names = {camel_case(key): key for key in spellings}
    renamed = {}
    for key, value in request.items():
        snake_case_key = snake_case_names.get(key, key)
        has_both = snake_case_key != key and snake_case_key in request
        renamed[key if has_both else snake_case_key] = value
    return renamed


@cache
def _model(name: str, spelling: Spelling) -> type[BaseModel]:
    """Return the pydantic model for a request of the command *name*, with its fields in the *spelling*."""
    from pydantic import ConfigDict, create_model

    fields: Any = {parameter.name: _field(parameter, spelling) for parameter in parameters(commands.get(name))}
    strict = ConfigDict(extra="forbid", allow_inf_nan=False, coerce_numbers_to_str=True)
    return create_model(name, __config__=strict, **fields)


def _field(parameter: Parameter, spelling: Spelling) -> tuple[Any, Any]:
    """Return the type of a parameter and its declaration, for the pydantic model that checks a request."""
    from typing import Annotated, Literal

    from pydantic import AliasChoices, BeforeValidator, Field

    kind: Any = bool if parameter.flag else parameter.type
    if parameter.choices:
        kind = Literal[parameter.choices]
    if parameter.many:
        as_list = BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
        kind = Annotated[list[kind], as_list]
    alias = AliasChoices(*map(spelling, parameter.spellings))
    is_required = parameter.required or parameter.needed
    # If a list may be left out and then means all, a program may have made an empty list without meaning all.
    min_length = 1 if parameter.many and (parameter.else_all or is_required) else None
    if is_required:
        return kind, Field(validation_alias=alias, description=parameter.help, min_length=min_length)
    default = [] if parameter.many else parameter.default
    return kind | None, Field(default, validation_alias=alias, description=parameter.help, min_length=min_length)


class Sender:
    """The team and the caller that a request names in its own JSON, as requests of other systems do."""

    def __init__(self, command: Command, request: Mapping[str, Any]) -> None:
        """Read the team and the caller that a *request* names. The attribute `arguments` gets the other values, which
        are for the command.

        Raises:
            InvalidValue: The team or the caller is not valid.
        """
        self.arguments = dict(request)
        self.team = ""
        if command.in_team and all(parameter.key != "team_name" for parameter in command.own):
            self.team = _checked_name("teamName", _take(self.arguments, "team_name"))
        key = _KEY_OF_INFO.get(command.name)
        info = _take_info(self.arguments, key) if key else {}
        self.agent = _checked_name("agentId", info.get("agentId"))
        self.display = _checked_text("agentName", info.get("agentName"))
        self.type = _checked_text("agentType", info.get("agentType"))

    def refuse_other_team(self, team: str) -> None:
        """Raise an error if the request names a different team than *team*, the one in the request's URL ("" if there
        is none).

        Raises:
            InvalidValue: The request and its URL name different teams.
        """
        other = self.team or self.arguments.get("teamName")  # the latter is for a command whose parameter is the team
        if team and other not in (None, "", team):
            raise errors.InvalidValue(f"the request names two teams, {team} and {other}", "Name one of them.")

    def known_as(self, agent: str) -> str:
        """Return the name of the sender; "" if it is not known. *agent* is the name given outside the JSON of the
        request; "" if none was given.

        Raises:
            InvalidValue: The request names another sender than *agent*, or gives the display name or the type of a
                sender without its name.
        """
        if agent and self.agent not in ("", agent):
            raise errors.InvalidValue(f"you are {agent}, not {self.agent}", f"Write: agentId: {agent}")
        if not (agent or self.agent) and (self.display or self.type):
            raise errors.InvalidValue("agentId is missing", "Give it, or leave out agentName and agentType.")
        return agent or self.agent


_KEY_OF_INFO = {"spawn-team": "leader_info", "join-team": "member_info"}
"""For each command whose request may describe the caller in an object: the key of this object."""
_FIELDS_OF_INFO = ("agent_id", "agent_name", "agent_type")


def _take_info(values: dict[str, Any], key: str) -> dict[str, Any]:
    """Remove from *values* the object under *key*, which describes the caller. Return its fields in camel case."""
    info = _take(values, key) or {}
    hint = f"It has {', '.join(map(camel_case, _FIELDS_OF_INFO))}."
    refusal = errors.InvalidValue(f"{camel_case(key)} must be an object", hint)
    if not isinstance(info, dict):
        raise refusal
    other_fields = dict(info)
    fields = {camel_case(name): _take(other_fields, name) for name in _FIELDS_OF_INFO}
    if other_fields:
        raise refusal
    return fields


def _take(values: dict[str, Any], key: str) -> Any:
    """Remove the value of *key*, in snake case or camel case, from *values* and return it; None if there is none."""
    spellings = dict.fromkeys((key, camel_case(key)))
    taken = [value for spelled in spellings if (value := values.pop(spelled, None)) is not None]
    if len(taken) > 1:
        raise errors.InvalidValue(f"{' and '.join(spellings)} mean the same", "Give one of them.")
    return taken[0] if taken else None


def _checked_name(key: str, value: Any) -> str:
    name = _checked_text(key, value)
    if value is not None and not name.strip():  # an empty variable of a script
        raise errors.InvalidValue(f"{key} is blank", f"Give a name, or leave {key} out.")
    return name


def _checked_text(key: str, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise errors.InvalidValue(f"{key} must be a string", "Give a name.")
    return value


def call_as(
    base: Call,
    watchers: Watchers,
    client: Requester,
    agent: str,
    team: str,
    token: str,
    sender: Sender | None,
    default_team: str,
) -> Call:
    """Return the call that runs one request in the name of *agent*; of nobody if *agent* is "". The call has the store
    of *base*, the call that started the server, and the user's present configuration. It ends when the *client* leaves.
    If a rule of the user says `ask`, the human is asked. *default_team* is the team of a request that names none.

    Raises:
        DamagedRecord: The configuration can't be read.
    """
    store = cast("Store", WatchedStore(watchers, client))
    settings = config.load(store.root, base.environ)
    caller = None
    if agent:
        caller = Caller(agent, token=token, config=settings)
        if sender:
            caller.display, caller.type = sender.display, sender.type
    sources = {**base.sources, "team": _source(base, "team", team), "agent": _source(base, "agent", agent)}
    call = Call(store, settings, caller, team, sources, environ=base.environ, directory=base.current_directory)
    call.default_team = default_team
    call.is_given_up = lambda: client.is_gone
    if caller:
        caller.approve = call.ask_human
    return call


def _source(base: Call, key: str, value: str) -> tuple[str, str]:
    """Return the *value* and its source: the request, unless the server was started with the same value."""
    server_value, server_source = base.sources.get(key, ("", "unset"))
    return value, server_source if value == server_value else "request"


def answer(call: Call, name: str, request: Mapping[str, Any], spelling: Spelling = snake_case) -> Any:
    """Run the command with the values of a *request*, and return the answer as JSON. Commands in its texts name the
    team if they would otherwise act in another one.
    """
    command = commands.get(name)
    try:
        answered = command.answer(call, values(name, request, spelling))
    except errors.TeamsError as error:
        error.hint = call.in_team(error.hint or "")
        raise
    document = answered.document if isinstance(answered, Outcome) else answered
    call.name_team(document)
    return document
