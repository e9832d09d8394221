"""Finds patterns in lines, such as secrets, dangerous calls and conflict marks. Also finds files that do not belong in
a repository.
"""

from __future__ import annotations

import re

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import content, lines_of
from teams_cli.extensions.review.findings import NOTE, SERIOUS, WARNING, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

KNOWN = {  # the pattern of each kind of secret whose form is known
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
_KNOWN_PATTERNS = [(kind, re.compile(pattern)) for kind, pattern in KNOWN.items()]
_KEYWORD = (
    r"\w*(?:passw(?:or)?d|passphrase|pwd|_pass|secret|(?:api|access|secret|private|signing|encryption)_?key|token)s?"
)
_QUOTED_VALUE = re.compile(
    rf"""(?i)(?<![\w-])["']?({_KEYWORD})["']?\s*(?:=|:|=>|:=|:\s*str\s*=)\s*(?:r|b|f|u)?(["'])([^"'\n]{{6,}})\2"""
)
_UNQUOTED_VALUE = re.compile(
    rf"(?i)^\s*(?:export\s+|ENV\s+|ARG\s+|-\s+)?([\w.-]*{_KEYWORD})\s*[:=]\s*([^\s\"'#,;(){{}}\[\]<>$]{{6,}})\s*(?:#.*)?$"
)
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]{2,}://([^\s:/@\"'{}$<>]+):([^\s/@\"'{}$<>]{4,})@([\w.-]+)")
_SEARCHED = 2000
"""The number of characters of a line that are searched for likely secrets. Searching more of it would take long."""
_CONFIGURATION = (".env", ".ini", ".cfg", ".conf", ".properties", ".yml", ".yaml", ".toml", ".tfvars", ".sh")
_PLACEHOLDER = re.compile(
    r"(?i)example|sample|placeholder|change.?me|your[-_ ]|my[-_]?(secret|token|pass|key)|dummy|fake|xxx|todo|redacted"
    r"|\*\*\*|\.\.\."
    r"|^<.*>$|^(none|null|true|false|string|str|required|optional|password|passwd|secret|token|changeit)$|^\W+$|^(.)\1+$"
    r"|\{\{?|\$[({A-Za-z]|%\(|^os\.|^env\b|getenv|process\.env|secrets\.|^vault|^arn:|^https?://|^/|_(file|path|name|env|url|id)$"
)
_PASSWORD = re.compile(r"(?i)(passw(or)?d|passwd|passphrase|pwd|_pass|secret(_?key)?)s?$")
_PLAIN_WORDS = re.compile(r"^[a-z]+([-_. ][a-z]+)+$|^[A-Z]+(_[A-Z]+)+$|^[A-Za-z][a-z]+$|\s.*\s")
"""Matches values that consist of plain words, such as the name of a field, and so are not secrets."""
_NO_KEYWORD = re.compile(
    r"(?i)(name|field|type|header|url|uri|path|file|label|prompt|help|regex|pattern|prefix|env|var|class|id)s?$"
)


def check_secrets(tree: str, paths: list[str]) -> Iterator[Finding]:
    """Yield a finding for each secret of a known form, and for each value whose name says that it is secret."""
    for path in paths:
        is_test = kinds.is_test(path)
        has_made_up_values = is_test or path.endswith((".md", ".rst", ".txt", ".adoc", ".html"))
        for number, line in enumerate(lines_of(content(tree, path)), 1):
            if known := _known_secret(line):
                weight = NOTE if is_test or kinds.is_test_data(path) else SERIOUS
                yield Finding(weight, path, number, known, "secret")
            elif not has_made_up_values and (likely := _likely_secret(path, line[:_SEARCHED])):
                yield Finding(WARNING, path, number, likely, "secret")


def _known_secret(line: str) -> str:
    """Return a message about the first secret of a known form in the line, without the secret; "" if there is none."""
    for kind, pattern in _KNOWN_PATTERNS:
        # The first characters are the same in all secrets of a kind, and some look like a placeholder.
        if (match := pattern.search(line)) and not _PLACEHOLDER.search(match[0][8:]):
            return f"{kind}: {match[0][:5]}…; take it out, and make it invalid: it stays in the history"
    return ""


def _likely_secret(path: str, line: str) -> str:
    """Return a message about a password in an address, or a value that looks like a secret; "" if there is none."""
    for address in _ADDRESS.finditer(line):
        user, password, host = address.groups()
        if not _PLACEHOLDER.search(password) and "example" not in host and password not in ("pass", "password"):
            return f"a password in an address: {user}:{password[:2]}…@{host}"
    values = [(match[1], match[3]) for match in _QUOTED_VALUE.finditer(line)]
    if path.endswith(_CONFIGURATION) or ".env" in path or kinds.is_dockerfile(path):
        values += [(match[1], match[2]) for match in _UNQUOTED_VALUE.finditer(line)]
    for name, value in values:
        if _is_secret(name, value):
            return f"maybe a secret: {name} = {value[:2]}…"
    return ""


def _is_secret(name: str, value: str) -> bool:
    """Return whether the value looks like a secret, and not like a placeholder, a word or the name of a field."""
    if _PLACEHOLDER.search(value) or _NO_KEYWORD.search(name) or value.lower() in name.lower():
        return False
    if _PASSWORD.search(name) and value.isalpha():  # a password may be a word
        return True
    has_digit_or_sign = any(character.isdigit() or character in "!@#$%^&*?+=/" for character in value)
    return has_digit_or_sign or not _PLAIN_WORDS.search(value)


