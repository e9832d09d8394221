"""The files that tasks touch: patterns, and tasks that meet no task in progress come first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teams_cli import text
from teams_cli.errors import InvalidValue
from teams_cli.membership import joining
from teams_cli.tasks import claims, tasks, touching
from teams_cli.tasks.tasks import Task
from teams_cli.teams.permission import Caller

if TYPE_CHECKING:
    from teams_cli.store.contract import Store

ALPHA = "alpha"
LEA, BOB, MIA = Caller("lea"), Caller("bob"), Caller("mia")


SHARING = [
    ("*.py", "a.*"),
    ("src/*.py", "src/[ab].py"),
    ("src/**", "src/x/y.py"),
    ("**/test_*.py", "tests/deep/test_?.py"),
    ("src/**/a.py", "src/a.py"),
    ("a/**/z", "**/m/**"),
    ("[!a].py", "b.py"),
    ("src/*.py:Editor", "src/x.py:Editor.edit,main"),
    ("a:b", "a:b.c"),
]


APART = [
    ("src", "src/a.py"),
    ("src/**", "src"),
    ("src/*", "src/a/b.py"),
    ("src/**", "lib/a.py"),
    ("[!a].py", "a.py"),
    ("*.py", "src/a.py"),
    ("src/x.py:Editor", "src/x.py:Edit,main"),
]


def test_patterns_meet_that_may_name_one_file() -> None:
    for one, other in SHARING:
        assert touching.meet(one, other) and touching.meet(other, one), (one, other)
    for one, other in APART:
        assert not touching.meet(one, other) and not touching.meet(other, one), (one, other)


@given(st.text("ab*?", max_size=6), st.text("ab", max_size=6))
def test_patterns_match_names_as_in_a_shell(pattern: str, name: str) -> None:
    from fnmatch import fnmatchcase

    if pattern != "**":
        assert touching.meet(pattern, name) == fnmatchcase(name, pattern)


def test_a_pattern_that_names_no_files_is_refused() -> None:
    for pattern in ["", " ", "/etc/passwd", "../x", "a\nb", "x" * 256]:
        with pytest.raises(InvalidValue) as refusal:
            text.file_patterns([pattern])
        assert refusal.value.hint
    assert text.file_patterns(["./a.py", "a.py", "b//c", "src/"]) == ["a.py", "b/c", "src/**"]


def test_next_prefers_tasks_that_touch_no_file_of_others(store: Store) -> None:
    joining.spawn_team(store, ALPHA, LEA)
    for caller in (BOB, MIA):
        joining.join(store, ALPHA, caller)
    for priority, touches in [
        ("high", ["src/a.py"]),
        ("high", ["src/*.py"]),
        ("high", ["docs/*"]),
        ("normal", None),
        ("high", None),
    ]:
        draft = Task(team_name=ALPHA, title="t", created_at="", priority=priority, touches=touches)
        tasks.create(store, ALPHA, LEA, draft)
    assert claims.claim_next(store, ALPHA, BOB).id == "task-1"
    assert [claims.claim_next(store, ALPHA, MIA).id for _ in range(4)] == ["task-3", "task-5", "task-2", "task-4"]
