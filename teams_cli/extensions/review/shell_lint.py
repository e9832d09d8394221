"""Shell scripts by shellcheck, and what is dangerous in them."""

from __future__ import annotations

import os
import re
import subprocess

from teams_cli.extensions.review import kinds, tools
from teams_cli.extensions.review.change import content
from teams_cli.extensions.review.findings import NOTE, SERIOUS, WARNING, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_LEFT_OUT = (
    "SC1090",
    "SC1091",
    "SC2148",
    "SC2155",
    "SC2034",
    "SC2207",
    "SC2178",
    "SC2120",
    "SC2128",
    "SC2046",
)
_TASTE = ("info", "style")
_FRAGILE = ("SC2045", "SC2068")
"""What shellcheck calls an error, and goes well with most names."""
_READS_IN = re.compile(r".*(^|[\s;&|])(\.|source|eval)\s")
_DESTROYS = re.compile(r"\b(rm|mv|cp|chmod|chown|rsync|dd)\b")
_DANGERS = (
    (
        re.compile(r"\b(curl|wget)\b[^|;#]*\|\s*(sudo\s+)?(ba|z|da)?sh\b"),
        SERIOUS,
        "curl-sh",
        "runs what a server sends",
    ),
    (re.compile(r"\bchmod\s+(-\w+\s+)*(0?777|a\+rwx|o\+w)\b"), WARNING, "chmod-777", "lets everybody change it"),
    (
        re.compile(r"\b(curl\b[^|;]*\s(-k|--insecure)\b|wget\b[^|;]*--no-check-certificate)"),
        SERIOUS,
        "insecure",
        "does not look whose server it is",
    ),
    (re.compile(r"(^|[;&|]\s*)eval\s+[^;]*\$"), SERIOUS, "eval", "runs whatever the variable holds"),
    (re.compile(r">\s*/tmp/[\w.-]+(\s|$|\$\$)"), NOTE, "temp-name", "others can foresee the name; use mktemp"),
)


def syntax(tree: str, paths: list[str]) -> Iterator[Finding]:
    """Scripts that the shell can't read."""
    for path in paths:
        shell = tools.own(kinds.interpreter(path, tree)) or tools.own("bash") or tools.own("sh")
        if shell and os.path.basename(shell) in ("sh", "bash", "dash", "ksh"):
            done = subprocess.run(
                [shell, "-n", "--", path], cwd=tree, stdin=subprocess.DEVNULL, capture_output=True, timeout=30
            )
            if done.returncode:
                said = done.stderr.decode(errors="replace").strip().splitlines()
                first = said[0].partition(f"{path}:")[2] if said else "syntax error"
                line = re.search(r"(?:line )?(\d+)", first)
                what = re.sub(r"^\s*(line )?\d+:\s*", "", first)
                yield Finding(
                    SERIOUS, path, int(line[1]) if line else 0, f"the shell says: {what}", "syntax", anywhere=True
                )


def check(tree: str, paths: list[str]) -> Iterator[Finding]:
    """What shellcheck calls an error or a warning, less what is taste."""
    program = tools.own("shellcheck")
    if not program or not paths:
        return
    words = [program, "--norc", "--format=json", "--shell=bash"]
    plain = [path for path in paths if not kinds.interpreter(path, tree)]
    for more, some in (([], [path for path in paths if path not in plain]), (words[-1:], plain)):
        for rows in tools.answers([*words[:-1], *more], some, tree) if some else []:
            for row in rows:
                if found := _finding(row, tree):
                    yield found


def _finding(row: dict[str, Any], tree: str) -> Finding | None:
    code, path, number = f"SC{row['code']}", row["file"], row["line"]
    lines = content(tree, path).splitlines()
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    destroys = code == "SC2086" and _DESTROYS.search(line)
    if code in _LEFT_OUT or (row["level"] in _TASTE and not destroys) or row["code"] < 2000:
        return None
    if (
        code == "SC2154" and "did you mean" not in row["message"]
    ):  # it may be set where this is read in, or by what it reads
        alone = lines[0].startswith("#!") and not any(_READS_IN.match(each) for each in lines)
        return Finding(NOTE, path, number, row["message"], code) if alone else None
    weight = SERIOUS if (row["level"] == "error" and code not in _FRAGILE) or code == "SC2115" else WARNING
    return Finding(weight, path, number, row["message"], code)


def dangers(tree: str, paths: list[str]) -> Iterator[Finding]:
    """Lines that hand the machine to others."""
    for path in paths:
        for number, line in enumerate(content(tree, path).splitlines(), 1):
            if not line.lstrip().startswith("#"):
                for pattern, weight, rule, why in _DANGERS:
                    if (found := pattern.search(line)) and not (rule == "temp-name" and kinds.has_commands(path)):
                        yield Finding(weight, path, number, f"`{found[0].strip()[:60]}` {why}", rule)
