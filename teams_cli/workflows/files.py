"""Finding workflow files by name or path, and reading them. All problems of a file are reported at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from teams_cli import errors
from teams_cli.names import is_name
from teams_cli.store.files import disk
from teams_cli.teams import settings
from teams_cli.workflows import LOCAL, checks, directories, paths
from teams_cli.workflows.checks import KeyPath, Problem, Roles
from teams_cli.workflows.model import Form, Workflow

F = TypeVar("F", bound=Form)
FENCE = "---"
MAX_FILE = 1024 * 1024
MAX_NODES = 100_000
TOO_MANY = f"stands for more than {MAX_NODES} values, with all that its aliases repeat"
_WORDS = {"extra_forbidden": "is not a key here", "missing": "is missing"}
_OUR_WORDS = {
    "Input should be a valid string": "must be text",
    "Input should be a valid": "must be a",
    "Input should": "must",
}
"""Beginnings of the messages of pydantic, each with our words for it."""
_HARNESSES = {"openai": "codex", "gemini": "gemini", "claude": "claude", "claude_code": "claude", "qwen": "qwen"}
_COMMANDS = "agents have the commands of their client, and `permissions` says which"
_NO_COUNTERPART = "has no counterpart here"
_IN_AGENTS: dict[KeyPath, str] = {
    ("id",): "write `name: {}`",
    ("backend", "model"): "write `model: {}` at the agent",
    ("backend", "cwd"): "write `cwd: {}` at the agent",
    ("backend", "enable_mcp_command_line"): f"leave it out: {_COMMANDS}",
    ("backend", "command_line_execution_mode"): "leave it out: to have agents in a container, start teams in one",
}
_IN_ORCHESTRATOR: dict[KeyPath, str] = {
    ("snapshot_storage",): "write `worktree: true` at an agent to keep what it makes apart",
    ("coordination", "enable_planning_mode"): "write `planRequired: true` at the tasks",
    ("agent_temporary_workspace",): "leave it out: agents read each other's branches, and `teams shared`",
}


class WorkflowNotFound(errors.NotFound):
    """There is no such workflow."""


class TooManyValues(yaml.YAMLError):
    """Raised for a document with too many values. A value that an alias repeats counts once for each repetition."""


def content_of(path: str, limit: int = MAX_FILE) -> str:
    """Return the content of a file, as text.

    Raises:
        InvalidValue: The file can't be read, has more than *limit* bytes, or is not UTF-8.
    """
    try:
        data = disk.read_named(path, limit + 1)
        if len(data) > limit:
            raise errors.InvalidValue(f"{path} has more than the {limit} bytes allowed", "Make it smaller.")
        return data.decode()
    except OSError as error:
        raise errors.InvalidValue(f"can't read {path}: {error.strerror}", "Give a file that you may read.") from None
    except UnicodeDecodeError:
        raise errors.InvalidValue(f"{path} is not UTF-8", "Save it as UTF-8.") from None
    except ValueError:  # of a path with a NUL
        raise errors.InvalidValue(
            "the name of the file holds a NUL character", "Give a file that you may read."
        ) from None


def front_matter(content: str) -> str | None:
    """Return the front matter: the text between a fence in the first line and the next fence; None without both."""
    lines = content.removeprefix("\ufeff").splitlines()
    if lines and lines[0].rstrip() == FENCE:
        for index, line in enumerate(lines[1:], 1):
            if line.rstrip() == FENCE:
                return "\n".join(lines[1:index]) + "\n"
    return None


def parsed(text: str, what: str, hint: str) -> Any:
    """Return the document in a YAML text. The message of an error calls the text *what*, and the *hint* says what
    to do.

    Raises:
        InvalidValue: The text is not valid, or too large.
    """
    try:
        document, _, repeated_keys = loaded(text)
    except TooManyValues:
        raise errors.InvalidValue(f"{what} {TOO_MANY}", hint) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if "mapping values are not allowed" in str(error):  # the usual mistake: `: ` in a text
            hint = f"Put a text with a colon in quotes, or below `description: |`. {hint}"
        raise errors.InvalidValue(f"{what} is not valid YAML: {' '.join(str(error).split())}", hint) from None
    if repeated_keys:
        key_path, line = repeated_keys[0]
        reason = f"the key {key_path[-1]} stands twice, again in line {line}"
        raise errors.InvalidValue(f"{what} is not valid YAML: {reason}", hint)
    return document


def loaded(text: str) -> tuple[Any, dict[KeyPath, int], list[tuple[KeyPath, int]]]:
    """Parse a YAML text. Return the document as Python values, None if the text is empty; the line of each key and
    value, counted from 1; and each key that occurs again in the same mapping, with its line. YAML would silently take
    the last value of a repeated key.

    Raises:
        YAMLError, ValueError, RecursionError: The text is not valid.
        TooManyValues: The document has too many values, or contains itself.
    """
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, {}, []
        _size(node, {})
        return loader.construct_document(node), *_located(node)
    finally:
        loader.dispose()


def _size(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Return the number of values in the node. A value that an alias repeats counts once for each repetition. *sizes*
    has the sizes of the nodes that were counted before. Too many values raise TooManyValues.
    """
    size = sizes.get(id(node))
    if size is None:
        sizes[id(node)] = MAX_NODES  # if the node contains itself, it is met again here, and is refused below
        children = node.value if isinstance(node, yaml.SequenceNode) else []
        if isinstance(node, yaml.MappingNode):
            children = [part for pair in node.value for part in pair]
        size = sizes[id(node)] = 1 + sum(_size(child, sizes) for child in children)
    if size >= MAX_NODES:
        raise TooManyValues
    return size


