"""The README: the commands that CI runs, and the instructions that every agent reads. tests/docs runs its
transcripts.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tests.docs.pages import blocks, text_of

CI = [line.strip() for line in (Path(__file__).parents[2] / ".ci" / "run").read_text(encoding="utf-8").splitlines()]


def test_an_agent_is_told_in_few_words_how_to_begin() -> None:
    """Every agent reads the instructions, so they may not grow."""
    section = text_of("README.md").partition("## For agents")[2].partition("\n## ")[0]
    instructions = " ".join(re.findall(r"^> (.*)$", section, re.MULTILINE))
    assert 0 < len(instructions) < 665
    assert all(f"`teams {word}" in instructions for word in ("join-team", "spawn-team", "update-task", "wait", "help"))


def test_ci_runs_the_two_commands_of_the_readme() -> None:
    commands = [command for block in blocks(text_of("README.md"), "sh") for command in block.strip().splitlines()]
    assert len(commands) == 2
    for command in commands:
        assert command in CI


def test_the_distribution_is_run_by_its_name_too() -> None:
    """`uvx NAME` and `pipx run NAME` need a command with the name of the distribution."""
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    assert project["scripts"] == dict.fromkeys(["teams", project["name"]], "teams_cli.__main__:main")
    assert project["name"] in text_of("README.md") and project["name"] not in ("teams", "teams-cli")


def test_it_warns_of_other_programs_of_that_name() -> None:
    assert "Do not install `teams` or `teams-cli` from PyPI" in " ".join(text_of("README.md").split())
