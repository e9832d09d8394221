"""Python and data files that can't be parsed, keys that stand twice, and GitHub's workflows that can be abused."""

from __future__ import annotations

import json
import os
import re
import tomllib
import warnings
from xml.parsers import expat

import yaml

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import content
from teams_cli.extensions.review.findings import SERIOUS, WARNING, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


_JSON = (".json", ".webmanifest", ".geojson", ".ipynb", ".jsonld")
_YAML = (".yml", ".yaml")
_XML = (".xml", ".svg", ".xsd", ".xsl", ".xslt", ".plist", ".wsdl", ".rss", ".atom", ".csproj", ".vbproj", ".resx")
_COMMENTED = re.compile(
    r"(^|/)(tsconfig|jsconfig|deno|devcontainer|\.eslintrc|\.swcrc|\.babelrc|babel\.config|api-extractor|language-config"
    r"|nx|turbo|typedoc)[^/]*\.json$|(^|/)\.(vscode|devcontainer|zed)/"
)
"""Files of these names may hold comments and commas at the end, whatever the standard says."""
_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\\n])*")|,(?=\s*[}\]])')
_TEMPLATE = re.compile(r"(?<!\$)\{\{.*?\}\}|\{%.*?%\}|<%.*?%>", re.DOTALL)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def is_data(path: str) -> bool:
    """Whether it is a data file whose form is known."""
    return path.endswith((*_JSON, *_YAML, ".toml", *_XML))


def check_parsing(tree: str, paths: list[str]) -> Iterator[Finding]:
    """Files of Python and of data that do not parse. Wherever the parser stumbles, the change made it stumble."""
    for path in paths:
        try:
            if kinds.is_python(path):
                with warnings.catch_warnings(), open(os.path.join(tree, path), "rb") as file:
                    warnings.simplefilter("ignore")  # ruff reports these
                    compile(file.read(), "<file>", "exec", dont_inherit=True)
            else:
                yield from _data(path, content(tree, path).removeprefix("\ufeff"))
        except SyntaxError as error:
            yield _broken(path, error.lineno or 0, f"syntax error: {error.msg}")
        except json.JSONDecodeError as error:
            yield _broken(path, error.lineno, f"is not valid JSON: {error.msg}")
        except tomllib.TOMLDecodeError as error:
            line = re.search(r"line (\d+)", str(error))
            yield _broken(path, int(line[1]) if line else 0, f"is not valid TOML: {error}")
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            yield _broken(
                path, mark.line + 1 if mark else 0, f"is not valid YAML: {' '.join(str(error).split())[:200]}"
            )
        except expat.ExpatError as error:
            yield _broken(path, error.lineno, f"is not valid XML: {expat.ErrorString(error.code)}")
        except (ValueError, RecursionError, MemoryError, OverflowError) as error:
            yield _broken(path, 0, f"can't be read: {error}")


def _broken(path: str, line: int, what: str) -> Finding:
    return Finding(SERIOUS, path, line, what, "syntax", anywhere=True)


def _data(path: str, text: str) -> Iterator[Finding]:
    """Keys that stand twice in a data file; a file that does not parse raises what its parser raises."""
    if not text.strip() and not path.endswith((".json", ".xml")):
        return
    if _TEMPLATE.search(text) and (path.endswith(_YAML) or "template" in path.lower() or "{{" in path):
        return  # such a file is made of it
    if path.endswith(_JSON):
        yield from _json(path, text)
    elif path.endswith(_YAML):
        for pairs in _mappings(text):
            names = set()
            for key, _ in pairs:
                if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                    if key.value in names:
                        yield _twice(path, key.start_mark.line + 1, key.value)
                    names.add(key.value)
    elif path.endswith(".toml"):
        tomllib.loads(text)
    else:
        parser = expat.ParserCreate()
        parser.UseForeignDTD(True)  # its entities may be declared there
        parser.ExternalEntityRefHandler = lambda *_: 1
        parser.Parse(text, True)


def _json(path: str, text: str) -> Iterator[Finding]:
    if _COMMENTED.search(path):  # a comment becomes blanks, so that lines keep their numbers
        text = _COMMENT.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), text)
        text = _LAST_COMMA.sub(lambda found: found[1] or "", text)
    twice: list[str] = []

    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        names = [name for name, _ in items]
        twice.extend({name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else ())
        return dict(items)

    json.loads(text, object_pairs_hook=pairs)
    for name in twice:
        lines = [number for number, row in enumerate(text.splitlines(), 1) if json.dumps(name) in row]
        yield _twice(path, lines[-1] if lines else 0, name)


def _twice(path: str, line: int, name: str) -> Finding:
    what = f"the key {name!r} stands twice; the first value is lost"
    return Finding(WARNING, path, line, what, "key-twice", anywhere=True)


def _mappings(text: str) -> Iterator[list[tuple[yaml.Node, yaml.Node]]]:
    """The keys and values of each mapping in YAML documents, with their places."""
    waiting: list[yaml.Node] = [node for node in yaml.compose_all(text, Loader=_LOADER) if node]
    seen = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:  # an alias
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode):
            yield node.value
            waiting += [value for _, value in node.value]


_STRANGERS = (
    r"head_ref|event\.(?:(?:issue|discussion)\.(?:title|body)|(?:comment|review|review_comment)\.body"
    r"|pull_request\.(?:title|body|head\.(?:ref|label|repo\.default_branch))|pages\S*\.page_name"
    r"|(?:head_commit|commits\S*)\.(?:message|author\.(?:email|name)))"
)
_INSERTED = re.compile(rf"\$\{{\{{[^}}]*\bgithub\.(?:{_STRANGERS})\b[^}}]*\}}\}}")


def check_github_workflows(tree: str, paths: list[str]) -> Iterator[Finding]:
    """Scripts into which a stranger's text is put before the shell reads them; by `env` it would be a value."""
    for path in paths:
        rows = content(tree, path).splitlines()
        try:
            pairs = [pair for mapping in _mappings(content(tree, path)) for pair in mapping]
        except (yaml.YAMLError, RecursionError):
            continue  # another check says so
        for key, value in pairs:
            if key.value in ("run", "script") and isinstance(value, yaml.ScalarNode):
                for number in range(value.start_mark.line, min(value.end_mark.line + 1, len(rows))):
                    if found := _INSERTED.search(rows[number]):
                        what = f"`{found[0]}` in a script: an attacker who controls it can run commands; use `env`"
                        yield Finding(SERIOUS, path, number + 1, what, "script-injection")
