"""Commands on workflows."""

from __future__ import annotations

from teams_cli.clients import permissions as levels
from teams_cli.commands.declaration import Command, argument, option, switch, table

_RUN = """Run a workflow: create a team and its tasks, start workers that do them, and report.

WORKFLOW is a file, or a name from `teams list-workflows`. Workers really run the commands of tasks, in the
directory of the variable `repo` (here, unless given). The report goes to standard output and to a file. Ctrl-C
ends the workers and keeps the state; --resume finishes the rest and retries failed tasks, with the workflow as
it was at the start.

Raises:
    TaskFailed: A task failed, or was not run because another failed; the report says which.
    InvalidValue: The workflow or a variable is wrong, or the agents are too few; nothing was changed.
    NotFound: There is no such workflow.
    AlreadyExists: A team has that name, or its run goes on.
"""
_LIST = """List the workflows of the program and those in ./workflows: name, description, pattern, path.

An invalid one is named on standard error.
"""
_CHECK = """Check a workflow without running it: its form, unknown names, cycles, and skills that nobody has.

The error names the line and field of each fault.

The front matter has:

* name, description, pattern: the last is leader, swarm, pipeline or council.

* settings: NAME: VALUE, for the team. check: a command that must pass before anything is created; its output is
the reason. attempts: how often a failed task is tried, 3.

* tasks: a list of id, title, description, blockedBy, require, priority, run, prompt, each, planRequired,
attempts. `sh` runs the text of `run`; agents with a model follow `prompt`.

* variables: NAME: DEFAULT, or NAME: {default, description}; the environment of the commands has them.

* agents: a number, or a list of name, role, type, count; and harness, model, permissions, cwd, worktree,
answer, to override those of the run. roles: NAME: {extends, skill, description, allow, deny}.

* needs: a list, of git-checkout. broadcast: a text to all workers. synthesize: {run, prompt, verdict}, done by
the leader. With a model it follows the prompt, never `run`; verdict is a regular expression that finds it in
the answer.

Raises:
    InvalidValue: Something is wrong.
    NotFound: There is no such workflow.
"""

COMMANDS = table(
    "Workflows",
    Command(
        "run",
        "commands.runners.workflows:run",
        argument("WORKFLOW", "A workflow file, or the name of one.", name="workflow", required=False),
        option("--var", "Set a variable of the workflow.", metavar="NAME=VALUE", many=True),
        option("--agents", "The number of workers, instead of the workflow's.", type=int, metavar="N"),
        option("--report", "The file for the report, instead of one in the data directory.", metavar="FILE"),
        switch("--resume", "Finish a run that was interrupted or failed."),
        option("--harness", "The client of the workers.", default="shell"),
        option("--model", "The model for their client.", metavar="MODEL"),
        option("--permissions", levels.HELP, choices=levels.LEVELS, metavar="LEVEL"),
        doc=_RUN,
        changes=False,
        at_shell=True,
        words="workflows:run",
        example="run code-review",
        also="run-workflow start-workflow workflow",
    ),
    Command(
        "list-workflows",
        "commands.runners.workflows:list_workflows",
        doc=_LIST,
        in_team=False,
        changes=False,
        at_shell=True,
        words="workflows:workflows",
        example="list-workflows",
        also="workflows",
    ),
    Command(
        "check-workflow",
        "commands.runners.workflows:check",
        argument("FILE", "A workflow file, or the name of one.", name="workflow"),
        doc=_CHECK,
        in_team=False,
        changes=False,
        at_shell=True,
        words="workflows:checked",
        example="check-workflow release.md",
        also="validate-workflow validate lint",
    ),
)
