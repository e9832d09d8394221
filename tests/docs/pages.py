"""The pages of the documentation, and a shell that runs their commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
DOCS = CHECKOUT / "docs"
GENERATED = ("docs/commands.md", "docs/settings.md")
"""Pages that docs/generate.py writes from the program's help."""
PAGES = ["README.md", *sorted(str(page.relative_to(CHECKOUT)) for page in DOCS.rglob("*.md"))]
OTHERS = ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
STAND_INS = Path(__file__).parent / "stand_ins"
"""Programs that stand for clients and for services on the network."""
REPOSITORY = """
git init -q -b main app && cd app && git config user.name you && git config user.email you@example.org
echo "# App" >README.md && git add . && git commit -q -m first
echo "An application." >>README.md && git commit -q -a -m second
"""

_END = """
if [ -e ~/.config/opencode/opencode-teams/teams/*/sessions ]; then
    unset TEAMS_AGENT_ID TEAMS_STORE
    teams discover-teams --json | jq -r '.[].name' | xargs -I NAME teams close-team --force --team NAME --as human
fi
kill $(jobs -p); wait
"""
"""Commands that end started agents together with their team."""


def text_of(page: str) -> str:
    return (CHECKOUT / page).read_text(encoding="utf-8")


def blocks(text: str, *languages: str) -> list[str]:
    """Return the fenced blocks in one of these languages, in order."""
    pattern = re.compile(rf"^```(?:{'|'.join(languages)})\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return pattern.findall(text)


def steps(block: str) -> list[tuple[str, list[str]]]:
    """Return the commands of a transcript, each with the lines that it shows. `> ` continues a command."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> ") and not found[-1][1]:
            found[-1] = f"{found[-1][0]}\n{line[2:]}", []
        else:
            found[-1][1].append(line)
    return found


def is_shown(lines: list[str], output: str) -> bool:
    """Whether the output is what the page shows. `…` stands for anything on a line, and alone on a line for any lines
    or none. The seconds of a check are left out, which an answer names if there was at least one.
    """
    output = re.sub(r"(its check passed) in \d+ s", r"\1", output)
    ends = [re.escape(f"{line}\n").replace("…", ".*?") if line != "…" else r"(?s:.*?)" for line in lines]
    return re.fullmatch("".join(ends), f"{output}\n" if output else "") is not None


class Shell:
    """A bash in a git repository, with `teams`, programs that stand for clients, and a home of its own."""

    def __init__(self, home: Path, *stand_ins: Path, **variables: str) -> None:
        bin_directory = home / "bin"
        bin_directory.mkdir()
        teams = bin_directory / "teams"
        teams.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m teams_cli "$@"\n')
        teams.chmod(0o755)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("TEAMS_", "OPENCODE_", "XDG_"))}
        path = ":".join(map(str, [bin_directory, *stand_ins, STAND_INS, kept["PATH"]]))
        environ = {**kept, "HOME": str(home), "PATH": path, "PYTHONPATH": str(CHECKOUT), **variables}
        self._process = subprocess.Popen(
            ["bash"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environ,
            cwd=home,
        )
        assert self.run(REPOSITORY) == ("", 0)

    def run(self, command: str) -> tuple[str, int]:
        """Return the output of a command, and its exit status."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"{command}\n__status=$?; echo; echo __end__ $__status; (exit $__status)\n")
        self._process.stdin.flush()
        lines = []
        while (line := self._process.stdout.readline()) and not line.startswith("__end__ "):
            lines.append(line.rstrip("\n"))
        status = int(line.split()[1]) if line else -1  # -1: the command ended the shell
        return "\n".join(lines).strip("\n"), status

    def close(self) -> None:
        """End the shell and all processes that it left running."""
        if self._process.poll() is None:
            self.run(_END)
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
