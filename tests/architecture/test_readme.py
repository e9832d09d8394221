"""Every command of the README and of the pages in `docs` does what is said of it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import server
from tests.support import postgres

CHECKOUT = Path(__file__).parents[2]
PAGES = ["README.md", *(f"docs/{name}.md" for name in ("disk", "commands", "agents", "mcp", "questions", "http"))]
PAGES += ["docs/workflows.md", "docs/landing.md", "docs/postgres.md"]
"""In the order in which their transcripts follow on each other."""
OTHERS = ["README.md", "CONTRIBUTING.md", "SECURITY.md"]
README, *_ = TEXTS = [(CHECKOUT / page).read_text(encoding="utf-8") for page in PAGES]
COMMANDS = TEXTS[PAGES.index("docs/commands.md")]
CI = (CHECKOUT / ".ci" / "run").read_text(encoding="utf-8")


def blocks(language, *texts):
    """What is fenced as that language, on all pages unless some are given."""
    pattern = re.compile(rf"^```{language}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [block for text in texts or TEXTS for block in pattern.findall(text)]


def steps(block):
    """The commands of a transcript, each with the lines that it shows."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def as_pattern(lines):
    """The expected output; `…` stands for anything, alone on a line for any lines."""
    return "\n".join(re.escape(line).replace("…", ".*?") if line != "…" else r"(?s:.*?)" for line in lines)


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """One bash that keeps what it is told, with a `teams` and a home of its own."""
    home = tmp_path_factory.mktemp("readme")
    command = home / "bin" / "teams"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m teams_cli "$@"\n')
    command.chmod(0o755)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TEAMS_", "OPENCODE_", "XDG_"))}
    env.update(HOME=str(home), PATH=f"{command.parent}:{env['PATH']}")
    with subprocess.Popen(
        ["bash"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=env,
        cwd=CHECKOUT,
    ) as process:
        yield process
        process.stdin.write("kill $(jobs -p)\n")
        process.stdin.close()


def run(shell, command):
    shell.stdin.write(f"{command}\n__status=$?; echo; echo __end__; (exit $__status)\n")
    shell.stdin.flush()
    lines = []
    while (line := shell.stdout.readline()) and line != "__end__\n":
        lines.append(line.rstrip("\n"))
    return "\n".join(lines).strip("\n")


@pytest.mark.slow
def test_the_transcripts_are_true(shell):
    """All `console` blocks in order, in one shell, line by line; those on a database where there is a server."""
    for block in blocks("console"):
        if "$DATABASE" in block:
            if postgres.missing() and not os.environ.get("REQUIRE_POSTGRES"):
                print(f"not tried: the transcript on a database: {postgres.missing()}")
                continue
            name = f"readme_{os.urandom(6).hex()}"
            assert server().psql(f"CREATE DATABASE {name}").returncode == 0
            run(shell, f"export DATABASE='{server().address(name)}'")
        for command, expected in steps(block):
            shown = run(shell, command)
            assert re.fullmatch(as_pattern(expected), shown), f"$ {command}\n{shown}"


def test_the_workflow_is_one(shell, tmp_path):
    (text,) = blocks("yaml")
    (tmp_path / "release.md").write_text(text)
    assert run(shell, f"teams check-workflow {tmp_path}/release.md").startswith("release: ")


def test_ci_runs_the_two_commands_of_the_readme():
    for block in blocks("sh", README):
        for command in block.strip().splitlines():
            assert command in map(str.strip, CI.splitlines()), command


def test_every_command_is_in_the_readme():
    from teams_cli import commands

    for group, found in commands.groups().items():
        row = next(line for line in COMMANDS.splitlines() if line.startswith(f"| {group} |"))
        assert re.findall(r"`([a-z-]+)`", row) == [command.name for command in found]


def test_every_exit_status_is_in_the_readme():
    from teams_cli import errors

    statuses = {kind.status for kind in errors.kinds().values()} | {0, 3, 130}
    table = COMMANDS[COMMANDS.index("| status | meaning |") :]
    assert {int(n) for n in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)} == statuses


def test_links_lead_somewhere():
    """Those to files of the project, and to headings of these."""
    for page in [*(f"docs/{path.name}" for path in (CHECKOUT / "docs").glob("*.md")), *OTHERS]:
        follow(page)


def follow(page):
    text = (CHECKOUT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
        path, _, heading = target.partition("#")
        found = (CHECKOUT / page).parent / path if path else CHECKOUT / page
        assert found.exists(), f"{page}: {target}"
        if heading:
            titles = re.findall(r"^#+ (.*)$", found.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = [re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles]
            assert heading in anchors, f"{page}: {target}"


def test_every_page_is_reached_from_the_readme():
    texts = [*TEXTS, (CHECKOUT / "CONTRIBUTING.md").read_text(encoding="utf-8")]
    for page in sorted((CHECKOUT / "docs").glob("*.md")):
        assert any(f"({name}" in text for text in texts for name in (f"docs/{page.name}", page.name)), page
