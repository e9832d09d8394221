"""YAML that people write: the text of a file, its front matter, and what that says, if it is not too much."""

from __future__ import annotations

from typing import Any

import yaml

from teams_cli import errors
from teams_cli.store.files import disk

FENCE = "---"
MAX_FILE = 1024 * 1024
MAX_NODES = 100_000
TOO_MANY = f"stands for more than {MAX_NODES} values, with all that its aliases repeat"
_SAID = {"extra_forbidden": "is not a key here", "missing": "is missing"}
_THEIRS = {
    "Input should be a valid string": "must be text",
    "Input should be a valid": "must be a",
    "Input should": "must",
}
"""Words of pydantic, and ours for them."""


class TooManyValues(yaml.YAMLError):
    """The document is larger than any that is needed, however short it is written."""


def content_of(path: str) -> str:
    """What is in a file, as text.

    Raises:
        InvalidValue: It can't be read, is too long, or no UTF-8.
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
    """The text between the first two fences, from its second line on; None where it does not begin with a fence."""
    lines = content.removeprefix("\ufeff").splitlines()
    if lines and lines[0].rstrip() == FENCE:
        for index, line in enumerate(lines[1:], 1):
            if line.rstrip() == FENCE:
                return "\n".join(lines[1:index]) + "\n"
    return None


def parsed(text: str, what: str, hint: str) -> Any:
    """What the YAML in the text says. A refusal calls it *what*, and says the *hint*.

    Raises:
        InvalidValue: It is not valid, or too large.
    """
    try:
        node, document = loaded(text)
        if node is not None:
            _refuse_twice(node, set())
        return document
    except TooManyValues:
        raise errors.InvalidValue(f"{what} {TOO_MANY}", hint) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise errors.InvalidValue(f"{what} is not valid YAML: {' '.join(str(error).split())}", hint) from None


def loaded(text: str) -> tuple[yaml.Node | None, Any]:
    """The YAML in the text, as it is written and what it says; None for both where it says nothing.

    Raises:
        YAMLError, ValueError, RecursionError: It is not valid.
        TooManyValues: It stands for too many, or is a part of itself.
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


def _refuse_twice(node: yaml.Node, seen: set[int]) -> None:
    """Raises YAMLError: A key stands twice in a mapping: YAML takes the last, in silence."""
    if id(node) in seen:
        return
    seen.add(id(node))
    keys: set[str] = set()
    for part in node.value if isinstance(node, yaml.MappingNode | yaml.SequenceNode) else ():
        key, child = part if isinstance(node, yaml.MappingNode) else (None, part)
        if isinstance(key, yaml.ScalarNode):
            if key.value in keys:
                line = key.start_mark.line + 1
                raise yaml.YAMLError(f"the key {key.value} stands twice, again in line {line}")
            keys.add(key.value)
        _refuse_twice(child, seen)


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values the node stands for, aliases by all that they repeat."""
    size = known.get(id(node))
    if size is None:
        known[id(node)] = MAX_NODES  # found again on the way down, it holds itself
        children = node.value if isinstance(node, yaml.SequenceNode) else []
        if isinstance(node, yaml.MappingNode):
            children = [part for pair in node.value for part in pair]
        size = known[id(node)] = 1 + sum(_size(child, known) for child in children)
    if size >= MAX_NODES:
        raise TooManyValues
    return size


def told(error: Any) -> str:
    """What is wrong with a value, in our words."""
    said: str = _SAID.get(error["type"]) or error["msg"].removeprefix("Value error, ")
    for words, ours in _THEIRS.items():
        said = said.replace(words, ours)
    return said[:1].lower() + said[1:]
