"""The course of the work: its counts, its pace, its estimate, and why there is no estimate."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from teams_cli.clock import rfc3339
from teams_cli.tasks.tasks import Task
from teams_cli.views.course import Graph, course

NOW = datetime(2026, 1, 25, 12, tzinfo=UTC)


def ago(minutes: float) -> str:
    return rfc3339(NOW - timedelta(minutes=minutes))


def task(number: int, status: str = "pending", *after: int, ended: float | None = None, took: float = 2) -> Task:
    """A task that waits for *after*; if it *ended* that long ago, it was worked on for *took* minutes."""
    return Task(
        id=f"task-{number}",
        team_name="alpha",
        title="Some task",
        created_at=ago(600),
        status=status,
        blocked_by=[f"task-{other}" for other in after],
        claimed_at=None if ended is None else ago(ended + took),
        completed_at=None if ended is None else ago(ended),
    )


def told(*found: Task) -> dict[str, Any]:
    return course(list(found), NOW)


def test_there_is_no_estimate_without_a_basis() -> None:
    working = task(1, "in_progress")
    few = [task(2, "completed", ended=1), task(3, "completed", ended=2)]
    long_ago = [task(n, "completed", ended=600 + n / 6) for n in range(2, 60)]
    for tasks, why in (
        ([], "all tasks are settled"),
        ([task(1)], "nobody is working"),
        ([working, *few], "fewer than 3 tasks were completed lately"),
        ([working, *long_ago], "nothing was completed for a long time"),
        ([task(9, "failed"), task(1, "pending", 9)], "all other tasks are blocked by"),
    ):
        found = told(*tasks)
        assert found["noEstimate"].startswith(why) and found["estimate"] is None


def test_the_estimate_says_how_sure_it_is_and_what_it_stands_on() -> None:
    done = [task(n, "completed", ended=n) for n in range(1, 10)]
    found = told(*done, task(10, "in_progress"), task(11), task(12))
    assert [found[key] for key in ("total", "done", "percent", "inProgress", "ready")] == [12, 9, 75, 1, 2]
    assert found["pace"] == {"perHour": 60.0, "completed": 9, "withinSeconds": 540}
    estimate = found["estimate"]
    assert (estimate["seconds"], estimate["fromSeconds"], estimate["toSeconds"]) == (180, 120, 240)
    assert estimate["basis"] == "9 tasks were completed in the last 9 min"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["pending", "in_progress", "completed", "failed", "cancelled"]),
            st.lists(st.integers(1, 14), max_size=3),
        ),
        max_size=12,
    )
)
def test_whatever_waits_for_whatever_the_sums_are_right(drawn: list[tuple[str, list[int]]]) -> None:
    """Files edited by hand may have circles, and blockers that do not exist."""
    tasks = [task(number, status, *after) for number, (status, after) in enumerate(drawn, 1)]
    found, graph = told(*tasks), Graph(tasks)
    assert found["total"] == sum(found[key] for key in ("done", "inProgress", "ready", "blocked", "failed"))
    assert graph.waiting_counts() == {key: len(graph.behind(key)) for key in graph.waiting}
    assert set(found["criticalPath"]).isdisjoint(graph.held_up)
    for before, after in zip(found["criticalPath"], found["criticalPath"][1:], strict=False):
        assert before in graph.open_blockers[after]
    for key in graph.held_up:
        assert any(blocker in {*graph.dead_ends, *graph.held_up} for blocker in graph.open_blockers[key])
