"""Finding workflow files by name or path, and reading them. All problems are reported at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import yaml
from pydantic import ValidationError

from teams_cli import errors
from teams_cli.names import is_name
from teams_cli.store.files import disk
from teams_cli.teams import settings
from teams_cli.workflows import checks
from teams_cli.workflows.checks import Place, Problem, Roles
from teams_cli.workflows.model import Workflow
from teams_cli.workflows.places import LOCAL, directories, paths

_HARNESSES = {"openai": "codex", "gemini": "gemini", "claude": "claude", "claude_code": "claude", "qwen": "qwen"}
_MACHINES = "agents have the commands of their client, and `permissions` says which"
_OF_AGENTS: dict[Place, str] = {
    ("id",): "write `name: {}`",
    ("backend", "model"): "write `model: {}` at the agent",
    ("backend", "cwd"): "write `cwd: {}` at the agent",
    ("backend", "enable_mcp_command_line"): f"leave it out: {_MACHINES}",
    ("backend", "command_line_execution_mode"): "leave it out: to have agents in a container, start teams in one",
}
_OF_ALL: dict[Place, str] = {
    ("snapshot_storage",): "write `worktree: true` at an agent to keep what it makes apart",
    ("coordination", "enable_planning_mode"): "write `planRequired: true` at the tasks",
    ("agent_temporary_workspace",): "leave it out: agents read each other's branches, and `teams shared`",
}


def is_of_massgen(document: Any) -> bool:
    """Whether the document is a configuration of MassGen."""
    if not isinstance(document, dict):
        return False
    agents = document.get("agents")
    rows = agents if isinstance(agents, list) else []
    return "orchestrator" in document or any(isinstance(row, dict) and "backend" in row for row in rows)


def massgen_keys(document: dict[str, Any]) -> Iterator[Problem]:
    """Yield each key of a configuration of MassGen, with what to write in a workflow instead."""
    agents = document.get("agents")
    for index, row in enumerate(agents if isinstance(agents, list) else []):
        for place, value in _leaves(row, ()):
            harness = _HARNESSES.get(str(value).lower(), "NAME")
            counterparts = {**_OF_AGENTS, ("backend", "type"): f"write `harness: {harness}` at the agent"}
            yield ("agents", index, *place), counterparts.get(place, _NO_COUNTERPART).format(value)
    for place, value in _leaves(document.get("orchestrator"), ()):
        written = str(value).lower() if isinstance(value, bool) else value
        is_ours = place[:-1] == ("coordination",) and settings.find(str(place[-1])) is not None
        setting = f"write `settings: {{{place[-1]}: {written}}}`" if is_ours else _NO_COUNTERPART
        yield ("orchestrator", *place), _OF_ALL.get(place, setting)
    for key in document.keys() - {"agents", "orchestrator"}:
        yield (key,), _NO_COUNTERPART


_NO_COUNTERPART = "has no counterpart here"
_MASSGEN_HINT = "Write it as a workflow, with tasks that say what is to be done: see docs/workflow-files.md."


def _leaves(part: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    """Yield the values in the part, each with its place. *place* is the place of the part itself."""
    if isinstance(part, dict):
        for key, value in part.items():
            yield from _leaves(value, (*place, str(key)))
    elif place:
        yield place, part


FENCE = "---"
MAX_FILE = 1024 * 1024
MAX_NODES = 100_000
TOO_MANY = f"stands for more than {MAX_NODES} values, with all that its aliases repeat"
_WORDS = {"extra_forbidden": "is not a key here", "missing": "is missing"}
_THEIRS = {
    "Input should be a valid string": "must be text",
    "Input should be a valid": "must be a",
    "Input should": "must",
}
"""Words of pydantic, and ours for them."""


class TooManyValues(yaml.YAMLError):
    """Raised for a document that is too large, counting all that its aliases repeat."""


def content_of(path: str) -> str:
    """Return the content of a file, as text.

    Raises:
        InvalidValue: The file can't be read, is too long, or is not UTF-8.
    """
    try:
        data = disk.read_named(path, MAX_FILE + 1)
        if len(data) > MAX_FILE:
            raise errors.InvalidValue(f"{path} has more than the {MAX_FILE} bytes allowed", "Make it smaller.")
        return data.decode()
    except OSError as error:
        raise errors.InvalidValue(f"can't read {path}: {error.strerror}", "Give a file that you may read.") from None
    except UnicodeDecodeError:
        raise errors.InvalidValue(f"{path} is not UTF-8", "Save it as UTF-8.") from None


def front_matter(content: str) -> str | None:
    """Return the text between the first two fences; None if the content does not begin with a fence."""
    lines = content.removeprefix("\ufeff").splitlines()
    if lines and lines[0].rstrip() == FENCE:
        for index, line in enumerate(lines[1:], 1):
            if line.rstrip() == FENCE:
                return "\n".join(lines[1:index]) + "\n"
    return None


def parsed(text: str, what: str, hint: str) -> Any:
    """Return the document in a YAML text. An error calls the text *what*, and has the *hint*.

    Raises:
        InvalidValue: The text is not valid, or too large.
    """
    try:
        node, document = loaded(text)
        lines: dict[Place, int] = {}
        for place, _ in _walk(node, (), lines) if node is not None else ():
            line = lines[place] - _FIRST_LINE + 1
            raise ValueError(f"the key {place[-1]} stands twice, again in line {line}")
        return document
    except TooManyValues:
        raise errors.InvalidValue(f"{what} {TOO_MANY}", hint) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise errors.InvalidValue(f"{what} is not valid YAML: {' '.join(str(error).split())}", hint) from None


def loaded(text: str) -> tuple[yaml.Node | None, Any]:
    """Return the node and the document in a YAML text; None for both if the text is empty.

    Raises:
        YAMLError, ValueError, RecursionError: The text is not valid.
        TooManyValues: The document has too many values, or contains itself.
    """
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, None
        _size(node, {})
        return node, loader.construct_document(node)
    finally:
        loader.dispose()


def _size(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Return the number of values in the node, counting all that its aliases repeat. *sizes* has the numbers of nodes
    that were counted before.
    """
    size = sizes.get(id(node))
    if size is None:
        sizes[id(node)] = MAX_NODES  # a node that is met again on the way down contains itself
        children = node.value if isinstance(node, yaml.SequenceNode) else []
        if isinstance(node, yaml.MappingNode):
            children = [part for pair in node.value for part in pair]
        size = sizes[id(node)] = 1 + sum(_size(child, sizes) for child in children)
    if size >= MAX_NODES:
        raise TooManyValues
    return size