_CONFLICT = re.compile(r"^(<{7}|>{7}|\|{7})( |$)|^={7}$")
"""Matches a line that is a conflict marker."""
_LEFT_BEHIND = re.compile(
    r"(\.(orig|rej|bak|swp|swo|tmp)|~|\.DS_Store|Thumbs\.db|\.py[co])$|(^|/)(__pycache__|\.idea)/"
)
_PRIVATE = re.compile(
    r"(^|/)(\.env(\.(local|prod(uction)?))?|id_(rsa|dsa|ecdsa|ed25519)|\.netrc|\.pgpass|\.npmrc|\.pypirc)$"
)
TO_DO = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b.{0,80}")


def conflict_marks(tree: str, paths: list[str]) -> Iterator[Finding]:
    """Yield a finding for each conflict that was not resolved, from its mark `<<<<<<<` to its mark `>>>>>>>`. A file
    in which one of the two is missing gets a warning. A line `=======` alone gets no finding.
    """
    for path in paths:
        rows = enumerate(lines_of(content(tree, path)), 1)
        marks = [(number, row[0]) for number, row in rows if _CONFLICT.match(row)]
        signs = {sign for _, sign in marks}
        if {"<", ">"} <= signs:
            for number, sign in marks:
                if sign == "<":
                    yield Finding(SERIOUS, path, number, "a conflict was not resolved", "conflict")
        elif signs - {"="}:
            yield Finding(WARNING, path, marks[0][0], "the mark of a conflict", "conflict")


def odd_files(paths: list[str]) -> Iterator[Finding]:
    """Yield a finding for each of the new files at *paths* that does not belong in a repository."""
    for path in paths:
        if _PRIVATE.search(path):
            yield Finding(WARNING, path, 0, "such files hold secrets; is it meant for everybody?", "private-file")
        elif _LEFT_BEHIND.search(path):
            yield Finding(NOTE, path, 0, "such files are left behind by tools", "remains")


_TRUST = "anybody in between can read and change the traffic"
_PAGE = "what users enter becomes part of the page"
_COMMAND = "an attacker who controls a part of the command can run any command"
_QUERY = "an attacker who controls a part of the query can run any query; give parameters"
_NO_VERIFY = r"\.verify\s*=\s*False|\b(verify_ssl|ssl|check_hostname)\s*=\s*False|ssl\.CERT_NONE"
_NO_REJECT = r"\brejectUnauthorized\s*:\s*false|NODE_TLS_REJECT_UNAUTHORIZED['\"\]]*\s*=\s*['\"]?0"
_INNER_HTML = r"\.(inner|outer)HTML\s*\+?=(?!=)\s*(?!['\"`][^$+]*['\"`]\s*;?\s*$)"
_ADJACENT = r"\.insertAdjacentHTML\([^,]*,\s*(?!['\"`][^$+]*['\"`]\s*\))|\bdocument\.write(ln)?\("
_EXEC = r"\b(exec|execSync)\(\s*(`[^`]*\$\{|[\"'][^\"']*[\"']\s*\+)"
_VERB = r"\s*(select|insert|update|delete)\b"
_SQL = rf"(?i)(`{_VERB}[^`]*\$\{{|[\"']{_VERB}[^\"']*[\"']\s*\+)"
_CURL = r"\b(curl\b[^|;]*\s(-k|--insecure)\b|wget\b[^|;]*--no-check-certificate)"
_PYTHON_LINES = (
    (_NO_VERIFY, SERIOUS, "no-verify", _TRUST),
    (r"[\"']verify_signature[\"']\s*:\s*False", SERIOUS, "no-verify", "anybody can make such a token"),
)
_SCRIPT_LINES = (
    (_NO_REJECT, SERIOUS, "no-verify", _TRUST),
    (_INNER_HTML, WARNING, "inner-html", _PAGE),
    (_ADJACENT, WARNING, "inner-html", _PAGE),
    (_EXEC, SERIOUS, "command", _COMMAND),
    (_SQL, SERIOUS, "sql", _QUERY),
)
_SHELL_LINES = (
    (r"\b(curl|wget)\b[^|;#]*\|\s*(sudo\s+)?(ba|z|da)?sh\b", SERIOUS, "curl-sh", "runs what a server sends"),
    (r"\bchmod\s+(-\w+\s+)*(0?777|a\+rwx|o\+w)\b", WARNING, "chmod-777", "lets everybody change it"),
    (_CURL, SERIOUS, "no-verify", _TRUST),
    (r"(^|[;&|]\s*)eval\s+[^;]*\$", SERIOUS, "eval", "runs whatever the variable holds"),
)


def dangerous_lines(tree: str, paths: list[str]) -> Iterator[Finding]:
    """Yield a finding for each line that matches a known dangerous pattern. Test files and comments are skipped."""
    for path in paths:
        if kinds.is_test(path):
            continue
        patterns: tuple[tuple[str, str, str, str], ...] = _SHELL_LINES
        if kinds.is_python(path):
            patterns = _PYTHON_LINES
        elif kinds.is_script(path):
            patterns = _SCRIPT_LINES
        for number, line in enumerate(lines_of(content(tree, path)), 1):
            if line.lstrip().startswith(("#", "//", "*")):
                continue
            for pattern, weight, rule, reason in patterns:
                if match := re.search(pattern, line):
                    yield Finding(weight, path, number, f"`{match[0].strip()[:60]}`: {reason}", rule)
