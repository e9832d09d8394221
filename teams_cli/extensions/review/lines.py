"""Dangers that are seen in a line: trust in strangers, and foreign text in pages, queries and commands."""

from __future__ import annotations

import re

from teams_cli.extensions.review import kinds
from teams_cli.extensions.review.change import content
from teams_cli.extensions.review.findings import NOTE, SERIOUS, WARNING, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Row = tuple[re.Pattern[str], str, str, str]

_TRUST = "anybody in between can read and change the traffic"
_PYTHON: tuple[Row, ...] = (
    (re.compile(r"\.verify\s*=\s*False|\bverify_ssl\s*=\s*False|\bssl\s*=\s*False"), SERIOUS, "no-verify", _TRUST),
    (re.compile(r"\bcheck_hostname\s*=\s*False|=\s*ssl\.CERT_NONE|\(ssl\.CERT_NONE"), SERIOUS, "no-verify", _TRUST),
    (re.compile(r"[\"']verify_signature[\"']\s*:\s*False"), SERIOUS, "no-verify", "anybody can make such a token"),
    (re.compile(r"^DEBUG\s*=\s*True\b"), NOTE, "debug", "errors show the program's inside to everybody"),
)
_SCRIPT: tuple[Row, ...] = (
    (
        re.compile(r"\brejectUnauthorized\s*:\s*false|NODE_TLS_REJECT_UNAUTHORIZED['\"\]]*\s*=\s*['\"]?0"),
        SERIOUS,
        "no-verify",
        _TRUST,
    ),
    (
        re.compile(
            r"\.(inner|outer)HTML\s*\+?=(?!=)\s*(?!['\"`][^$+]*['\"`]\s*;?\s*$)"
            r"|\.insertAdjacentHTML\([^,]*,\s*(?!['\"`][^$+]*['\"`]\s*\))"
        ),
        WARNING,
        "inner-html",
        "what users enter becomes part of the page",
    ),
    (re.compile(r"\bdocument\.write(ln)?\("), WARNING, "document-write", "what users enter becomes part of the page"),
    (
        re.compile(r"\b(exec|execSync)\(\s*(`[^`]*\$\{|[\"'][^\"']*[\"']\s*\+)"),
        SERIOUS,
        "command",
        "whoever can choose a part of the command runs any",
    ),
    (
        re.compile(
            r"(?i)(`\s*(select|insert|update|delete)\b[^`]*\$\{|[\"']\s*(select|insert|update|delete)\b[^\"']*[\"']\s*\+)"
        ),
        SERIOUS,
        "sql",
        "whoever can choose a part of the query runs any; give parameters",
    ),
    (
        re.compile(r"(?i)\b\w*(token|secret|passw|nonce|salt|session|otp)\w*\s*[:=][^=].*\bMath\.random\("),
        WARNING,
        "random",
        "it can be foreseen; use crypto",
    ),
)


def check(tree: str, paths: list[str]) -> Iterator[Finding]:
    """Lines of Python, JavaScript and TypeScript that no linter here knows; tests may do such things."""
    for path in paths:
        rows = _PYTHON if kinds.is_python(path) else _SCRIPT
        for number, line in enumerate([] if kinds.is_test(path) else content(tree, path).splitlines(), 1):
            if line.lstrip().startswith(("#", "//", "*")):
                continue
            for pattern, weight, rule, why in rows:
                if found := pattern.search(line):
                    yield Finding(weight, path, number, f"`{found[0].strip()[:60]}`: {why}", rule)
