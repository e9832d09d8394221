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
from teams_cli.extensions.review.change import content
from teams_cli.extensions.review.findings import NOTE, SERIOUS, WARNING, Finding

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


_STRANGERS = (
    r"head_ref|event\.(?:(?:issue|discussion)\.(?:title|body)|(?:comment|review|review_comment)\.body"
    r"|pull_request\.(?:title|body|head\.(?:ref|label|repo\.default_branch))|pages\S*\.page_name"
    r"|(?:head_commit|commits\S*)\.(?:message|author\.(?:email|name)))"
)
_INSERTED = re.compile(rf"\$\{{\{{[^}}]*\bgithub\.(?:{_STRANGERS})\b[^}}]*\}}\}}")
_SCRIPTS = ("run", "script")


def check_github_workflows(tree: str, paths: list[str]) -> Iterator[Finding]:
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


KNOWN = {
    "a private key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----",
    "an AWS access key": r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})",
    "a GitLab token": r"\bglpat-[A-Za-z0-9_-]{20,}",
    "a Slack token": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    "a Slack webhook": r"hooks\.slack\.com/services/T\w{6,}/B\w{6,}/\w{20,}",
    "a Google API key": r"\bAIza[0-9A-Za-z_-]{35}\b",
    "a Stripe key": r"\b[sr]k_live_[0-9A-Za-z]{16,}",
    "an npm token": r"\bnpm_[A-Za-z0-9]{36}\b",
    "a PyPI token": r"\bpypi-AgEI[A-Za-z0-9_-]{50,}",
    "an Anthropic key": r"\bsk-ant-[A-Za-z0-9_-]{20,}",
    "an OpenAI key": r"\bsk-(?:proj-)?[A-Za-z0-9_-]{32,}",
    "a SendGrid key": r"\bSG\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}",
    "a signed token": r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}",
    "a bearer token": r"(?i:bearer)\s+[A-Za-z0-9_.~+/-]{24,}=*",
    "a Telegram token": r"\b\d{8,10}:AA[A-Za-z0-9_-]{33}\b",
}
_KNOWN = [(what, re.compile(pattern)) for what, pattern in KNOWN.items()]
_NAME = (
    r"\w*(?:passw(?:or)?d|passphrase|pwd|_pass|secret|(?:api|access|secret|private|signing|encryption)_?key|token)s?"
)
_QUOTED = re.compile(
    rf"""(?i)(?<![\w-])["']?({_NAME})["']?\s*(?:=|:|=>|:=|:\s*str\s*=)\s*(?:r|b|f|u)?(["'])([^"'\n]{{6,}})\2"""
)
_PLAIN = re.compile(
    rf"(?i)^\s*(?:export\s+|ENV\s+|ARG\s+|-\s+)?([\w.-]*{_NAME})\s*[:=]\s*([^\s\"'#,;(){{}}\[\]<>$]{{6,}})\s*(?:#.*)?$"
)
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]{2,}://([^\s:/@\"'{}$<>]+):([^\s/@\"'{}$<>]{4,})@([\w.-]+)")
_CONFIGURATION = (".env", ".ini", ".cfg", ".conf", ".properties", ".yml", ".yaml", ".toml", ".tfvars", ".sh")
_PLACEHOLDER = re.compile(
    r"(?i)example|sample|placeholder|change.?me|your[-_ ]|my[-_]?(secret|token|pass|key)|dummy|fake|xxx|todo|redacted"
    r"|\*\*\*|\.\.\."
    r"|^<.*>$|^(none|null|true|false|string|str|required|optional|password|passwd|secret|token|changeit)$|^\W+$|^(.)\1+$"
    r"|\{\{?|\$[({A-Za-z]|%\(|^os\.|^env\b|getenv|process\.env|secrets\.|^vault|^arn:|^https?://|^/|_(file|path|name|env|url|id)$"
)
_PASSWORD = re.compile(r"(?i)(passw(or)?d|passwd|passphrase|pwd|_pass|secret(_?key)?)s?$")
_SAYS_WHAT = re.compile(r"^[a-z]+([-_. ][a-z]+)+$|^[A-Z]+(_[A-Z]+)+$|^[A-Za-z][a-z]+$|\s.*\s")
"""Words: the name of a field, a header or a message, and no secret."""
_OF_NAMES = re.compile(
    r"(?i)(name|field|type|header|url|uri|path|file|label|prompt|help|regex|pattern|prefix|env|var|class|id)s?$"
)


def check_secrets(tree: str, paths: list[str]) -> Iterator[Finding]:
    """Secrets of known forms, and values of names that say that they are secret."""
    for path in paths:
        for number, line in enumerate(content(tree, path).splitlines(), 1):
            if found := _known(line):
                weight = NOTE if kinds.is_test(path) or kinds.is_test_data(path) else SERIOUS
                yield Finding(weight, path, number, found, "secret")
            elif not _is_prose(path) and (said := _guessed(path, line[:2000])):
                yield Finding(WARNING, path, number, said, "secret")


def _known(line: str) -> str:
    """Which secret stands there, so that it can be found and not used."""
    for what, pattern in _KNOWN:
        if (found := pattern.search(line)) and not _PLACEHOLDER.search(found[0][8:]):
            return f"{what}: {found[0][:5]}…; take it out, and make it invalid: it stays in the history"
    return ""


def _is_prose(path: str) -> bool:
    return path.endswith((".md", ".rst", ".txt", ".adoc", ".html")) or kinds.is_test(path)


def _guessed(path: str, line: str) -> str:
    for found in _ADDRESS.finditer(line):
        host = found[3]
        if not _PLACEHOLDER.search(found[2]) and "example" not in host and found[2] not in ("pass", "password"):
            return f"a password in an address: {found[1]}:{found[2][:2]}…@{host}"
    for found in _QUOTED.finditer(line):
        if _is_secret(found[1], found[3]):
            return f"maybe a secret: {found[1]} = {found[3][:2]}…"
    of_names = path.endswith(_CONFIGURATION) or ".env" in path or kinds.is_dockerfile(path)
    plain = _PLAIN.match(line) if of_names else None
    return f"maybe a secret: {plain[1]} = {plain[2][:2]}…" if plain and _is_secret(plain[1], plain[2]) else ""


def _is_secret(name: str, value: str) -> bool:
    """Whether the value looks like a secret and not like a placeholder, a word, or the name of something."""
    if _PLACEHOLDER.search(value) or _OF_NAMES.search(name) or value.lower() in name.lower():
        return False
    if _PASSWORD.search(name) and value.isalpha():
        return True
    mixed = any(c.isdigit() for c in value) or any(c in "!@#$%^&*?+=/" for c in value)
    return mixed or not _SAYS_WHAT.search(value)
