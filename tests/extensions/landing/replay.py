"""Pairs of features, each made by an agent in its worktree: `python -m tests.extensions.landing.replay` prints a table.

Two scripted agents change a repository in steps, and complete their tasks through the program, where landing is on. Of
each pair it is known from git alone whether the two conflict. It is counted which conflicts both agents were told of
before the second completed its task, what was told though the two fit together, and whether the branch ever was red.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.cli import COMMAND, TIMEOUT, make_team

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
"""What an agent writes: the new text of each file; None removes it."""


class Pair(NamedTuple):
    """Two features on the same files."""

    name: str
    files: dict[str, str]
    features: tuple[Steps, Steps]


def _edited(old: str, new: str, text: str = PROGRAM, name: str = "shop.py") -> Steps:
    assert old in text, old
    return {name: text.replace(old, new)}


def _line(number: int, new: str) -> Steps:
    return _edited(f"line {number}\n", new, TEXT, "notes.txt")


def _moved(function: str, text: str = PROGRAM) -> str:
    """The program with one of its functions at the end."""
    start = text.index(f"def {function}(")
    end = text.find("\n\n\n", start)
    body = text[start:] if end < 0 else text[start : end + 1]
    return text.replace(body, "").rstrip("\n") + f"\n\n\n{body.rstrip()}\n"


_SUM = "sum(price for _, price in self.items)"
_PAIRS: dict[str, tuple[Steps, Steps]] = {
    "same line": (_line(5, "five\n"), _line(5, "FIVE\n")),
    "lines apart": (_line(5, "five\n"), _line(9, "nine\n")),
    "the same change": (_line(5, "five\n"), _line(5, "five\n")),
    "line removed, line changed": (_line(5, ""), _line(5, "five\n")),
    "added at the end": ({"notes.txt": TEXT + "ann\n"}, {"notes.txt": TEXT + "bob\n"}),
    "added at the same place": (_line(7, "line 7\nann\n"), _line(7, "line 7\nbob\n")),
    "one function": (_edited(_SUM, f"{_SUM} + 1"), _edited(_SUM, f"int({_SUM})")),
    "a method each": (
        _edited("    def names", "    def count(self):\n        return len(self.items)\n\n    def names"),
        _edited("    def names", "    def first(self):\n        return self.items[0]\n\n    def names"),
    ),
    "an argument more, another default": (
        _edited("def receipt(basket)", "def receipt(basket, width)"),
        _edited("def receipt(basket)", "def receipt(basket=None)"),
    ),
    "function removed, function changed": (
        {"shop.py": PROGRAM[: PROGRAM.index("\n\ndef receipt")] + PROGRAM[PROGRAM.index("\n\ndef discount") :]},
        _edited('"\\n".join(lines)', '"; ".join(lines)'),
    ),
    "function moved, function changed": (
        {"shop.py": _moved("receipt")},
        _edited('"\\n".join(lines)', '"; ".join(lines)'),
    ),
    "the same new file": ({"new.txt": "ann\n"}, {"new.txt": "bob\n"}),
    "the same new file, alike": ({"new.txt": "both\n"}, {"new.txt": "both\n"}),
    "file renamed, file changed": ({"notes.txt": None, "text.txt": TEXT}, _line(4, "four\n")),
    "file removed, file changed": ({"notes.txt": None}, _line(4, "four\n")),
    "file and directory": ({"new": "ann\n"}, {"new/file": "bob\n"}),
    "imports": (
        _edited('"""A shop."""\n', '"""A shop."""\n\nimport os\n'),
        _edited('"""A shop."""\n', '"""A shop."""\n\nimport re\n'),
    ),
    "many places": (
        {"notes.txt": TEXT.replace("line 3\n", "3\n").replace("line 13\n", "13\n").replace("line 23\n", "23\n")},
        {"notes.txt": TEXT.replace("line 8\n", "8\n").replace("line 18\n", "18\n").replace("line 28\n", "28\n")},
    ),
    "everything anew": ({"notes.txt": "nothing\n"}, _line(15, "fifteen\n")),
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


def pairs() -> Iterator[Pair]:
    """The pairs that are made up here."""
    for name, features in _PAIRS.items():
        yield Pair(name, FILES, features)


class Outcome(NamedTuple):
    """Whether the two conflict, how many agents knew before the second was done, how many tips were red, and landed."""

    conflicts: bool
    told: int
    red: int
    landed: int


def git(where: Path, *words: str, ok: bool = True) -> str:
    """What git prints there."""
    who = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "gc.auto=0"]
    done = subprocess.run(["git", "-C", str(where), *who, *words], capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0 or not ok, (words, done.stdout, done.stderr)
    return done.stdout.strip()


class Scene:
    """A repository with a worktree for each of two agents, and their team."""

    def __init__(self, place: Path, pair: Pair) -> None:
        self.main = place / "main"
        self.main.mkdir()
        git(self.main, "init", "-q", "-b", "main")
        _write(self.main, dict(pair.files))
        git(self.main, "add", "--all")
        git(self.main, "commit", "-q", "-m", "base")
        self.trees = {agent: place / agent for agent in AGENTS}
        for agent, tree in self.trees.items():
            git(self.main, "worktree", "add", "-q", "-b", agent, str(tree))
        self.cli = make_team(place / "root", *AGENTS)
        self.cli.ok("set", "landing", "completed", agent="lea")
        self.cli.ok("set", "landingCheck", CHECK, agent="lea")

    def run(self, agent: str, *words: str) -> str:
        """What the program answers to a command that the agent types in its worktree."""
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=self.trees[agent],
            env=self.cli.environ(agent),
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        assert "Traceback" not in done.stderr and done.returncode == 0, done
        return done.stdout + done.stderr

    def told(self, agent: str) -> bool:
        """Whether the agent was told of a conflict."""
        found = self.cli.ok("read-messages", "--all", "--peek", agent=agent)
        return any("your work conflicts with" in message["message"] for message in found)

    def complete(self, agent: str, key: str) -> bool:
        """Complete the task; whether it landed at once or within the minute that the queue has for it."""
        said = self.run(agent, "update-task", key, "--status", "completed", "--result", "done")
        if "not landed yet" in said:
            newest = self.cli.ok("get-landings", agent="lea")[-1]["id"]
            said = self.run(agent, "wait", "--landing", newest, "--timeout", "60")
        return "landed on main" in said or ": landed" in said

    def red(self) -> int:
        """How many tips that the branch ever had do not pass the check."""
        found = 0
        for commit in git(self.main, "rev-list", "--first-parent", "main").split():
            git(self.main, "worktree", "add", "-q", "--detach", "-f", str(self.main.parent / "trial"), commit)
            done = subprocess.run(["sh", "-c", CHECK], cwd=self.main.parent / "trial", capture_output=True)
            found += done.returncode != 0
            git(self.main, "worktree", "remove", "--force", str(self.main.parent / "trial"))
        return found


def _write(tree: Path, steps: Steps) -> None:
    for name, text in steps.items():
        if text is None:
            (tree / name).unlink()
        else:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text)


def played(scene: Scene, apply: Callable[[str, Path], object]) -> Outcome:
    """Have both agents make their feature, step by step, and land it; who meets a conflict takes its own lines."""
    ann, bob = AGENTS
    for number, agent in enumerate(AGENTS, start=1):
        scene.cli.ok("create-task", f"feature {number}", agent="lea")
        scene.run(agent, "claim-task", str(number))
    for agent in AGENTS:
        apply(agent, scene.trees[agent])
        git(scene.trees[agent], "add", "--all")
        git(scene.trees[agent], "commit", "-q", "-m", f"feature of {agent}")
        scene.run(agent, "heartbeat", "--note", "committed")
    conflicts = bool(
        subprocess.run(
            ["git", "-C", str(scene.main), "merge-tree", "--write-tree", ann, bob], capture_output=True
        ).returncode
    )
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


def play(pair: Pair, place: Path) -> Outcome:
    """What comes of a pair."""
    features = dict(zip(AGENTS, pair.features, strict=True))
    return played(Scene(place, pair), lambda agent, tree: _write(tree, features[agent]))


def wrong(outcome: Outcome) -> str:
    """What is not as it was promised; empty if all is."""
    if outcome.red:
        return "the branch was red"
    if outcome.conflicts and outcome.told < len(AGENTS):
        return "a conflict was not told to both"
    return "told of a conflict that is none" if outcome.told and not outcome.conflicts else ""


def main() -> int:
    """Play all pairs and print what came of each."""
    outcomes = []
    for pair in pairs():
        with tempfile.TemporaryDirectory(prefix="replay-") as place:
            outcomes.append(play(pair, Path(place)))
            print(f"{pair.name:36} {outcomes[-1]} {wrong(outcomes[-1])}", flush=True)
    return any(map(wrong, outcomes))


if __name__ == "__main__":
    sys.exit(main())
