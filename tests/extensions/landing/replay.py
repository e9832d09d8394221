"""Pairs of features, each made by an agent in its worktree: `python -m tests.extensions.landing.replay FOLDER`
prints a table.

Two scripted agents change a repository, and complete their tasks through the program, which lands them. Git
alone tells whether the two features of a pair conflict. The table counts the conflicts that both agents were
told of before the second one completed its task, the warnings without a conflict, and the tips that failed the
check.

The program reads the pairs from the folder: `FOLDER/PAIR/base.bundle` holds the branch `main`, `a.patch` and
`b.patch` are what `git diff` prints of the two features, and `check`, if there is one, is the command that has to
pass. The tests play the pairs of this module.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from teams_cli.tasks import landings
from tests.extensions.landing.storm import red_tips
from tests.support.cli import ALPHA, make_team
from tests.support.shop import git, teams_in

AGENTS = ("ann", "bob")
PROGRAM = '''"""A shop."""


class Basket:
    def __init__(self):
        self.items = []

    def add(self, name, price):
        self.items.append((name, price))
        return self

    def total(self):
        return sum(price for _, price in self.items)

    def names(self):
        return [name for name, _ in self.items]


def receipt(basket):
    lines = [f"{name}: {price}" for name, price in basket.items]
    return "\\n".join(lines)


def discount(total, rate):
    return total - total * rate // 100
'''
TEXT = "".join(f"line {number}\n" for number in range(1, 31))
CHECK = f"{sys.executable} -B -c 'import main'"
FILES = {"shop.py": PROGRAM, "notes.txt": TEXT, "main.py": "import shop\nassert shop.discount(100, 10) == 90\n"}

Steps = dict[str, str | None]
"""What an agent writes: the new text of each file, or None to remove it."""


def _edited(old: str, new: str, text: str = PROGRAM, name: str = "shop.py") -> Steps:
    assert old in text, old
    return {name: text.replace(old, new)}


def _line(number: int, new: str) -> Steps:
    return _edited(f"line {number}\n", new, TEXT, "notes.txt")


def _moved(function: str, text: str = PROGRAM) -> str:
    """*text* with the function moved to its end."""
    start = text.index(f"def {function}(")
    end = text.find("\n\n\n", start)
    body = text[start:] if end < 0 else text[start : end + 1]
    return text.replace(body, "").rstrip("\n") + f"\n\n\n{body.rstrip()}\n"


_SUM = "sum(price for _, price in self.items)"
PAIRS: dict[str, tuple[Steps, Steps]] = {
    "same line": (_line(5, "five\n"), _line(5, "FIVE\n")),
    "lines apart": (_line(5, "five\n"), _line(9, "nine\n")),
    "the same change": (_line(5, "five\n"), _line(5, "five\n")),
    "line removed, line changed": (_line(5, ""), _line(5, "five\n")),
    "added at the same place": (_line(7, "line 7\nann\n"), _line(7, "line 7\nbob\n")),
    "one function": (_edited(_SUM, f"{_SUM} + 1"), _edited(_SUM, f"int({_SUM})")),
    "two methods": (_edited(_SUM, f"int({_SUM})"), _edited("return total - ", "return total + 0 - ")),
    "function removed, function changed": (
        {"shop.py": PROGRAM[: PROGRAM.index("\n\ndef receipt")] + PROGRAM[PROGRAM.index("\n\ndef discount") :]},
        _edited('"\\n".join(lines)', '"; ".join(lines)'),
    ),
    "function moved, function changed": (
        {"shop.py": _moved("receipt")},
        _edited('"\\n".join(lines)', '"; ".join(lines)'),
    ),
    "function moved, another changed": (
        {"shop.py": _moved("receipt")},
        _edited("self.items = []", "self.items = list()"),
    ),
    "two files": (_line(3, "three\n"), _edited(_SUM, f"int({_SUM})")),
    "the same new file": ({"new.txt": "ann\n"}, {"new.txt": "bob\n"}),
    "file renamed, file changed": ({"notes.txt": None, "text.txt": TEXT}, _line(4, "four\n")),
    "file renamed twice": ({"notes.txt": None, "a.txt": TEXT}, {"notes.txt": None, "b.txt": TEXT}),
    "file removed, file changed": ({"notes.txt": None}, _line(4, "four\n")),
    "file and directory": ({"new": "ann\n"}, {"new/file": "bob\n"}),
    "odd names": ({"a b": "1\n", "ü.txt": "ann\n"}, {"ü.txt": "bob\n", "c d": "2\n"}),
    "many places, one the same": (
        {"notes.txt": TEXT.replace("line 3\n", "3\n").replace("line 13\n", "13\n")},
        {"notes.txt": TEXT.replace("line 8\n", "8\n").replace("line 13\n", "XIII\n")},
    ),
    "renamed, and used anew": (
        {
            "shop.py": PROGRAM.replace("def discount", "def reduced"),
            "main.py": FILES["main.py"].replace("discount", "reduced"),
        },
        {
            "extra.py": "import shop\nassert shop.discount(50, 10) == 45\n",
            "main.py": "import extra\n" + FILES["main.py"],
        },
    ),
    "other meaning, another file": (
        {
            "shop.py": PROGRAM.replace("rate // 100", "rate // 1000"),
            "main.py": "import shop\nassert shop.discount(100, 100) == 90\n",
        },
        {
            "extra.py": "import shop\nassert shop.discount(100, 50) == 50\n",
            "notes.txt": TEXT.replace("line 1\n", "1\n"),
        },
    ),
    "without an end of line": ({"notes.txt": TEXT + "ann"}, {"notes.txt": TEXT + "bob"}),
}


class Outcome(NamedTuple):
    """The result of a pair: whether its features conflict, how many agents were told so before the second one
    completed its task, how many tips failed the check, and how many of the two features landed.
    """

    conflicts: bool
    told: int
    red: int
    landed: int


class Scene:
    """A repository with a worktree for each of two agents, and their team."""

    def __init__(self, place: Path, check: str, make: Callable[[Path], object]) -> None:
        self.main = place / "main"
        self.main.mkdir()
        git(self.main, "init", "-q", "-b", "main")
        make(self.main)
        self.trees = {agent: place / agent for agent in AGENTS}
        for agent, tree in self.trees.items():
            git(self.main, "worktree", "add", "-q", "-b", agent, str(tree))
        self.cli = make_team(place / "root", *AGENTS)
        self.cli.ok("set", "landing", "completed", agent="lea")
        if check:
            self.cli.ok("set", "landingCheck", check, agent="lea")
        self.check = check

    def run(self, agent: str, *words: str) -> str:
        """The output of a command that the agent runs in its worktree."""
        done = teams_in(self.trees[agent], self.cli, agent, *words)
        assert done.returncode == 0, done
        return done.stdout + done.stderr

    def told(self, agent: str) -> bool:
        """Whether the agent was told of a conflict."""
        found = self.cli.ok("read-messages", "--all", "--peek", agent=agent)
        return any("your work conflicts with" in message["message"] for message in found)

    def complete(self, agent: str, key: str) -> bool:
        """Complete the task, and return whether it lands at once or within a minute."""
        said = self.run(agent, "update-task", key, "--status", "completed", "--result", "done")
        if "not landed yet" in said:
            newest = landings.all_of(self.cli.store(), ALPHA, [])[-1].id
            said = self.run(agent, "wait", "--landing", newest, "--timeout", "60")
        return "landed on main" in said or ": landed" in said

    def red(self) -> int:
        """The number of tips of the branch that fail the check."""
        return red_tips(self.main, "main", self.check) if self.check else 0


def _write(tree: Path, steps: Steps) -> None:
    for name, text in steps.items():
        if text is None:
            (tree / name).unlink()
        else:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text)


def played(scene: Scene, apply: Callable[[str, Path], object]) -> Outcome:
    """Let both agents make their features and land them; an agent that meets a conflict keeps its own lines."""
    ann, bob = AGENTS
    for number, agent in enumerate(AGENTS, start=1):
        scene.cli.ok("create-task", f"feature {number}", agent="lea")
        scene.run(agent, "claim-task", str(number))
    for agent in AGENTS:
        apply(agent, scene.trees[agent])
        git(scene.trees[agent], "add", "--all")
        git(scene.trees[agent], "commit", "-q", "-m", f"feature of {agent}")
        scene.run(agent, "heartbeat", "--note", "committed")
    merging = ["git", "-C", str(scene.main), "merge-tree", "--write-tree", ann, bob]
    conflicts = subprocess.run(merging, capture_output=True).returncode != 0
    told = sum(scene.told(agent) for agent in AGENTS)
    landed = scene.complete(ann, "1")
    if scene.complete(bob, "2"):
        return Outcome(conflicts, told, scene.red(), landed + 1)
    tree = scene.trees[bob]
    git(tree, "merge", "-q", "-X", "ours", "main", ok=False)
    for name in git(tree, "diff", "--name-only", "--diff-filter=U", "-z").split("\0"):
        if name:
            git(tree, "checkout", "--ours", "--", name, ok=False)
    git(tree, "add", "--all")
    git(tree, "commit", "-q", "--allow-empty", "-m", "merged", ok=False)
    landed += scene.complete(bob, "2")
    return Outcome(conflicts, told, scene.red(), landed)


def play(features: tuple[Steps, Steps], place: Path) -> Outcome:
    """The outcome of a pair of this module."""

    def make(main: Path) -> None:
        _write(main, FILES)
        git(main, "add", "--all")
        git(main, "commit", "-q", "-m", "base")

    steps = dict(zip(AGENTS, features, strict=True))
    return played(Scene(place, CHECK, make), lambda agent, tree: _write(tree, steps[agent]))


def play_patches(folder: Path, place: Path) -> Outcome:
    """The outcome of the pair in *folder*."""
    check = folder / "check"

    def make(main: Path) -> None:
        git(main, "pull", "-q", str((folder / "base.bundle").resolve()), "main")

    patches = dict(zip(AGENTS, ("a.patch", "b.patch"), strict=True))
    scene = Scene(place, check.read_text().strip() if check.exists() else "", make)
    return played(scene, lambda agent, tree: git(tree, "apply", str((folder / patches[agent]).resolve())))


def wrong(outcome: Outcome) -> str:
    """Which promise the outcome breaks; empty if none."""
    if outcome.red:
        return "the branch was red"
    if outcome.conflicts and outcome.told < len(AGENTS):
        return "a conflict was not told to both"
    return "told of a conflict that is none" if outcome.told and not outcome.conflicts else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    every: list[Outcome] = []
    for pair in sorted(one for one in parser.parse_args().folder.iterdir() if one.is_dir()):
        with tempfile.TemporaryDirectory(prefix="replay-") as place:
            every.append(play_patches(pair, Path(place)))
            print(f"{pair.name:36} {every[-1]} {wrong(every[-1])}", flush=True)
    conflicting = [one for one in every if one.conflicts]
    print(f"pairs {len(every)}, conflicting {len(conflicting)}")
    print(f"conflicts told to both before the second completed: {sum(one.told == 2 for one in conflicting)}")
    print(f"false alarms: {sum(bool(one.told) for one in every if not one.conflicts)}")
    print(f"red tips: {sum(one.red for one in every)}; landed {sum(one.landed for one in every)} of {2 * len(every)}")
    return any(map(wrong, every))


if __name__ == "__main__":
    sys.exit(main())
