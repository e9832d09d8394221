"""Silences: notifying the leader of tasks that block others, and whose owners are silent."""

from __future__ import annotations

from teams_cli.clock import length
from teams_cli.store.contract import Store
from teams_cli.store.pace import Alarm
from teams_cli.tasks import dependencies, leases, overviews, tasks
from teams_cli.tasks.overviews import Overview
from teams_cli.tasks.tasks import Task
from teams_cli.teams.teams import Team
from teams_cli.text import listed
from teams_cli.views import standing, work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.caller import Caller

_FEW = 3
_LATE = 0.8
"""Of a lease: a silence of that length is worth a word even where others have work."""
_LONG = 600.0
"""Seconds of silence that are worth a word where others have nothing to do until then: who writes code says nothing
for some minutes.
"""
_ALSO = 0.5
"""Of the silence that is told: others that are silent for that part of it are told with it, and not a while later."""


def told(
    store: Store, team: Team, caller: Caller, alarm: Alarm, known: set[str], patient: bool = False
) -> dict[str, str | None]:
    """What there is to tell of silent owners, by the word it is known under; None what was told. Once of each claim,
    and again when its lease is about to end; who is *patient* hears that alone. The alarm rings when there may be more.
    """
    late = _LATE * leases.length(team)
    first = late if patient else min(late, _LONG)
    silent = {task.id: (task, _silence(store, team, task)) for task in _in_work(store, team)}
    for _, seconds in silent.values():
        if ahead := [end - seconds for end in (first, late) if end > seconds]:
            alarm.ring_after(ahead[0])
    words = {key: _words(task, seconds, late) for key, (task, seconds) in silent.items()}
    found: dict[str, str | None] = {word: None for key in silent for word in words[key] if word in known}
    due = [key for key, (_, seconds) in silent.items() if seconds >= first and words[key][-1] not in known]
    if not due:
        return found
    whole = overviews.overview(store, team.name)
    idle = [agent.agent for agent in work.idle(store, team, caller.name)]
    texts = {key: _text(store, team, silent[key], late, whole, idle) for key in due}
    if any(texts.values()):
        also = [key for key, (_, s) in silent.items() if s >= _ALSO * first and not known.intersection(words[key])]
        texts |= {key: _text(store, team, silent[key], late, whole, idle) for key in also}
    for key in (key for key, text in texts.items() if text):
        found |= {**dict.fromkeys(words[key]), words[key][-1]: texts[key]}
    return found


def _silence(store: Store, team: Team, task: Task) -> float:
    """Seconds for which nothing was heard of the owner, without those that it said it would be silent for."""
    return min(standing.silence(store, team, task), leases.length(team) - leases.left(store, task))


def _in_work(store: Store, team: Team) -> list[Task]:
    return list(tasks.labelled(store, team.name, tasks.IN_PROGRESS))


def _words(task: Task, seconds: float, late: float) -> list[str]:
    """The words that a silence is told under: from its beginning, and another once it is late."""
    word = f"silent:{task.id}:{task.claim}"
    return [word, f"{word}:late"] if seconds >= late > _LONG else [word]


def _text(store: Store, team: Team, silent: tuple[Task, float], late: float, whole: Overview, idle: list[str]) -> str:
    """That others have nothing to do until a task is done; or that most wait for one whose owner is silent for most of
    a lease. Empty if neither is so.
    """
    task, seconds = silent
    waiting = sorted(dependencies.waiting_for([task.id], whole.found), key=tasks.TASK.number_in)
    said = f"{task.owner}, silent for {length(seconds)}; its lease ends in {_left(store, task)}"
    if idle and not (whole.free or whole.ready):
        said += f"; idle: {listed(idle, _FEW)}"
        if waiting:
            return f"{task.id}, which blocks {listed(waiting, _FEW)}: {said} ({_without(task, whole)})"
        return "" if whole.counts["pending"] else f"{task.id}, which blocks all others: {said}"
    held_up = seconds >= late and len(waiting) > 1 and 2 * len(waiting) > whole.counts["pending"]
    return f"{task.id}, which blocks {len(waiting)} tasks: {said}" if held_up else ""


def _left(store: Store, task: Task) -> str:
    return length(max(leases.left(store, task), 1.0))


def _without(task: Task, whole: Overview) -> str:
    """How to go on without a task whose owner is silent: have the one that waits for the fewest not wait."""
    behind = [each for each in whole.found if each.status == "pending" and task.id in each.blocked_by]
    waits = {each.id: [one.id for one in dependencies.open_blockers(each, whole.status_of)] for each in behind}
    first = min(behind, key=lambda each: (len(waits[each.id]), tasks.TASK.number_in(each.id))).id
    freed = " ".join(f"--unblock {key}" for key in waits[first])
    return f"to continue without it: teams update-task {first} {freed}"