def _located(document: yaml.Node) -> tuple[dict[KeyPath, int], list[tuple[KeyPath, int]]]:
    """Return the lines of all keys and values, and the repeated keys with their lines, as `loaded` does."""
    lines: dict[KeyPath, int] = {}
    repeated_keys: list[tuple[KeyPath, int]] = []

    def visit(node: yaml.Node, key_path: KeyPath) -> None:
        lines[key_path] = node.start_mark.line + 1
        if isinstance(node, yaml.SequenceNode):
            for index, child in enumerate(node.value):
                visit(child, (*key_path, index))
        elif isinstance(node, yaml.MappingNode):
            for key, child in node.value:
                child_path, line = (*key_path, str(key.value)), key.start_mark.line + 1
                if child_path in lines:
                    repeated_keys.append((child_path, line))
                visit(child, child_path)
                lines[child_path] = line  # that of the key, not of the value

    visit(document, ())
    return lines, repeated_keys


def in_words(error: Any) -> str:
    """Return the message of a validation error in the words of this program instead of pydantic's."""
    message: str = _WORDS.get(error["type"]) or error["msg"].removeprefix("Value error, ")
    for words, ours in _OUR_WORDS.items():
        message = message.replace(words, ours)
    return message[:1].lower() + message[1:]


def path_of(workflow: str, directory: str) -> str:
    """Return the path of a workflow's file. *workflow* is a path, the name of a shipped workflow, or the name of a
    workflow in ./workflows.

    Raises:
        WorkflowNotFound: There is no such workflow; the hint names all that there are.
    """
    candidates: list[str] = []
    if os.sep in workflow or "." in workflow:  # names have neither
        candidates = [os.path.join(directory, workflow)]
    elif is_name(workflow):
        candidates = [os.path.join(folder, f"{workflow}.md") for folder in directories(directory)]
    for path in candidates:
        if os.path.exists(path):
            return os.path.abspath(path)
    found = {os.path.basename(path).removesuffix(".md") for path in paths(directory)}
    names = ", ".join(sorted(filter(is_name, found)))
    raise WorkflowNotFound(
        f"there is no workflow {workflow!r}", f"Workflows: {names or 'none'}. Or give the path of a file."
    )


