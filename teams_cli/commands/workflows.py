"""Commands on workflows."""

from __future__ import annotations

from teams_cli.clients import permissions as levels
from teams_cli.commands.declaration import Command, argument, option, switch, table

_RUN = """Run a workflow: spawn a team, create its tasks, start workers that claim and do them, and report.

WORKFLOW is a file, or the name of one that `teams list-workflows` lists. Workers run each task's command for real, in
the directory that the variable `repo` says (here, unless given). The report goes to standard output and to a file.
Ctrl-C ends the workers and keeps the state; --resume finishes the rest, and tries again what failed, as the workflow
was when the run began.

Raises:
    TaskFailed: A task failed, or was not run because of one that did; the report says which.
    InvalidValue: The workflow or a variable is wrong, or the agents are too few; nothing was changed.
    NotFound: There is no such workflow.
    AlreadyExists: There is a team of that name, or its run is going on.
"""
_LIST = """List the workflows that come with the program and those in ./workflows: name, description, pattern, path.

One that is wrong is named on standard error, and the others are listed.
"""
_CHECK = """Check a workflow without running it: form, names that lead nowhere, circles, skills that nobody has.

What is wrong is named with its line and field: first the form, then names, circles and skills.

The front matter has:

* name, description, pattern: the last is leader, swarm, pipeline or council.

* settings: NAME: VALUE, for the team. check: a command that sees, before anything is made, whether workers can do it;
what it says when it fails is the reason. attempts: how often a task that comes back is tried, 3.

* tasks: a list of id, title, description, blockedBy, require, priority, run, prompt, each, planRequired, attempts.
What is in `run`, `sh` runs; agents with a model do what `prompt` says.

* variables: NAME: DEFAULT, or NAME: {default, description}; they are in the environment of the commands.

* agents: a number, or a list of name, role, type, count; and harness, model, permissions, cwd, worktree, answer, where
these are not those of the run. roles: NAME: {extends, skill, description, allow, deny}.

* needs: a list, of git-checkout. broadcast: a text to all workers. synthesize: {run, prompt, verdict}, done by
the leader: with a model by the prompt, never by `run`; verdict is a regular expression that finds it in the answer.

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
        option("--var", "Give a variable of the workflow a value.", metavar="NAME=VALUE", many=True),
        option("--agents", "How many workers, instead of what the workflow says.", type=int, metavar="N"),
        option("--report", "The file for the report, instead of one below the root.", metavar="FILE"),
        switch("--resume", "Finish a run that was interrupted or failed."),
        option("--harness", "What the workers are.", default="shell"),
        option("--model", "The model that their client shall take.", metavar="MODEL"),
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
