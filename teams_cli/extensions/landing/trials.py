"""Chooses the landings to try, and checks merge commits in a temporary checkout."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from itertools import combinations

from teams_cli import errors
from teams_cli.agents import checking, checkouts, git, merging, submodules, trees
from teams_cli.agents.regions import Snapshots
from teams_cli.extensions.landing import outcomes
from teams_cli.names import SYSTEM
from teams_cli.store.contract import Store
from teams_cli.store.files import disk
from teams_cli.tasks import landings, tasks
from teams_cli.tasks.checks import Check, Workplace
from teams_cli.tasks.landings import LANDING, Landing
from teams_cli.tasks.tasks import FINISHED, TASK, Task
from teams_cli.teams import history, settings, teams
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def commands_of(store: Store, team: Team, landing: Landing) -> list[str]:
    """Return the commands that the merged result must pass: the check of the task, and the setting `landingCheck`."""
    check_of_task = tasks.get(store, team.name, landing.task).check
    check_of_all = str(settings.value(team, "landingCheck"))
    return list(dict.fromkeys(command for command in (check_of_task, check_of_all) if command))


def run_checks(
    store: Store, team: Team, landing: Landing, commit: str, commands: list[str], environ: Mapping[str, str]
) -> list[Check]:
    """Run the commands on *commit* in a temporary checkout. Stop after the first command that fails. Return the results
    of the commands that ran.
    """
    if not commands:
        return []
    # A git command of a killed lander may still write into the checkout of an earlier try, so every try has its own.
    path = f"{_directory(store, team.name)}/.{landing.id}.{os.urandom(4).hex()}"
    with trees.tree(team, landing.repository, commit, path, environ, "nothing was tried") as remark_on_submodules:
        results: list[Check] = []
        for command in commands:
            check = checking.run(store, team, command, Workplace(path, environ), SYSTEM)
            output = check.output
            if remark_on_submodules and not check.passed:  # the check may have failed because they are missing
                output += f"\n{remark_on_submodules}"
            results.append(check.having(commit=commit, directory=None, output=output))
            if not check.passed:
                break
        return results


def remove_leftovers(store: Store, team: str) -> None:
    """Remove the temporary checkouts that killed landers left. The caller holds the lander's lock."""
    directory = _directory(store, team)
    for name in disk.names_in(directory):
        if name.startswith(f".{LANDING.name}-"):  # the form of a name is `.LANDING.RANDOM`
            with suppress(errors.TeamsError):  # what can't be removed now stays until the next time
                landing = landings.get(store, team, name.split(".")[1])
                trees.clear(landing.repository, f"{directory}/{name}")


def _directory(store: Store, team: str) -> str:
    return f"{store.root}/worktrees/{team}"


_COMPARED = 12
"""The number of landings at the head of the queue that are compared with one another."""
_MOST_OVERTAKEN = 3
"""A landing goes first once it was overtaken by this many landings that come after it by priority and age."""


def in_order(store: Store, team: Team, queue: list[Landing], conflicts: dict[tuple[str, str], bool]) -> list[Landing]:
    """Return the queue in the order of trials. If the setting `landingOrder` is `priority`, this is the order of
    *queue*, by priority and age. Otherwise it is as follows, and landings of equal rank keep their order in *queue*:

    1. landings that have begun already, and landings that too many later landings have overtaken
    2. the landings at the head of the queue, beginning with those that conflict with the fewest others
    3. the other landings, which are not compared

    *conflicts* maps pairs of commits to whether they conflict. New results are added to it, so that each pair is tried
    only once.
    """
    waiting = [landing for landing in queue if not (landing.over or landing.merge)]
    if len(waiting) < 2 or settings.value(team, "landingOrder") == "priority":
        return queue
    compared = waiting[:_COMPARED]
    conflicting_pairs = [pair for pair in combinations(compared, 2) if _conflict(*pair, conflicts)]
    ranks = {landing.id: sum(landing in pair for pair in conflicting_pairs) for landing in compared}
    ranks.update((landing.id, _COMPARED) for landing in waiting[_COMPARED:])  # more than any number of conflicts
    if any(ranks.values()):  # otherwise the order stays, and no landing can overtake another
        ended = [landing for landing in landings.all_of(store, team.name, []) if landing.over]
        ranks.update((landing.id, -1) for landing in waiting if _is_overtaken(landing, ended))
    return sorted(queue, key=lambda landing: ranks.get(landing.id, -1))


def _conflict(first: Landing, second: Landing, conflicts: dict[tuple[str, str], bool]) -> bool:
    """Return whether the landings go into the same branch and conflict. A new answer is added to *conflicts*."""
    if (first.repository, first.onto) != (second.repository, second.onto):
        return False
    pair = (first.head, second.head)
    if pair not in conflicts:
        with Snapshots(checkouts.repository_of(first.repository)[1]) as snapshots:
            conflicts[pair] = bool(snapshots.conflicts(first.repository, *pair))
    return conflicts[pair]


