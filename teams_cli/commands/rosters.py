"""Commands on the team of a repository."""

from __future__ import annotations

from teams_cli.commands.declaration import Command, option, table

_UP = """Create or resume the team of this repository from its `teams.yaml`, here or in a directory above.

Its keys are: name; members, a list of name, role, harness, model, worktree, permissions, prompt; rules; pages,
KEY: TEXT; tasks as in a workflow, or workflow, its file. Members with a harness are started, the others are
expected. Agents are given what `.claude/agents/*.md` says about them or their role. Existing tasks and pages
stay. If it is interrupted, repeat it.

Raises:
    InvalidValue: The file is not valid; the error names every fault.
    NotFound: There is no such file.
    NotAllowed: You do not lead the team.
"""
_DOWN = """Close the team of this repository: its agents are stopped and their tasks released.

Nothing is lost: `teams up` resumes it. Clients opened with --detach end, unless somebody looks at them.

Raises:
    TeamNotFound: It was never brought up.
    Conflict: An agent did not end in time.
    NotAllowed: You do not lead the team.
"""
_FILE = option("--file", "The file, instead of the nearest `teams.yaml`.", metavar="FILE")

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
