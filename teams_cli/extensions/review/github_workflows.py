"""Workflows of GitHub that run what strangers wrote: the title of an issue, or the name of a branch, in a script."""

from __future__ import annotations

import re

import yaml

from teams_cli.extensions.review.change import content
from teams_cli.extensions.review.findings import SERIOUS, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_STRANGERS = (
    r"head_ref|event\.(?:(?:issue|discussion)\.(?:title|body)|(?:comment|review|review_comment)\.body"
    r"|pull_request\.(?:title|body|head\.(?:ref|label|repo\.default_branch))|pages\S*\.page_name"
    r"|(?:head_commit|commits\S*)\.(?:message|author\.(?:email|name)))"
)
_INSERTED = re.compile(rf"\$\{{\{{[^}}]*\bgithub\.(?:{_STRANGERS})\b[^}}]*\}}\}}")
_SCRIPTS = ("run", "script")


def check(tree: str, paths: list[str]) -> Iterator[Finding]:
    """Scripts into which a stranger's text is put before the shell reads them; by `env` it would be a value."""
    for path in paths:
        text = content(tree, path)
        try:
            documents = list(yaml.compose_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
        except (yaml.YAMLError, RecursionError):
            continue  # another check says so
        rows = text.splitlines()
        for script in (script for document in documents for script in _scripts(document, set())):
            for number in range(script.start_mark.line, min(script.end_mark.line + 1, len(rows))):
                if found := _INSERTED.search(rows[number]):
                    what = f"`{found[0]}` in a script: whoever can choose it runs commands; hand it over by `env`"
                    yield Finding(SERIOUS, path, number + 1, what, "script-injection")


def _scripts(node: yaml.Node | None, seen: set[int]) -> Iterator[yaml.ScalarNode]:
    """The values that are run, wherever they stand."""
    if node is None or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for child in node.value:
            yield from _scripts(child, seen)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in _SCRIPTS and isinstance(value, yaml.ScalarNode):
                yield value
            else:
                yield from _scripts(value, seen)
