"""Secrets in changed lines: those of known forms, and values whose names say that they are secret."""

from __future__ import annotations

import re

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import content
from teams_cli.extensions.review.findings import NOTE, SERIOUS, WARNING, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

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
