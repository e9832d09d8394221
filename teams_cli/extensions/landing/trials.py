"""Tries merges: checks out the merge commit in a temporary checkout, and runs the checks there."""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations

from teams_cli import errors
from teams_cli.agents import checking, checkouts, git, merging, trees
from teams_cli.agents.checking import Workplace
from teams_cli.agents.regions import Snapshots
from teams_cli.extensions.landing import outcomes
from teams_cli.names import SYSTEM
from teams_cli.store.contract import Store
from teams_cli.store.files import disk
from teams_cli.tasks import landings, tasks
from teams_cli.tasks.checks import Check
from teams_cli.tasks.landings import LANDING, Landing
from teams_cli.tasks.tasks import FINISHED, TASK, Task
from teams_cli.teams import history, settings, teams
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def trial_commands(store: Store, team: Team, landing: Landing) -> list[str]:
    """Return the commands that the merge must pass: the check of the task, and the setting `landingCheck`."""
    own = tasks.get(store, team.name, landing.task).check
    of_all = str(settings.value(team, "landingCheck"))
    return list(dict.fromkeys(command for command in (own, of_all) if command))


def tried(
    store: Store, team: Team, landing: Landing, commit: str, wanted: list[str], environ: Mapping[str, str]
) -> list[Check]:
    """Run the commands on a commit, up to the first that fails. Return their results."""
    if not wanted:
        return []
    path = place_of(store, team.name, landing)
    with trees.tree(team, landing.repository, commit, path, environ, "nothing was tried") as lacking:
        results: list[Check] = []
        for command in wanted:
            check = checking.run(store, team, command, Workplace(path, environ), SYSTEM)
            output = check.output if check.passed or not lacking else f"{check.output}\n{lacking}"
            results.append(check.having(commit=commit, directory=None, output=output))
            if not check.passed:
                break
        return results


def clear_left(store: Store, team: str) -> None:
    """Remove the checkouts of trials that were killed. The caller holds the lander's lock."""
    directory = f"{store.root}/worktrees/{team}"
    for name in disk.names_in(directory):
        if name.startswith(f".{LANDING.name}-"):
            with suppress(errors.TeamsError):
                trees.clear(landings.get(store, team, name.removeprefix(".")).repository, f"{directory}/{name}")


def place_of(store: Store, team: str, landing: Landing) -> str:
    """Return the directory of the landing's trial checkout."""
    return f"{store.root}/worktrees/{team}/.{landing.id}"


_COMPARED = 12
"""The number of landings at the head of the queue that are compared with one another."""
_MOST_OVERTAKEN = 3
"""A landing goes first once this many other landings, which are behind it by priority and age, ended before it."""


def in_order(store: Store, team: Team, queue: list[Landing], conflicting: dict[tuple[str, str], bool]) -> list[Landing]:
    """Return the queue in the order of trials: landings that conflict with the fewest others go first.

    Priority and age decide between equals, or alone if the setting `landingOrder` is `priority`. A landing that was
    overtaken too often goes before the others. *conflicting* caches the compared pairs of commits.
    """
    waiting = [one for one in queue if not (one.over or one.merge)]
    if len(waiting) < 2 or settings.value(team, "landingOrder") == "priority":
        return queue
    counts = dict.fromkeys((one.id for one in waiting), _COMPARED)
    counts.update((one.id, 0) for one in waiting[:_COMPARED])
    for one, other in combinations(waiting[:_COMPARED], 2):
        if (one.repository, one.onto) == (other.repository, other.onto):
            pair = (one.head, other.head)
            if pair not in conflicting:
                with Snapshots(checkouts.repository_of(one.repository)[1]) as shot:
                    conflicting[pair] = bool(shot.conflicts(one.repository, *pair))
            counts[one.id] += conflicting[pair]
            counts[other.id] += conflicting[pair]
    if any(counts.values()):
        ended = [one for one in landings.all_of(store, team.name, []) if one.over]
        counts.update((one.id, -1) for one in waiting if _overtaken(one, ended) >= _MOST_OVERTAKEN)
    return sorted(queue, key=lambda one: counts.get(one.id, -1))


