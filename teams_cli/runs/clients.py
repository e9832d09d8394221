"""The clients that a run is to start: whether they are there and can start, found out before anything is changed."""

from __future__ import annotations

import os
import subprocess
from shutil import which

from teams_cli import errors
from teams_cli.clients import known, permissions, profiles
from teams_cli.clients.profiles import Profile
from teams_cli.runs.runs import SHELL, Assigned, Run
from teams_cli.workflows.model import REPO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.runs.surroundings import Surroundings
    from teams_cli.teams.config import Config

_PATIENCE = 60.0


def refuse_missing(run: Run, config: Config | None, surroundings: Surroundings) -> None:
    """See that every client of the run is there and can start, with the model and in the directory that it is given.

    Raises:
        InvalidValue: One is not, or there is no such harness; says which agents it was for.
    """
    for name in run.harnesses:
        profile = profiles.get(name, config)
        if name != SHELL:
            _refuse_absent(profile, surroundings)
    for agent in run.agents:
        profile = profiles.get(run.harness_of(agent), config)
        if profile.name == SHELL:
            _refuse_idle(agent)
        if (model := agent.model or run.model) and profile.name != SHELL:
            profiles.refuse_model(profile, model)
        level = agent.permissions or run.permissions
        if level and profile.name != SHELL:
            permissions.refuse_missing(profile, level)
        place = os.path.join(run.variables[REPO], agent.cwd or "")
        if not os.path.isdir(place):
            raise errors.InvalidValue(
                f"{agent.name} can't work in {place}: there is no such directory", "Change its `cwd`."
            )


def _refuse_idle(agent: Assigned) -> None:
    """Raises InvalidValue: It only runs commands, and the workflow says something that changes nothing of these."""
    for key, value in (("model", agent.model), ("permissions", agent.permissions), ("worktree", agent.worktree)):
        if value:
            raise errors.InvalidValue(
                f"{agent.name} only runs commands, so its `{key}` changes nothing",
                f"Say its `harness`, start the run with --harness, or leave out `{key}`.",
            )


def _refuse_absent(profile: Profile, surroundings: Surroundings) -> None:
    name = profile.start[0]
    program = which(name, path=surroundings.environ.get("PATH"))
    if program is None:
        raise errors.InvalidValue(
            f"the program {name} of the harness {profile.name} is not on PATH",
            "Install it, or choose another with --harness. Nothing was changed.",
        )
    if profile.name in known.names():  # others need not know --version
        _refuse_broken(profile, program, surroundings)


def _refuse_broken(profile: Profile, program: str, surroundings: Surroundings) -> None:
    environ = profile.environment(surroundings.environ, {})
    try:
        done = subprocess.run(
            [program, "--version"], env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise errors.InvalidValue(f"{profile.start[0]} can't be started: {error}", _TRY) from None
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        why = said[-1] if said else f"exit status {done.returncode}"
        raise errors.InvalidValue(f"{profile.start[0]} can't be started: {why}", _TRY)


_TRY = "Try it by hand; nothing was changed."
