"""Requests of programs: commands called with JSON, for MCP and HTTP."""

from __future__ import annotations

import re
from functools import cache

from teams_cli import commands, errors
from teams_cli.commands.call import Call, Outcome
from teams_cli.commands.declaration import AS, TEAM

# Loaded before another version is there: a server goes on for long.
from teams_cli.questions import answering  # noqa: F401
from teams_cli.teams import permission  # noqa: F401
from teams_cli.teams.permission import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from pydantic import BaseModel

    from teams_cli.commands.declaration import Command, Parameter

    Spelling = Callable[[str], str]
    Arguments = Sequence[tuple[Parameter, str]]


def offered() -> list[Command]:
    """Return the commands that programs may request, in the order of the help."""
    return [command for command in commands.every().values() if not command.at_shell]


_WORD = re.compile(r' (--[a-z-]+|"[^"\n]*"|(?!or\b|and\b)[\w@~/][\w@~/-]*(?:\.[\w-]+)*(?:\.{3})?)')
_NAMES = "|".join(sorted((command.name for command in offered()), key=len, reverse=True))
_COMMAND = re.compile(rf"\bteams ({_NAMES})\b(?!-)((?:{_WORD.pattern})*)")
_ENDS = re.compile(r"$|[^\w ]| (or|and)\b| \(")
"""The text that may follow a command and its arguments; after other words it is part of a sentence."""
_OF_ALL = {"--as": AS, "--team": TEAM}


def in_calls(text: str, written: Callable[[Command, Arguments], str]) -> str:
    """Return the text with every command and its arguments replaced by the result of *written*. Of a command in a
    sentence, only the name is replaced.
    """

    def call(found: re.Match[str]) -> str:
        command = commands.get(found[1])
        arguments = _arguments(command, found[2]) if _ENDS.match(text, found.end()) else None
        return written(command, ()) + found[2] if arguments is None else written(command, arguments)

    return _COMMAND.sub(call, text)


def _arguments(command: Command, words: str) -> Arguments | None:
    """Return the parameters that the words behind a command give, each with its value. None if the words are no
    arguments.
    """
    places, arguments, tokens = command.places, [], _WORD.findall(words)
    while tokens:
        token = tokens.pop(0)
        if not token.startswith("--"):
            if not places:
                return None
            arguments.append((places.pop(0), token))
        elif (option := command.options.get(token, _OF_ALL.get(token))) and (option.flag or tokens):
            arguments.append((option, "true" if option.flag else tokens.pop(0)))
        else:
            return None
    return arguments


def parameters(command: Command) -> list[Parameter]:
    """Return the parameters that a request of the command may have."""
    return [parameter for parameter in command.own if not parameter.at_shell]


def snake_case(key: str) -> str:
    """Return the key unchanged, as in `blocked_by`: the spelling of tools and functions."""
    return key


def camel_case(key: str) -> str:
    """Return the key in the spelling of files: `blockedBy` for `blocked_by`."""
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)


def schema(name: str, spelling: Spelling) -> dict[str, Any]:
    """Return the JSON Schema for a request of the command."""
    derived = _model(name, spelling).model_json_schema()
    properties = derived.get("properties", {})
    for field in properties.values():
        field.pop("title", None)
        _without_null(field)
    required = {"required": derived["required"]} if "required" in derived else {}
    return {"type": "object", "properties": properties, **required, "additionalProperties": False}