def _is_overtaken(landing: Landing, ended: list[Landing]) -> bool:
    """Return whether too many landings ended while this one waited, although they come after it by priority and age."""
    priority_and_age = landings.turn(landing)[1:]
    later_ones = [other for other in ended if landings.turn(other)[1:] > priority_and_age]
    overtakers = [other for other in later_ones if (other.ended_at or "") > landing.created_at]
    return len(overtakers) >= _MOST_OVERTAKEN


def repair_of_tip(
    store: Store, team: Team, landing: Landing, base: str, command: str, environ: Mapping[str, str]
) -> str:
    """Find out whether the target branch itself is broken: its tip *base* fails *command*, too. If so, return the id of
    the task to repair the branch, and create this task unless there is an unfinished one.

    Return "" if the tip passes, or if the landing itself is the repair.
    """
    for earlier in landings.all_of(store, team.name, []):
        if earlier.merge == base and earlier.result and earlier.result.passed and command in (earlier.check or ""):
            return ""  # the tip passed when it landed
    title = f"Repair {landing.onto}: `{' '.join(command.split())[:200]}` fails there"
    is_repair = landing.title == title
    if is_repair or run_checks(store, team, landing, base, [command], environ)[0].passed:
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


_SMALL = 20
"""The maximum number of files that a small branch changes."""


def group(team: Team, queue: list[Landing], tried_in_group: set[str]) -> list[Landing]:
    """Return the landings at the head of the queue that can be tried together: small landings into one branch that
    change different files. The group ends at the first landing that does not fit, or when it has as many landings as
    the setting `landingTogether` allows. Return an empty list instead of a group of one.

    *tried_in_group* has the ids of landings that were tried in a group before. These must be tried alone.
    """
    most = int(settings.value(team, "landingTogether"))
    if most < 2:
        return []
    members: list[Landing] = []
    changed: set[str] = set()
    for landing in queue[:most]:
        was_begun = landing.over or landing.merge is not None
        has_same_target = (landing.repository, landing.onto) == (queue[0].repository, queue[0].onto)
        if landing.id in tried_in_group or was_begun or landing.via == "pr" or not has_same_target:
            break
        between = f"refs/heads/{landing.onto}...{landing.head}"
        arguments = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", between)
        files = set(git.run(landing.repository, *arguments).stdout.split("\0")) - {""}
        if not 0 < len(files) <= _SMALL or files & changed:
            break
        changed |= files
        members.append(landing)
    return members if len(members) > 1 else []


def land_together(store: Store, team: Team, group: list[Landing], environ: Mapping[str, str]) -> bool:
    """Check the landings of the group together, and land all of them if the checks pass. Return False if the landings
    must be tried one by one, because one of them conflicts, fails a check, or would be refused. Otherwise return True,
    even if the landings stay open because somebody else moved the target branch meanwhile.
    """
    repository, onto = group[0].repository, group[0].onto
    base = merging.tip_of(repository, onto)
    commits = _merge_commits(team, group, base) if base else []
    if not commits:
        return False
    tip = commits[-1]
    try:
        merging.refuse_unfollowed(repository, onto)
    except errors.Conflict:  # each landing is refused with this reason when it is tried alone
        return False
    checkout = merging.checked_out(repository, onto)
    if checkout and merging.in_the_way(checkout, base, tip):
        return False
    commands = [commands_of(store, team, landing) for landing in group]
    for landing, own_commands in zip(group, commands, strict=True):
        outcomes.record_begin(store, team, landing, base, own_commands)
    all_commands = list(dict.fromkeys(command for own_commands in commands for command in own_commands))
    checks = run_checks(store, team, group[0], tip, all_commands, environ)
    if not all(check.passed for check in checks):
        return False
    # During the checks, files may have changed, or the branch may have been switched.
    checkout = merging.checked_out(repository, onto)
    if checkout and merging.in_the_way(checkout, base, tip):
        return False
    with ExitStack() as undone_if_refused:
        try:
            undone_if_refused.enter_context(submodules.carried(repository, base, tip, group[0].branch or group[0].id))
        except errors.Conflict:
            return False
        moving = []
        for landing, commit, own_commands in zip(group, commits, commands, strict=True):
            own_checks = [check for check in checks if check.command in own_commands]
            last_check = own_checks[-1] if own_checks else None
            moving.append(outcomes.record_merge(store, team, landing, commit, last_check))
        moved = merging.move(repository, onto, base, tip, f"teams: {', '.join(landing.id for landing in group)}")
    if moved:  # otherwise somebody else moved the branch, so the landings stay open and are tried again
        if checkout:
            merging.follow(checkout, base, tip)
        for landing, commit in zip(moving, commits, strict=True):
            outcomes.end_landed(store, team, landing, commit, checkout)
    return True


def _merge_commits(team: Team, group: list[Landing], base: str) -> list[str]:
    """Return a chain of merge commits on *base*, one for each landing; empty if one conflicts or is merged already."""
    commits = [base]
    for landing in group:
        if merging.holds(landing.repository, base, landing.head):
            return []
        try:
            commits.append(merging.make_merge(landing.repository, commits[-1], landing.head, landing.words(team.name)))
        except merging.Clash:
            return []
    return commits[1:]