def in_words(error: Any) -> str:
    """Return the message of a validation error, in our words."""
    what: str = _WORDS.get(error["type"]) or error["msg"].removeprefix("Value error, ")
    for words, ours in _THEIRS.items():
        what = what.replace(words, ours)
    return what[:1].lower() + what[1:]


_FIRST_LINE = 2
"""The line of its file in which the front matter begins."""


class WorkflowNotFound(errors.NotFound):
    """There is no such workflow."""


def path_of(workflow: str, directory: str) -> str:
    """Return the file of a workflow. *workflow* is a path, the name of a shipped workflow, or else the name of one in
    ./workflows.

    Raises:
        WorkflowNotFound: There is no such workflow; the hint names all that there are.
    """
    if os.sep in workflow or "." in workflow:  # names have neither
        places = [os.path.join(directory, workflow)]
    else:
        places = (
            [os.path.join(place, f"{workflow}.md") for place in directories(directory)] if is_name(workflow) else []
        )
    for place in places:
        if os.path.exists(place):
            return os.path.abspath(place)
    names = ", ".join(sorted({os.path.basename(path)[:-3] for path in paths(directory)}))
    raise WorkflowNotFound(
        f"there is no workflow {workflow!r}", f"Workflows: {names or 'none'}. Or give the path of a file."
    )


def read(path: str, roles: Roles | None = None) -> Workflow:
    """Return the workflow in a file. *roles* are those that the user's configuration defines.

    Raises:
        InvalidValue: The workflow has problems; the message names all, each with its line and field.
    """
    content = content_of(path)
    text = front_matter(content)
    if text is None:
        refuse_massgen(path, content)
        hint = f"A workflow starts with a line {FENCE}, YAML, and another line {FENCE}."
        raise errors.InvalidValue(f"{path} has no front matter", hint)
    document, lines, twice = _parse(text, path)
    workflow, wrong = _validate(document, roles or {})
    wrong += _unknown_workflows(workflow, os.path.dirname(path)) if workflow else []
    if wrong := [*twice, *wrong]:
        problems = sorted((_line(lines, place), f"{_field(place)}{what}") for place, what in wrong)
        count = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
        hint = "Then check it again: teams check-workflow FILE"
        raise errors.InvalidValue(_listed(path, problems, f"has {count}"), hint)
    assert workflow is not None
    return workflow


def _unknown_workflows(workflow: Workflow, directory: str) -> Iterator[Problem]:
    """Yield a problem for each workflow that a role names and that does not exist, neither by name nor beside this
    workflow.
    """
    for name, definition in workflow.roles.items():
        if followed := definition.get("workflow"):
            try:
                path_of(followed, os.path.dirname(directory) if os.path.basename(directory) == LOCAL else directory)
            except WorkflowNotFound as missing:
                yield ("roles", name, "workflow"), missing.message


def refuse_massgen(path: str, text: str) -> None:
    """Refuse a text that is a configuration of MassGen. The message says for each of its keys what to write instead."""
    try:
        document, lines, _ = _parse(text, path)
    except errors.InvalidValue:
        return
    if is_of_massgen(document):
        wrong = massgen_keys(document)
        lines_and_words = [(_line(lines, place) - _FIRST_LINE + 1, f"{_field(place)}{what}") for place, what in wrong]
        raise errors.InvalidValue(
            _listed(path, sorted(lines_and_words), "is a configuration of MassGen"), _MASSGEN_HINT
        )


