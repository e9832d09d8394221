"""Files of data that can't be read, or that say two things at once: JSON, TOML, YAML, XML and INI."""

from __future__ import annotations

import configparser
import json
import os
import re
import tomllib
from xml.parsers import expat

import yaml

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.findings import SERIOUS, WARNING, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_JSON = (".json", ".webmanifest", ".geojson", ".ipynb", ".jsonld")
_YAML = (".yml", ".yaml")
_INI = ("setup.cfg", "tox.ini", "pytest.ini", "mypy.ini", ".coveragerc")
_COMMENTED = re.compile(
    r"(^|/)(tsconfig|jsconfig|deno|devcontainer|\.eslintrc|\.swcrc|\.babelrc|babel\.config|api-extractor|language-config"
    r"|nx|turbo|typedoc)[^/]*\.json$|(^|/)\.(vscode|devcontainer|zed)/"
)
"""Files of these names may hold comments and commas at the end, whatever the standard says."""
_NOISE = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\\n])*")|,(?=\s*[}\]])')
_TEMPLATE = re.compile(r"(?<!\$)\{\{.*?\}\}|\{%.*?%\}|<%.*?%>", re.DOTALL)


def is_data(path: str) -> bool:
    """Whether it is a file of data of which the form is known."""
    return path.endswith((*_JSON, *_YAML, ".toml", *kinds.XML)) or os.path.basename(path) in _INI


def data_problems(path: str, text: str) -> Iterator[Finding]:
    """What is wrong with the form of the file; templates that will be such a file are left alone."""
    if not text.strip() and not path.endswith((".json", ".xml")):
        return
    if _TEMPLATE.search(text) and (path.endswith(_YAML) or "template" in path.lower() or "{{" in path):
        return
    text = text.removeprefix("\ufeff")
    try:
        if path.endswith(_JSON):
            yield from _json(path, text)
        elif path.endswith(_YAML):
            yield from _yaml(path, text)
        elif path.endswith(".toml"):
            _toml(text)
        elif path.endswith(kinds.XML):
            _xml(text)
        else:
            configparser.ConfigParser(interpolation=None).read_string(text)
    except _Broken as problem:
        yield Finding(SERIOUS, path, problem.line, problem.what, "syntax", anywhere=True)
    except configparser.Error as error:
        yield Finding(
            SERIOUS, path, _line_in(str(error)), f"is not a valid INI file: {error.message}", "syntax", anywhere=True
        )
    except RecursionError:
        yield Finding(WARNING, path, 0, "is nested too deeply to be read", "syntax", anywhere=True)


class _Broken(Exception):
    """It can't be read from this line on."""

    def __init__(self, line: int, what: str) -> None:
        self.line = line
        self.what = what


def _line_in(message: str) -> int:
    found = re.search(r"\[line +(\d+)\]|line:? +(\d+)", message)
    return int(found[1] or found[2]) if found else 0


def _json(path: str, text: str) -> Iterator[Finding]:
    if _COMMENTED.search(path):
        text = _LAST_COMMA.sub(lambda found: found[1] or "", _NOISE.sub(_blank, text))
    twice: list[str] = []

    def pairs(found: list[tuple[str, object]]) -> dict[str, object]:
        names = [name for name, _ in found]
        twice.extend({name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else ())
        return dict(found)

    try:
        json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise _Broken(error.lineno, f"is not valid JSON: {error.msg}") from None
    except ValueError as error:
        raise _Broken(0, f"is not valid JSON: {error}") from None
    rows = text.splitlines()
    for name in twice:
        lines = [number for number, row in enumerate(rows, 1) if f"{json.dumps(name)}" in row]
        what = f"the key {name!r} stands twice in one object; the first value is lost"
        yield Finding(WARNING, path, lines[-1] if lines else 0, what, "key-twice", anywhere=True)


def _blank(found: re.Match[str]) -> str:
    """A comment as blanks, so that lines keep their numbers; a string as it is."""
    return found[1] or re.sub(r"[^\n]", " ", found[0])


def _toml(text: str) -> None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        end = "end of document" in str(error)
        raise _Broken(text.count("\n") if end else _line_in(str(error)), f"is not valid TOML: {error}") from None


def _yaml(path: str, text: str) -> Iterator[Finding]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for document in yaml.compose_all(text, Loader=loader):
            yield from _twice(path, document, set())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _Broken(mark.line + 1 if mark else 0, f"is not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise _Broken(0, f"is not valid YAML: {' '.join(str(error).split())[:200]}") from None


def _twice(path: str, node: yaml.Node | None, seen: set[int]) -> Iterator[Finding]:
    """Keys that stand twice in one mapping, of which the first is lost."""
    if node is None or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for child in node.value:
            yield from _twice(path, child, seen)
    elif isinstance(node, yaml.MappingNode):
        names: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if key.value in names:
                    what = f"the key {key.value!r} stands twice in one mapping; the first value is lost"
                    yield Finding(WARNING, path, key.start_mark.line + 1, what, "key-twice", anywhere=True)
                names.add(key.value)
            yield from _twice(path, value, seen)


def _xml(text: str) -> None:
    parser = expat.ParserCreate()
    parser.UseForeignDTD(True)  # its entities may be declared there
    parser.ExternalEntityRefHandler = lambda *_: 1
    try:
        parser.Parse(text.encode("utf-8", "replace") if "encoding=" not in text[:100] else _in_its_encoding(text), True)
    except expat.ExpatError as error:
        raise _Broken(error.lineno, f"is not valid XML: {expat.ErrorString(error.code)}") from None


def _in_its_encoding(text: str) -> bytes:
    """The text as bytes again; it was read as UTF-8, whatever it declares."""
    return re.sub(r'encoding\s*=\s*["\'][^"\']*["\']', 'encoding="utf-8"', text, count=1).encode("utf-8", "replace")