def read(path: str, roles: Roles | None = None) -> Workflow:
    """Return the workflow in a file. *roles* are the roles that the user's configuration defines.

    Raises:
        InvalidValue: The workflow has problems; the message names all, each with its line and field.
    """
    content = content_of(path)
    text = front_matter(content)
    if text is None:
        refuse_massgen(path, content)
        hint = f"A workflow starts with a line {FENCE}, YAML, and another line {FENCE}."
        raise errors.InvalidValue(f"{path} has no front matter", hint)
    document, lines, repeated_keys = _parse_front_matter(text, path)
    rows = document.get("tasks") if isinstance(document, dict) else None
    # The ids of all tasks: a task whose form is wrong is not in *workflow*, but others may wait for it.
    ids = {row["id"] for row in rows or () if isinstance(row, dict) and isinstance(row.get("id"), str)}
    workflow, problems_of_form = validated(document, Workflow)
    problems = [*((key_path, "is given twice") for key_path in repeated_keys), *problems_of_form]
    if workflow:
        problems += checks.problems(workflow, ids, roles or {})
        problems += _unknown_workflows(workflow, os.path.dirname(path))
    refuse(problems, path, lines, "Then check it again: teams check-workflow FILE")
    assert workflow is not None
    return workflow


def refuse(problems: list[Problem], path: str, lines: dict[KeyPath, int], hint: str) -> None:
    """Refuse the file at *path* if it has *problems*. *lines* has the line of each key.

    Raises:
        InvalidValue: There are problems; the message names all, each with its line and keys.
    """
    if problems:
        count = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise errors.InvalidValue(f"{path} has {count}:\n{_list_of(problems, path, lines)}", hint)


def _unknown_workflows(workflow: Workflow, directory: str) -> Iterator[Problem]:
    """Yield a problem for each role whose workflow can't be found from the *directory* of the workflow file."""
    if os.path.basename(directory) == LOCAL:  # workflows are looked up in the directory that has ./workflows
        directory = os.path.dirname(directory)
    for role, definition in workflow.roles.items():
        if name := definition.get("workflow"):
            try:
                path_of(name, directory)
            except WorkflowNotFound as missing:
                yield ("roles", role, "workflow"), missing.message