def _listed(path: str, problems: list[tuple[int, str]], what: str) -> str:
    return "\n".join([f"{path} {what}:", *(f"{path}:{line}: {problem}" for line, problem in problems)])


def _parse(text: str, path: str) -> tuple[Any, dict[Place, int], list[Problem]]:
    """Return the YAML document, the line of each place in it, and a problem for each key that is given twice."""
    try:
        node, document = loaded(text)
        lines: dict[Place, int] = {}
        twice = list(_walk(node, (), lines)) if node else []
        return document, lines, twice
    except yaml.MarkedYAMLError as error:
        line = _FIRST_LINE + (error.problem_mark.line if error.problem_mark else 0)
        problem = f"{path}:{line}: is not valid YAML: {error.problem or error.context}"
    except TooManyValues:
        problem = f"{path}: {TOO_MANY}"
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = f"{path}: is not valid YAML: {type(error).__name__}"
    raise errors.InvalidValue(problem, "Correct the file; text with `: ` or `{` needs quotes.")


def _walk(node: yaml.Node, place: Place, lines: dict[Place, int]) -> Iterator[Problem]:
    lines[place] = node.start_mark.line + _FIRST_LINE
    if isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            yield from _walk(child, (*place, index), lines)
    elif isinstance(node, yaml.MappingNode):
        for key, child in node.value:
            inner, line = (*place, str(key.value)), key.start_mark.line + _FIRST_LINE
            is_twice = inner in lines  # YAML silently takes the last
            lines[inner] = line
            if is_twice:
                yield inner, "is given twice"
            yield from _walk(child, inner, lines)
            lines[inner] = line


def _validate(document: Any, roles: Roles) -> tuple[Workflow | None, list[Problem]]:
    """Return the workflow, or None, and its problems. Parts of the wrong form are left out, so that the others are
    checked.
    """
    rows = document.get("tasks") if isinstance(document, dict) else None
    ids = {row["id"] for row in rows or () if isinstance(row, dict) and isinstance(row.get("id"), str)}
    problems: list[Problem] = []
    for attempt in range(10):
        try:
            workflow = Workflow.model_validate(document)
        except ValidationError as error:
            wrong = [(tuple(e["loc"]), in_words(e)) for e in error.errors(include_url=False, include_context=False)]
            problems += wrong if attempt == 0 else []
            document = _without(document, [place for place, _ in wrong])
        except RecursionError:
            return None, [((), "is nested too deeply")]
        else:
            return workflow, [*problems, *checks.problems(workflow, ids, roles)]
    return None, problems


def _without(document: Any, places: list[Place]) -> Any:
    """Return the document without the parts at these places. Where a place does not exist, the deepest part that does
    on the way to it is left out.
    """
    doomed = {_reached(document, place) for place in places}

    def copy(part: Any, place: Place) -> Any:
        if isinstance(part, dict):
            return {k: copy(v, (*place, k)) for k, v in part.items() if (*place, k) not in doomed}
        if isinstance(part, list):
            stand_in = _STAND_INS.get(place)
            kept = enumerate(part) if stand_in else ((i, v) for i, v in enumerate(part) if (*place, i) not in doomed)
            return [stand_in(i) if stand_in and (*place, i) in doomed else copy(v, (*place, i)) for i, v in kept]
        return part

    return copy(document, ())


_STAND_INS: dict[Place, Callable[[int], Any]] = {
    ("tasks",): lambda index: {"id": f"unreadable-{index}", "title": "-", "prompt": "-"},
    ("agents",): lambda index: {},
}
"""The replacements for tasks and agents that are left out, so that the others keep their numbers."""


def _reached(document: Any, place: Place) -> Place:
    reached: Place = ()
    for step in place:
        inside = isinstance(document, dict) and step in document
        if not inside and not (isinstance(document, list) and isinstance(step, int) and step < len(document)):
            break
        document = document[step]
        reached = (*reached, step)
    return reached


def _line(lines: dict[Place, int], place: Place) -> int:
    while place not in lines and place:
        place = place[:-1]
    return lines.get(place, 1)


def _field(place: Place) -> str:
    steps = [str(step) for step in place if step != "[key]"]
    return f"{'.'.join(steps)}: " if steps else ""


def describe(path: str, problems: list[errors.TeamsError]) -> dict[str, Any] | None:
    """Return the row of a workflow in a list. If it can't be read, return None, and add the error to *problems*."""
    try:
        workflow = read(path)
    except errors.TeamsError as problem:
        problems.append(problem)
        return None
    return {
        "name": workflow.name,
        "description": " ".join(workflow.description.split()),
        "pattern": workflow.pattern,
        "path": path,
    }
