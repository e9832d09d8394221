"""Small branches that touch nothing in common, tried together: each is merged onto the one before, the last is checked,
and the branch takes all of them or none. When that is red they are tried one by one.
"""

from __future__ import annotations

from teams_cli.agents import git, merging
from teams_cli.extensions.landing import progress, trials
from teams_cli.store.contract import Store
from teams_cli.tasks.checks import Check
from teams_cli.tasks.landings import Landing
from teams_cli.teams import settings
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SETTING = "landingTogether"
_SMALL = 20
"""Files that a small branch changes at most."""


def group(team: Team, queue: list[Landing], apart: set[str]) -> list[Landing]:
    """Those at the head of the queue that may be tried together; none where it is not more than one. What did not pass
    so is tried *apart*.
    """
    most, found = int(settings.value(team, SETTING)), list[Landing]()
    taken: set[str] = set()
    for landing in queue if most > 1 else []:
        if len(found) == most or landing.id in apart or not _may_join(landing, queue[0]):
            break
        touched = _touched(landing)
        if not 0 < len(touched) <= _SMALL or touched & taken:
            break
        taken |= touched
        found.append(landing)
    return found if len(found) > 1 else []


def _may_join(landing: Landing, first: Landing) -> bool:
    begun = landing.over or landing.merge is not None or landing.via == "pr"
    return not begun and (landing.repository, landing.onto) == (first.repository, first.onto)


def _touched(landing: Landing) -> set[str]:
    """The files that it changes."""
    between = f"refs/heads/{landing.onto}...{landing.head}"
    printed = git.run(landing.repository, "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", between).stdout
    return set(printed.split("\0")) - {""}


def step(store: Store, team: Team, group: list[Landing], environ: Mapping[str, str]) -> bool:
    """Land them all at once; False where they have to be tried one by one."""
    first = group[0]
    repository, onto = first.repository, first.onto
    base = merging.tip(repository, onto)
    commits = _merged(team, group, base) if base else []
    checkout = merging.checked_out(repository, onto)
    if not commits or (checkout and merging.in_the_way(checkout, base, commits[-1])):
        return False
    wanted = [trials.commands(store, team, landing) for landing in group]
    group = [progress.begun(store, team, *each) for each in zip(group, [base] * len(group), wanted, strict=True)]
    every = list(dict.fromkeys(command for commands in wanted for command in commands))
    found = trials.tried(store, team, first, commits[-1], every, environ)
    if not all(check.passed for check in found) or (checkout and merging.in_the_way(checkout, base, commits[-1])):
        return False
    results = [_last(found, commands) for commands in wanted]
    group = [
        progress.about_to_move(store, team, landing, commit, check.to_json() if check else None)
        for landing, commit, check in zip(group, commits, results, strict=True)
    ]
    if merging.move(repository, onto, base, commits[-1], f"teams: {', '.join(one.id for one in group)}"):
        if checkout:
            merging.follow(checkout, base, commits[-1])
        for landing, commit in zip(group, commits, strict=True):
            progress.landed(store, team, landing, commit, checkout)
    return True


def _merged(team: Team, group: list[Landing], base: str) -> list[str]:
    """The commits, each of which has one landing more; none where they don't fit, or one is there already."""
    commits = [base]
    for landing in group:
        if merging.holds(landing.repository, base, landing.head):
            return []
        try:
            commits.append(merging.merged(landing.repository, commits[-1], landing.head, landing.words(team.name)))
        except merging.Clash:
            return []
    return commits[1:]


def _last(found: list[Check], commands: list[str]) -> Check | None:
    """What came of the last of the commands."""
    return next((check for check in reversed(found) if check.command in commands), None)
