"""Finds Python and data files that can't be parsed, and keys that a data file has twice."""

from __future__ import annotations

import json
import os
import re
import tomllib
import warnings
from collections import Counter
from xml.parsers import expat

import yaml

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import content, lines_of
from teams_cli.extensions.review.findings import SERIOUS, WARNING, Finding
from teams_cli.store.json_edits import without_comments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


_JSON = (".json", ".webmanifest", ".geojson", ".ipynb", ".jsonld")
_YAML = (".yml", ".yaml")
_XML = (".xml", ".svg", ".xsd", ".xsl", ".xslt", ".plist", ".wsdl", ".rss", ".atom", ".csproj", ".vbproj", ".resx")
_WITH_COMMENTS = re.compile(
    r"(^|/)(tsconfig|jsconfig|deno|devcontainer|\.eslintrc|\.swcrc|\.babelrc|babel\.config|api-extractor|language-config"
    r"|nx|turbo|typedoc)[^/]*\.json$|(^|/)\.(vscode|devcontainer|zed)/"
)
"""Matches names of JSON files that may have comments and trailing commas, although the standard of JSON forbids
these.
"""
_TEMPLATE = re.compile(r"(?<!\$)\{\{.*?\}\}|\{%.*?%\}|<%.*?%>", re.DOTALL)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def is_data(path: str) -> bool:
    """Return whether the file at *path* is a data file of a known format, by its name."""
    return path.endswith((*_JSON, *_YAML, ".toml", *_XML))


def check_parsing(tree: str, paths: list[str]) -> Iterator[Finding]:
    """Yield a finding for each Python or data file that can't be parsed, and for each key that a data file has twice.
    These findings are reported even on unchanged lines, because a change elsewhere in the file may have caused them.
    """
    for path in paths:
        try:
            if kinds.is_python(path):
                with warnings.catch_warnings(), open(os.path.join(tree, path), "rb") as file:
                    warnings.simplefilter("ignore")  # ruff reports these
                    compile(file.read(), "<file>", "exec", dont_inherit=True)
            else:
                yield from _parse_data(path, content(tree, path).removeprefix("\ufeff"))
        except SyntaxError as error:
            yield _broken(path, error.lineno or 0, f"syntax error: {error.msg}")
        except json.JSONDecodeError as error:
            yield _broken(path, error.lineno, f"is not valid JSON: {error.msg}")
        except tomllib.TOMLDecodeError as error:
            line = re.search(r"line (\d+)", str(error))
            yield _broken(path, int(line[1]) if line else 0, f"is not valid TOML: {error}")
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            reason = " ".join(str(error).split())[:200]
            yield _broken(path, mark.line + 1 if mark else 0, f"is not valid YAML: {reason}")
        except expat.ExpatError as error:
            yield _broken(path, error.lineno, f"is not valid XML: {expat.ErrorString(error.code)}")
        except (ValueError, RecursionError, MemoryError, OverflowError) as error:
            yield _broken(path, 0, f"can't be read: {error}")


def _broken(path: str, line: int, message: str) -> Finding:
    return Finding(SERIOUS, path, line, message, "syntax", anywhere=True)


def _parse_data(path: str, text: str) -> Iterator[Finding]:
    """Parse a data file, and yield a finding for each key that it has twice. Errors of the parser are raised."""
    if not text.strip() and not path.endswith((".json", ".xml")):  # other formats allow an empty file
        return
    may_be_template = path.endswith(_YAML) or "template" in path.lower() or "{{" in path
    if may_be_template and _TEMPLATE.search(text):
        return  # data files are made from it, and it need not be one itself
    if path.endswith(_JSON):
        yield from _parse_json(path, text)
    elif path.endswith(_YAML):
        yield from _parse_yaml(path, text)
    elif path.endswith(".toml"):
        tomllib.loads(text)
    else:
        parser = expat.ParserCreate()
        parser.UseForeignDTD(True)  # entities may be declared in another file, which is not read
        parser.ExternalEntityRefHandler = lambda *_: 1  # 1: go on without the entity
        parser.Parse(text, True)


def _parse_json(path: str, text: str) -> Iterator[Finding]:
    if _WITH_COMMENTS.search(path):
        text = without_comments(text)  # lines keep their numbers
    repeated: set[str] = set()

    def note_repeated_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
        counts = Counter(key for key, _ in pairs)
        repeated.update(key for key, count in counts.items() if count > 1)
        return dict(pairs)

    json.loads(text, object_pairs_hook=note_repeated_keys)
    for key in sorted(repeated):
        numbers = [number for number, line in enumerate(lines_of(text), 1) if json.dumps(key) in line]
        line = numbers[-1] if numbers else 0  # the last of these lines has the value that counts
        yield _repeated_key(path, line, key)


def _parse_yaml(path: str, text: str) -> Iterator[Finding]:
    to_visit: list[yaml.Node] = [node for node in yaml.compose_all(text, Loader=_LOADER) if node]
    visited = set()
    while to_visit:
        node = to_visit.pop()
        if id(node) in visited:  # an alias stands for a node that was visited before
            continue
        visited.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            to_visit += node.value
        elif isinstance(node, yaml.MappingNode):
            names = set()
            for key, value in node.value:
                to_visit.append(value)
                if isinstance(key, yaml.ScalarNode) and key.value != "<<":  # `<<` merges another mapping
                    if key.value in names:
                        yield _repeated_key(path, key.start_mark.line + 1, key.value)
                    names.add(key.value)


def _repeated_key(path: str, line: int, name: str) -> Finding:
    message = f"the key {name!r} stands twice; the first value is lost"
    return Finding(WARNING, path, line, message, "key-twice", anywhere=True)