def _overtaken(landing: Landing, ended: list[Landing]) -> int:
    """Return how many of the *ended* landings are behind this landing by priority and age, but ended while it
    waited.
    """
    turn = landings.turn(landing)[1:]
    return sum(landings.turn(one)[1:] > turn and (one.ended_at or "") > landing.created_at for one in ended)


def repair_of_tip(
    store: Store, team: Team, landing: Landing, base: str, command: str, environ: Mapping[str, str]
) -> str:
    """Return the id of the task to repair the target branch, if the branch's tip *base* also fails *command*.

    The task is created unless an unfinished one exists. Return "" if the tip passes, or if the landing is the repair
    itself.
    """
    every = landings.all_of(store, team.name, [])
    if any(one.merge == base and one.result and one.result.passed and command in (one.check or "") for one in every):
        return ""
    title = f"Repair {landing.onto}: `{' '.join(command.split())[:200]}` fails there"
    if landing.title == title or tried(store, team, landing, base, [command], environ)[0].passed:
        return ""
    for task in tasks.all_of(store, team.name, []):
        if task.title == title and task.status not in FINISHED:
            return task.id
    now = teams.now(store)
    draft = Task(team_name=team.name, title=title, priority="high", created_at=now, updated_at=now)
    draft = draft.having(check=command, check_from=landing.repository, description=f"Its commit is {base}.")
    task, _ = store.create(team.name, TASK, None, draft)
    history.note(store, team.name, SYSTEM, "task created", task=task.id, title=title)
    return task.id


SETTING = "landingTogether"
_SMALL = 20
"""The most files that a small branch changes."""


def group(team: Team, queue: list[Landing], apart: set[str]) -> list[Landing]:
    """Return the landings at the head of the queue to try together; an empty list if there are fewer than two.

    *apart* has the ids of landings that failed in a group and must be tried alone.
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
    """Return the files that a landing changes."""
    between = f"refs/heads/{landing.onto}...{landing.head}"
    printed = git.run(landing.repository, "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", between).stdout
    return set(printed.split("\0")) - {""}


def step(store: Store, team: Team, group: list[Landing], environ: Mapping[str, str]) -> bool:
    """Try the landings of the group together, and land all of them if the checks pass. Return False if they must be
    tried one by one.
    """
    first = group[0]
    repository, onto = first.repository, first.onto
    base = merging.tip_of(repository, onto)
    commits = _merged(team, group, base) if base else []
    checkout = merging.checked_out(repository, onto)
    if not commits or (checkout and merging.in_the_way(checkout, base, commits[-1])):
        return False
    wanted = [trial_commands(store, team, landing) for landing in group]
    group = [outcomes.begun(store, team, *each) for each in zip(group, [base] * len(group), wanted, strict=True)]
    every = list(dict.fromkeys(command for commands in wanted for command in commands))
    results_of_all = tried(store, team, first, commits[-1], every, environ)
    if not all(check.passed for check in results_of_all) or (
        checkout and merging.in_the_way(checkout, base, commits[-1])
    ):
        return False
    results = [
        next((check for check in reversed(results_of_all) if check.command in commands), None) for commands in wanted
    ]
    group = [
        outcomes.about_to_move(store, team, landing, commit, check.to_json() if check else None)
        for landing, commit, check in zip(group, commits, results, strict=True)
    ]
    if merging.move(repository, onto, base, commits[-1], f"teams: {', '.join(one.id for one in group)}"):
        if checkout:
            merging.follow(checkout, base, commits[-1])
        for landing, commit in zip(group, commits, strict=True):
            outcomes.landed(store, team, landing, commit, checkout)
    return True


def _merged(team: Team, group: list[Landing], base: str) -> list[str]:
    """Return a chain of merge commits on *base*, one for each landing.

    Returns an empty list if a landing conflicts, or if *base* contains one already.
    """
    commits = [base]
    for landing in group:
        if merging.holds(landing.repository, base, landing.head):
            return []
        try:
            commits.append(merging.merged(landing.repository, commits[-1], landing.head, landing.words(team.name)))
        except merging.Clash:
            return []
    return commits[1:]