def _without_null(field: dict[str, Any]) -> None:
    """Remove null and its default from an optional field, because models read the schema with every call."""
    field.pop("default", None) if field.get("default", ...) in (None, False, []) else None
    options = [option for option in field.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        del field["anyOf"]
        field.update(options[0])


def values(name: str, given: object, spelling: Spelling) -> dict[str, Any]:
    """Return the values of the command's own parameters, from the JSON of a request, *given*.

    Raises:
        InvalidValue: A field is missing, unknown, or not of its type; the message names it.
    """
    if given == {} and not _needs_something(name):
        return dict(_defaults(name))
    from pydantic import ValidationError

    from teams_cli.records.validation import first_problem

    command = commands.get(name)
    if isinstance(given, dict) and spelling is snake_case:  # answers have the names of the files: so may requests
        in_files = _in_files(name)
        given = {key if in_files.get(key, key) in given else in_files[key]: value for key, value in given.items()}
    try:
        checked = _model(name, spelling).model_validate(given)
    except ValidationError as error:
        known = ", ".join(spelling(parameter.key) for parameter in parameters(command))
        called = name.replace("-", "_") if spelling is snake_case else name
        raise errors.InvalidValue(first_problem(error), f"{called} takes {known or 'nothing'}.") from None
    return _defaults(name) | {
        key: value for key, value in checked if key in checked.model_fields_set and value is not None
    }


@cache
def _in_files(name: str) -> dict[str, str]:
    """Return the names of the parameters in requests, by their names in files."""
    return {camel_case(key): key for parameter in parameters(commands.get(name)) for key in parameter.spellings}


@cache
def _needs_something(name: str) -> bool:
    """Whether a request of the command must have any value."""
    return any(parameter.required or parameter.needed for parameter in parameters(commands.get(name)))


@cache
def _defaults(name: str) -> dict[str, Any]:
    """Return the defaults of the command's own parameters."""
    return {parameter.name: parameter.default for parameter in commands.get(name).own}


@cache
def _model(name: str, spelling: Spelling) -> type[BaseModel]:
    """Return the pydantic model of a request, derived from the declaration of its command."""
    from pydantic import ConfigDict, create_model

    fields: Any = {parameter.name: _field(parameter, spelling) for parameter in parameters(commands.get(name))}
    strict = ConfigDict(extra="forbid", allow_inf_nan=False, coerce_numbers_to_str=True)
    return create_model(name, __config__=strict, **fields)


def _field(parameter: Parameter, spelling: Spelling) -> tuple[Any, Any]:
    from typing import Annotated, Literal

    from pydantic import AliasChoices, BeforeValidator, Field

    kind: Any = bool if parameter.flag else parameter.type
    if parameter.choices:
        kind = Literal[parameter.choices]
    if parameter.many:
        kind = Annotated[list[kind], BeforeValidator(_several)]
    alias = AliasChoices(*map(spelling, parameter.spellings))
    # Where leaving it out means all, a program's list that came out empty must not be taken for that.
    least = 1 if parameter.many and (parameter.else_all or parameter.required or parameter.needed) else None
    if parameter.required or parameter.needed:
        return kind, Field(validation_alias=alias, description=parameter.help, min_length=least)
    default = [] if parameter.many else parameter.default
    return kind | None, Field(default, validation_alias=alias, description=parameter.help, min_length=least)


def _several(value: Any) -> Any:
    """Return a single text as a list of one; any other value is returned unchanged."""
    return [value] if isinstance(value, str) else value


class Sender:
    """The team and the caller, if the request itself names them, as requests of other systems do."""

    def __init__(self, command: Command, given: Mapping[str, Any]) -> None:
        """Take team and caller out of the values *given*. The attribute `rest` has the remaining values, for the
        command.

        Raises:
            InvalidValue: Team or caller are not valid.
        """
        self.rest = dict(given)
        self.team = ""
        if command.in_team and all(parameter.key != "team_name" for parameter in command.own):
            self.team = _word("teamName", self._taken("team_name"))
        info = _INFO.get(command.name, "")
        about = self._taken(info) if info else ""
        known = about if isinstance(about, dict) else {"": about} if about else {}
        named = {camel_case(key): value for key, value in known.items()}
        if named.keys() - set(_OF_INFO):
            raise errors.InvalidValue(f"{camel_case(info)} must be an object", f"It has {', '.join(_OF_INFO)}.")
        self.agent, self.display, self.type = (_word(key, named.get(key, "")) for key in _OF_INFO)

    def _taken(self, key: str) -> Any:
        found = [self.rest.pop(each, None) for each in (key, camel_case(key))]
        return next((value for value in found if value is not None), "")

    def known_as(self, agent: str) -> str:
        """Return the name of the sender. *agent* is the name that the server knows by other means, or "".

        Raises:
            InvalidValue: The request names another sender, or none.
        """
        if agent and self.agent not in ("", agent):
            raise errors.InvalidValue(f"you are {agent}, not {self.agent}", f"Write: agentId: {agent}")
        if not (agent or self.agent) and (self.display or self.type):
            raise errors.InvalidValue("agentId is missing", "Give it, or leave out agentName and agentType.")
        return agent or self.agent


_INFO = {"spawn-team": "leader_info", "join-team": "member_info"}
_OF_INFO = ("agentId", "agentName", "agentType")


def _word(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise errors.InvalidValue(f"{key} must be a string", "Give a name.")
    return value


def call_as(base: Call, agent: str, team: str = "", token: str = "", sender: Sender | None = None) -> Call:
    """Return the call of one request by that agent. It has the store and the configuration of the server, *base*, and
    by default its team. If a rule says `ask`, the human is asked.
    """
    team = team or base.said_team
    caller = None
    if agent:
        caller = Caller(agent, token=token, config=base.config)
        caller.display, caller.type = (sender.display, sender.type) if sender else ("", "")
    sources = {**base.sources, **{key: _source(base, key, value) for key, value in (("team", team), ("agent", agent))}}
    call = Call(base.store, base.config, caller, team, sources, environ=base.environ, directory=base.said_directory)
    if caller:
        caller.approve = call.ask_human
    return call


def _source(base: Call, key: str, value: str) -> tuple[str, str]:
    """Return the value and where it came from: the request, unless the server was started with the same value."""
    known = base.sources.get(key, ("", "unset"))
    return known if value == known[0] else (value, "request")


def answer(call: Call, name: str, given: Mapping[str, Any], spelling: Spelling = snake_case) -> Any:
    """Run the command with the values of a request, and return its document.

    Raises:
        TeamsError: The command is refused.
    """
    command = commands.get(name)
    document = command.answer(call, values(name, given, spelling))
    return document.document if isinstance(document, Outcome) else document
