"""Commands on the team of a repository."""

from __future__ import annotations

from teams_cli.commands.declaration import Command, option, table

_UP = """Make or resume the team of this repository, as its `teams.yaml` says: it lies here, or above up to the top.

In it: name; members, a list of name, role, harness, model, worktree, permissions, prompt; rules; pages, KEY: TEXT;
tasks as of a workflow, or workflow, the file of one. Members with a harness are started, the others are expected.
What `.claude/agents/*.md` say of an agent or a role they are told. What is there already stays.
It takes several steps: broken off, repeat it, and it goes on.

Raises:
    InvalidValue: The file is not valid; names everything that is wrong.
    NotFound: There is no such file.
    NotAllowed: The caller does not lead the team.
"""
_DOWN = """End the team of this repository: its agents are stopped, their tasks are free, the team is closed.

Nothing is lost: `teams up` goes on with it. Clients that were opened with --detach end, unless somebody looks.

Raises:
    TeamNotFound: It was never brought up.
    Conflict: An agent did not end in time.
    NotAllowed: The caller does not lead the team.
"""
_FILE = option("--file", "The file, instead of `teams.yaml` here or above.", metavar="FILE")

COMMANDS = table(
    "Teams",
    Command(
        "up",
        "commands.runners.rosters:up",
        _FILE,
        doc=_UP,
        at_shell=True,
        repeatable=True,
        words="rosters:risen",
        example="up",
        also="start-team bring-up",
    ),
    Command(
        "down",
        "commands.runners.rosters:down",
        _FILE,
        doc=_DOWN,
        at_shell=True,
        repeatable=True,
        words="rosters:ended",
        example="down",
        also="stop-team bring-down",
    ),
)