def refuse_massgen(path: str, text: str) -> None:
    """Refuse the *text* if it is a configuration of the program MassGen. The error says what to write instead."""
    try:
        document, lines, _ = loaded(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return
    if not isinstance(document, dict):
        return
    has_backend = any(isinstance(row, dict) and "backend" in row for row in _agents_of_massgen(document))
    if has_backend or "orchestrator" in document:
        keys = _list_of(_problems_of_massgen(document), path, lines)
        hint = "Write it as a workflow, with tasks that say what is to be done: see docs/workflow-files.md."
        raise errors.InvalidValue(f"{path} is a configuration of MassGen:\n{keys}", hint)


def _problems_of_massgen(document: dict[str, Any]) -> Iterator[Problem]:
    """Yield a problem for each key of a MassGen configuration, which says what to write in a workflow instead."""
    for index, row in enumerate(_agents_of_massgen(document)):
        for key_path, value in _leaves(row, ()):
            harness = _HARNESSES.get(str(value).lower(), "NAME")
            counterparts = {**_IN_AGENTS, ("backend", "type"): f"write `harness: {harness}` at the agent"}
            yield ("agents", index, *key_path), counterparts.get(key_path, _NO_COUNTERPART).format(value)
    for key_path, value in _leaves(document.get("orchestrator"), ()):
        counterpart = _IN_ORCHESTRATOR.get(key_path, _NO_COUNTERPART)
        if key_path[:-1] == ("coordination",) and settings.find(str(key_path[-1])):
            written = str(value).lower() if isinstance(value, bool) else value
            counterpart = f"write `settings: {{{key_path[-1]}: {written}}}`"
        yield ("orchestrator", *key_path), counterpart
    for key in document.keys() - {"agents", "orchestrator"}:
        yield (key,), _NO_COUNTERPART


def _agents_of_massgen(document: dict[str, Any]) -> list[Any]:
    agents = document.get("agents")
    return agents if isinstance(agents, list) else []


def _leaves(part: Any, key_path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the values inside *part* that contain no other values. *key_path* has the keys that lead to *part*."""
    if isinstance(part, dict):
        for key, value in part.items():
            yield from _leaves(value, (*key_path, str(key)))
    elif key_path:
        yield key_path, part


def _list_of(problems: Iterable[Problem], path: str, lines: dict[KeyPath, int]) -> str:
    """Return the *problems* as text, one per line, with the file and the line of each, in the order of the lines."""
    rows = []
    for key_path, what in problems:
        keys = ".".join(str(key) for key in key_path if key != "[key]")
        while key_path not in lines and key_path:  # a missing key has the line of the part that lacks it
            key_path = key_path[:-1]
        rows.append((lines.get(key_path, 1), f"{keys}: {what}" if keys else what))
    return "\n".join(f"{path}:{line}: {row}" for line, row in sorted(rows))


def _parse_front_matter(text: str, path: str) -> tuple[Any, dict[KeyPath, int], list[KeyPath]]:
    """Return the front matter *text* as a document, the line of each key in the file, and the repeated keys."""
    lines_before = 1  # the fence
    try:
        document, lines, repeated_keys = loaded(text)
        in_file = {key_path: line + lines_before for key_path, line in lines.items()}
        return document, in_file, [key_path for key_path, _ in repeated_keys]
    except yaml.MarkedYAMLError as error:
        line = lines_before + 1 + (error.problem_mark.line if error.problem_mark else 0)
        problem = f"{path}:{line}: is not valid YAML: {error.problem or error.context}"
    except TooManyValues:
        problem = f"{path}: {TOO_MANY}"
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = f"{path}: is not valid YAML: {type(error).__name__}"
    raise errors.InvalidValue(problem, "Correct the file; text with `: ` or `{` needs quotes.")


def validated(document: Any, form: type[F]) -> tuple[F | None, list[Problem]]:
    """Return the document as a record of the type *form*, and what is wrong with its form. Parts with a wrong form are
    left out. The record is None if too little remains.
    """
    problems: list[Problem] = []
    for attempt in range(10):  # leaving out a part may make the part around it wrong, so this is repeated
        try:
            record = form.model_validate(document)
        except ValidationError as error:
            details = error.errors(include_url=False, include_context=False)
            wrong = [(tuple(detail["loc"]), in_words(detail)) for detail in details]
            if attempt == 0:  # later problems only follow from what was left out
                problems = wrong
            document = _without(document, [key_path for key_path, _ in wrong])
        except RecursionError:
            return None, [((), "is nested too deeply")]
        else:
            return record, problems
    return None, problems


def _without(document: Any, key_paths: list[KeyPath]) -> Any:
    """Return the document without the parts to which *key_paths* lead. If a part is missing, leave out the part that
    should contain it. A task, agent or member is replaced by a stand-in, so that the next ones keep their numbers.
    """
    left_out = {_existing(document, key_path) for key_path in key_paths}

    def copy(part: Any, key_path: KeyPath) -> Any:
        if isinstance(part, dict):
            kept = {key: value for key, value in part.items() if (*key_path, key) not in left_out}
            return {key: copy(value, (*key_path, key)) for key, value in kept.items()}
        if not isinstance(part, list):
            return part
        copied = []
        for index, value in enumerate(part):
            if (*key_path, index) not in left_out:
                copied.append(copy(value, (*key_path, index)))
            elif key_path == ("tasks",):
                copied.append({"id": f"unreadable-{index}", "title": "-", "prompt": "-"})
            elif key_path == ("agents",):
                copied.append({})
            elif key_path == ("members",):
                copied.append({"name": f"unreadable-{index}"})
        return copied

    return copy(document, ())


def _existing(document: Any, key_path: KeyPath) -> KeyPath:
    """Return *key_path* if it leads to something in the document. Otherwise return its longest prefix that does."""
    for length, key in enumerate(key_path):
        is_key = isinstance(document, dict) and key in document
        is_index = isinstance(document, list) and isinstance(key, int) and key < len(document)
        if not is_key and not is_index:
            return key_path[:length]
        document = document[key]
    return key_path


def describe(path: str, problems: list[errors.TeamsError]) -> dict[str, Any] | None:
    """Return a row about the workflow at *path*. If it can't be read, add the error to *problems* and return None."""
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
