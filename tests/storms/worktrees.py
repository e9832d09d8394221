"""Nothing that an agent made is lost: `python -m tests.storms.worktrees --cases 2000 [--kill]` prints what was
lost.

Each case is a repository of some layout, an agent's worktree in some state (made by a few random steps, with
odd paths), a person at the checkout from which the worktree was made, and one command. Every commit, staged
blob and file that could be found before must be found afterwards: from a branch, the worktree, or a kept
reference. Nothing may be called merged that is not. What the person has stays as it was, except for files that
a merge brings; so does what the agent has, if a merge is refused. What was removed can be restored as it was.

With --kill the command, git included, is killed at a random system call, and then repeated.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.support.cli import COMMAND, TIMEOUT

LAYOUTS = ("plain", "linked", "bare", "separate", "symlink", "inside", "subdirectory")
COMMANDS = ("merge", "merge", "remove", "force", "prune", "close", "restart")
ODD = ["a b", "q\"uo'te", "new\nline", "ünï", "-dash", "tab\t", "back\\slash", "star*[x]", "cr\r", "🦆", ":colon"]
CALLS = ["openat", "rename", "unlink", "write", "mkdir", "close", "execve", "link", "read", "rmdir", "wait4"]
INNER = ["new", "x y/new", "nö/dee\np"]
UNFINISHED = ("rebase-merge/orig-head", "rebase-merge/autostash")
EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
"""The blob of an empty file, which the index also holds for a file that is only intended to be added."""
PRELUDE = r"""
set -e
RANDOM=$SEED
w() { mkdir -p "$(dirname "./$1")"; echo $RANDOM.$RANDOM >"./$1"; }
c() { w "$1"; git add -- ":(literal)$1"; git commit -qm work --no-verify; }
nested() { [ -e "$1" ] || git init -q "$1"; cd "$1"; }
sub() { [ -e lib/.git ] || git submodule update --init --quiet; cd lib; }
place() { git rev-parse --path-format=absolute --git-path "$1"; }
hook() {
    mkdir -p "$(place hooks)"; cd "$(place hooks)"
    printf '#!/bin/sh\necho no >&2; exit 1\n' >"$1"; chmod 755 "$1"
}
conflict() {
    git checkout -qb u$N; c "$2"; git checkout -q -; c "$2"; git $1 u$N >/dev/null || true
    if [ $((RANDOM % 2)) = 1 ]; then w "$2"; fi
}
"""
"""Functions for the steps, in bash: `w` writes a file, `c` commits one, `conflict` begins a merge or the like
that stops. X and Y are new file names, often odd; INNER is a name for a repository, and N a number.
"""
STEPS = {
    "commit": 'c "$X"',
    "commit twice": 'c "$X"; c a',
    "detached": 'git checkout -q --detach; c "$X"',
    "other branch": 'git checkout -qb feature$N; c "$X"',
    "left a detached commit": 'git checkout -q --detach; c "$X"; git checkout -q teams/app/ann',
    "orphan": 'git checkout -q --orphan orphan$N; c "$X"',
    "unborn": "git checkout -q --orphan orphan$N",
    "renamed branch": "git branch -m mine$N",
    "deleted branch": "git checkout -q --detach; git branch -D teams/app/ann",
    "amended": 'c "$X"; git commit -q --amend -m again --no-verify',
    "untracked": 'w "$X"',
    "changed": "w a",
    "deleted": "rm b",
    "executable": "chmod 755 c",
    "staged": "w a; git add a; w a",
    "staged, then gone": "w s1; git add s1; mv s1 s2",
    "intended": 'w "$X"; git add -N -- ":(literal)$X"',
    "link": "ln -s ../elsewhere link$N",
    "directory for a file": "git rm -q --cached c; mv c cc; w c/inside",
    "no untracked": 'git config status.showUntrackedFiles no; w "$X"',
    "assumed unchanged": "git update-index --assume-unchanged a; w a",
    "skip-worktree": "git update-index --skip-worktree c; w c",
    "excluded": """mkdir -p "$(place info)"; echo 'secret*' >>"$(place info/exclude)"; w secret1; w 'secret dir/x'""",
    "ignored": r"printf '*.o\nmine*\n' >.gitignore; w mine1",
    "stash": "w a; git stash -q",
    "stash of new files": 'w "$X"; git stash -q -u',
    "stash, detached": "git checkout -q --detach; w a; git stash -q",
    "rebase": "conflict rebase a",
    "merge": "conflict merge a",
    "cherry-pick": "conflict cherry-pick a",
    "bisect": "git bisect start",
    "damaged index": 'echo DIRC garbage >"$(place index)"',
    "index.lock": 'touch "$(place index).lock"',
    "sparse": "git sparse-checkout set deep",
    "nested": 'nested "$INNER"; c "$X"',
    "nested, no commit": 'nested "$INNER"; w "$X"',
    "nested, dirty": 'nested "$INNER"; c "$X"; w "$Y"',
    "nested, staged": "nested n2; c a; w a; git add a; w a",
    "nested, stash": "nested n3; c a; w a; git stash -q",
    "nested, branches": 'nested "$INNER"; c "$X"; git checkout -q --detach; c "$Y"; git checkout -qb x$N',
    "nested in nested": '(nested "$INNER"; c "$X"); nested new/deeper; c "$Y"',
    "nested, ignored": 'nested ign.o; c "$X"; w "$Y"',
    "nested, committed": '(nested n4; c "$X"); git add n4; git commit -qm link --no-verify',
    "clone": 'git clone -q "$NOW/lib" cl; cd cl; c "$X"',
    "shallow clone": 'git clone -q --depth=1 "file://$NOW/lib" sh; cd sh; c "$X"',
    "worktree inside": 'git worktree add -q --detach wt; cd wt; c "$X"; w "$Y"',
}
IN_SUBMODULES = {
    "sub": 'sub; c "$X"',
    "sub, bumped": '(sub; c "$X"); git commit -qam bump --no-verify',
    "sub, dirty": 'sub; w "$X"',
    "sub, branch": 'sub; git checkout -qb s$N; c "$X"; git checkout -q --detach HEAD~1',
    "sub, stash": "sub; w a; git stash -q",
    "sub, gone": '(sub; c "$X"); git submodule --quiet deinit -f lib',
    "sub, tag": 'sub; git checkout -q --detach; c "$X"; git tag t$N; git checkout -q HEAD~1',
}
PERSONS = {
    "nothing": ":",
    "their commit": "c theirs",
    "conflicting": "c a",
    "dirty": "w b",
    "dirty in the way": "w a",
    "staged": "w c; git add c",
    "files in the way": "for n in $(seq 9); do w f$n; done",
    "ignored in the way": r"for n in $(seq 9); do w f$n; done; printf '*.o\nf*\n' >.gitignore; git commit -qam i",
    "merging": "conflict merge b",
    "rebasing": "conflict rebase b",
    "picking": "conflict cherry-pick b",
    "index.lock": 'touch "$(place index).lock"',
    "commit-msg": "hook commit-msg",
    "pre-commit": "hook pre-commit",
    "pre-merge-commit": "hook pre-merge-commit",
    "reference-transaction": "hook reference-transaction",
    "signing": "git config commit.gpgsign true; git config user.signingkey NO",
    "other branch": "git checkout -qb elsewhere",
    "detached": "git checkout -q --detach",
    "moved": 'if [ $LAYOUT = plain ]; then mv "$PWD" "$PWD-moved"; fi',
    "submodules": "git submodule update --init -q",
}
WORKERS = 2
PROMISES = ("lost", "called merged", "the person's", "the agent's", "not restored", "bugs")


def git(where: Path | str, *words: str, ok: bool = True) -> str:
    """What git prints in *where*; empty if it fails and *ok* is False."""
    status, printed = run_git(where, {}, *words)
    assert not (ok and status), words
    return "" if status else printed


def run_git(where: Path | str, variables: dict[str, str], *words: str) -> tuple[int, str]:
    """The exit status of git in *where*, and what it prints."""
    command = ["git", "-C", str(where), *words]
    done = subprocess.run(command, env=_environ(**variables), capture_output=True, timeout=TIMEOUT, check=False)
    return done.returncode, os.fsdecode(done.stdout)


def objects_of(store: Path | str, *words: str) -> set[str]:
    """The objects that `rev-list` finds for *words* in a store."""
    variables = {"GIT_DIR": str(store), "GIT_WORK_TREE": str(store)}
    return set(run_git(store, variables, "rev-list", *words, "--objects", "--no-object-names")[1].split())


def _environ(**more: str) -> dict[str, str]:
    names = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "true", "HOME": _homes[-1]}
    return {**names, **more}


_homes: list[str] = []


def make_home(place: Path) -> None:
    """Make a home directory in which git finds an identity."""
    place.mkdir(parents=True)
    _homes.append(str(place))
    said = '[user]\nname=n\nemail=e@example.org\n[init]\ndefaultBranch=main\n[protocol "file"]\nallow=always\n'
    said += "[gc]\nauto=0\n[advice]\ndetachedHead=false\n[maintenance]\nauto=false\n"
    (place / ".gitconfig").write_text(said)


class Place:
    """A directory with a repository of one layout, a root and an agent, which is set up again for each case."""

    def __init__(self, top: Path, layout: str, submodule: bool) -> None:
        self.top, self.layout, self.submodule = top, layout, submodule
        self.now, self.base = top / "now", top / "base"
        self.root = self.now / "root"
        self.tree = self.root / "worktrees/app/ann"
        self.now.mkdir(parents=True)
        self.target = self._repository()
        self.teams("spawn-team", "app")
        where = self.target / "deep" if layout == "subdirectory" else self.target
        done = self.teams("run-agent", "true", "--agent-id", "ann", "--worktree", where=where)
        assert done.returncode == 0, done
        os.rename(self.now, self.base)

    def _repository(self) -> Path:
        lib, plain = self.now / "lib", self.now / "r"
        for made in (lib, plain):
            git(self.now, "init", "-q", str(made))
            (made / "deep").mkdir()
            for name in ("a", "b", "c", "deep/d"):
                (made / name).write_text(f"{name}\n")
            (made / ".gitignore").write_text("*.o\n")
            git(made, "add", ".")
            git(made, "commit", "-q", "-m", "first")
        if self.submodule:
            git(plain, "submodule", "--quiet", "add", str(lib), "lib")
            git(plain, "commit", "-q", "-m", "sub")
        match self.layout:
            case "linked":
                git(plain, "worktree", "add", "-q", "-b", "feature", str(self.now / "lw"))
                (self.now / "lw/wip").write_text("wip")
                git(self.now / "lw", "add", "wip")
                git(self.now / "lw", "commit", "-q", "-m", "wip")
                return self.now / "lw"
            case "bare":
                git(self.now, "clone", "-q", "--bare", str(plain), str(self.now / "bare.git"))
                git(self.now / "bare.git", "worktree", "add", "-q", str(self.now / "dev"), "main")
                return self.now / "dev"
            case "separate":
                git(plain, "init", "-q", "--separate-git-dir", str(self.now / "apart"))
            case "symlink":
                os.rename(plain / ".git", self.now / "store")
                (plain / ".git").symlink_to(self.now / "store")
            case "inside":
                git(self.now, "init", "-q", str(self.now / "super"))
                git(self.now / "super", "submodule", "--quiet", "add", str(plain), "r")
                git(self.now / "super", "commit", "-q", "-m", "r")
                return self.now / "super/r"
        return plain

    def set_up(self) -> None:
        shutil.rmtree(self.now, ignore_errors=True)
        subprocess.run(["cp", "-a", str(self.base), str(self.now)], check=True)

    def teams(self, *words: str, where: Path | None = None, before: Sequence[str] = ()) -> Any:
        environ = _environ(TEAMS_HOME=str(self.root), TEAMS_TEAM="app", PYTHONPATH=str(Path(__file__).parents[2]))
        place = where or (self.target if self.target.is_dir() else self.now)  # the person may have moved the repository
        command = [*before, *COMMAND, *words, "--as", "human", "--json"]
        return subprocess.run(command, cwd=place, env=environ, capture_output=True, timeout=TIMEOUT, check=False)


class Case:
    """One case: its steps, its command, and the broken promises."""

    def __init__(self, place: Place, seed: int) -> None:
        self.place, self.random = place, random.Random(seed)
        self.said: list[str] = [f"seed {seed}", f"{place.layout}{' with submodule' * place.submodule}"]
        self.number = 0
        self.problems: list[tuple[str, str]] = []

    @property
    def tree(self) -> Path:
        return self.place.tree

    def name(self) -> str:
        """A new name for a file, often an odd one, sometimes in a directory."""
        self.number += 1
        name = f"{self.random.choice(ODD)}{self.number}" if self.random.random() < 0.5 else f"f{self.number}"
        return f"{self.random.choice(('d', 'x y', 'ö'))}/{name}" if self.random.random() < 0.3 else name

    # what there is

    def repositories(self, top: Path) -> Iterator[Path]:
        for place, directories, files in os.walk(top):
            if ".git" in directories or ".git" in files:
                yield Path(place)
            if ".git" in directories:
                directories.remove(".git")

    def stores(self, top: Path) -> Iterator[Path]:
        """All stores below *top*, including those of submodules and nested repositories."""
        for place, directories, files in os.walk(top):
            if "HEAD" in files and "objects" in directories:
                yield Path(place)

    def reachable(self) -> set[str]:
        """All objects that a reference, HEAD, index or stash of any store leads to, and all files of
        worktrees.
        """
        found: set[str] = set()
        for store in self.stores(self.place.now):
            own = {"GIT_DIR": str(store), "GIT_WORK_TREE": str(store)}
            tips = _tokens(store, "logs/refs/stash")
            for place in (store, *(store / "worktrees").glob("*")):
                named = _tokens(place, "HEAD", *UNFINISHED, "MERGE_HEAD", "logs/HEAD")
                tips += [tip for tip in named if run_git(store, own, "cat-file", "-e", tip)[0] == 0]
                if (place / "index").exists():
                    listed = run_git(store, {**own, "GIT_INDEX_FILE": str(place / "index")}, "ls-files", "-s", "-z")
                    found |= {line.split()[1] for line in listed[1].split("\0") if line}
            found |= objects_of(store, "--all", "--ignore-missing", *tips)
        for where in (self.tree, *self.tree.parent.glob("*")) if self.tree.parent.is_dir() else ():
            found |= set(self.files(where).values())
        return found

    def files(self, top: Path) -> dict[str, str]:
        """The files below *top*, each with its blob, without stores and the files that the first commit
        ignores.
        """
        found = {}
        for place, directories, files in os.walk(top):
            directories[:] = [name for name in directories if name != ".git"]
            for name in (*files, *(each for each in directories if os.path.islink(f"{place}/{each}"))):
                path = f"{place}/{name}"
                if name != ".git" and not name.endswith(".o"):
                    data = os.fsencode(os.readlink(path)) if os.path.islink(path) else Path(path).read_bytes()
                    found[os.path.relpath(path, top)] = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        return found

    def work(self) -> set[str]:
        """Every object that is the agent's work."""
        found = set(self.files(self.tree).values())
        for where in self.repositories(self.tree):
            mine = where == self.tree or not self._owns_store(where)
            words = ["HEAD"] if mine else ["--all"]
            words += ["refs/heads/teams/app/ann"] if where == self.tree else []
            if git(where, "rev-parse", "-q", "--verify", "HEAD", ok=False) or not mine:
                listed = git(where, "rev-list", "--objects", "--no-object-names", "--ignore-missing", *words, ok=False)
                found |= set(listed.split())
            own = Path(git(where, "rev-parse", "--absolute-git-dir").removesuffix("\n"))
            tips = _tokens(own, *UNFINISHED, "logs/HEAD", *([] if mine else ["logs/refs/stash"]))
            tips = [one for one in tips if git(where, "cat-file", "-t", one, ok=False)]
            if tips:
                found |= set(git(where, "rev-list", "--objects", "--no-object-names", *tips, ok=False).split())
            entries = git(where, "ls-files", "-s", "-z", ok=False).split("\0")
            found |= {line.split()[1] for line in entries if line and not line.startswith("160000")}
        own = self.tree / git(self.tree, "rev-parse", "--absolute-git-dir").removesuffix("\n")
        for store in self.stores(own / "modules"):
            found |= objects_of(store, "--all")
        return found

    def _owns_store(self, where: Path) -> bool:
        common = git(where, "rev-parse", "--path-format=absolute", "--git-common-dir").removesuffix("\n")
        return common.startswith(str(self.tree)) or "/modules/" in common.replace(str(self.place.now / "super"), "")

    def person(self) -> tuple[Any, ...]:
        """What the person has: files, index, and an unfinished merge or rebase."""
        r = self.place.target
        if not r.is_dir():
            return ()
        status = git(r, "--no-optional-locks", "status", "--porcelain", "-z", "--ignored", ok=False)
        own = Path(git(r, "rev-parse", "--absolute-git-dir").removesuffix("\n"))
        unfinished = [name for name in ("MERGE_HEAD", "CHERRY_PICK_HEAD", "rebase-merge") if (own / name).exists()]
        return self.files(r), status, unfinished, git(r, "rev-parse", "HEAD")

    def agents(self) -> tuple[Any, ...]:
        """What the agent has: files, index, HEAD and branches."""
        if not self.tree.is_dir():
            return ()
        asked = ["ls-files", "-s", "-z"], ["rev-parse", "HEAD"], ["symbolic-ref", "HEAD"], ["for-each-ref"]
        return self.files(self.tree), *(git(self.tree, *words, ok=False) for words in asked)

    # the case

    def prepare(self) -> None:
        self.place.set_up()
        for _ in range(self.random.randint(1, 4)):
            self._step("", self.tree, STEPS | IN_SUBMODULES if self.place.submodule else STEPS)
        self._step("person: ", self.place.target, PERSONS)

    def _step(self, who: str, where: Path, steps: dict[str, str]) -> None:
        """Do one random step, unless an earlier step prevents it."""
        name, script = self.random.choice(list(steps.items()))
        given = {"X": self.name(), "Y": self.name(), "N": str(self.number), "SEED": str(self.random.randrange(30_000))}
        given |= {"INNER": self.random.choice(INNER), "NOW": str(self.place.now), "LAYOUT": self.place.layout}
        done = subprocess.run(
            ["bash", "-c", PRELUDE + script], cwd=where, env=_environ(**given), capture_output=True, timeout=TIMEOUT
        )
        self.said.append(f"({who}{name})" if done.returncode else f"{who}{name}")

    def run(self, kill: bool) -> Case:
        self.prepare()
        command = self.random.choice(COMMANDS)
        self.said.append(command)
        work, person, before = self._work_before(), self.person(), self.files(self.tree)
        agents = self.agents()
        if kill:
            call, nth = self.random.choice(CALLS), int(self.random.paretovariate(0.5)) % 3000 + 1
            self.said.append(f"killed at {call} {nth}")
            injected = ["-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={nth}"]
            self.give(command, ["strace", "-f", "-o", "/dev/null", *injected])
            self._lost(work, "after the kill")
            for lock in self.place.now.rglob("*.lock"):  # as git's message tells the person to
                if "/.own-" not in str(lock) and "worktrees/app" not in str(lock.parent):
                    lock.unlink()
        done = self.give(command)
        answer = _json(done.stdout)
        if done.returncode == 3 or b"Traceback" in done.stderr:
            self.problems.append(("bugs", repr(done)))
        self._lost(work, f"after {done.returncode}")
        self._look_at_merge(command, done.returncode, answer, person, before, kill)
        if command == "merge" and done.returncode and not kill and self.agents() != agents:
            self.problems.append(("the agent's", f"{agents} became {self.agents()} after {done.stderr!r}"))
        if command == "force" and not kill and done.returncode == 0 and answer.get("kept"):
            self._look_at_restored(answer["kept"], before)
        return self

    def _work_before(self) -> set[str]:
        try:
            return self.work()
        except AssertionError:  # git itself can't read the worktree
            return set(self.files(self.tree).values())

    def give(self, command: str, before: Sequence[str] = ()) -> Any:
        teams = self.place.teams
        match command:
            case "merge" | "remove":
                return teams("worktree", command, "ann", before=before)
            case "force":
                return teams("worktree", "remove", "ann", "--force", before=before)
            case "restart":
                done = teams("restart-agent", "ann", before=before)
                teams("wait", "--agent", "ann", "--timeout", "20")
                return done
            case "close":
                return teams("close-team", "--force", before=before)
        teams("close-team", "--force")
        return teams("prune", "--older-than", "0", "--yes", before=before)

    def _lost(self, work: set[str], when: str) -> None:
        if lost := work - self.reachable() - {EMPTY}:
            self.problems.append(("lost", f"{when}: {sorted(lost)[:5]}"))

    def _look_at_merge(self, command: str, status: int, answer: Any, person: Any, before: Any, kill: bool) -> None:
        after = self.person()
        merged = command == "merge" and status == 0
        if not merged:
            if after != person and not kill:
                self.problems.append(("the person's", f"{person} became {after}"))
            return
        tip = git(self.place.target, "rev-list", "--objects", "--no-object-names", "HEAD").split()
        listed = {EMPTY, *tip}
        for store in self.stores(self.place.now):
            if "modules" in store.parts or store.parent.name == "lib":
                listed |= objects_of(store, "--all")
        missing = [name for name, blob in before.items() if blob not in listed and not self._is_excused(name)]
        if answer.get("state") not in ("merged", "removed") or missing:  # removed: there was nothing to merge
            self.problems.append(("called merged", f"{answer}: not there: {missing[:5]}"))
        gone = [
            name for name, blob in person[0].items() if name in _untracked(person[1]) and after[0].get(name) != blob
        ]
        if gone:
            self.problems.append(("the person's", f"overwritten: {gone}"))

    def _is_excused(self, name: str) -> bool:
        return name.startswith("mine") and "ignored" in self.said

    def _look_at_restored(self, ref: str, before: dict[str, str]) -> None:
        done = self.place.teams("worktree", "restore", ref)
        found = self.files(Path(_json(done.stdout).get("path", "/nowhere")))
        left_out = {"a", "b", "c"} if "sparse" in self.said else set()
        wrong = sorted(item for item in set(found.items()) ^ set(before.items()) if item[0] not in left_out)
        if done.returncode or wrong:
            self.problems.append(("not restored", f"{done.returncode} {done.stderr!r} {wrong[:6]}"))


def _untracked(status: str) -> set[str]:
    return {entry[3:] for entry in status.split("\0") if entry[:2] in ("??", "!!")}


def _tokens(own: Path, *names: str) -> list[str]:
    found: dict[str, None] = {}
    for name in names:
        if (own / name).is_file():
            for word in (own / name).read_text(errors="replace").split():
                if len(word) == 40 and set(word) <= set("0123456789abcdef") and word.strip("0"):
                    found[word] = None
    return list(found)


def _json(text: bytes) -> Any:
    try:
        found = json.loads(text or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def storm(top: Path, cases: int, seed: int = 1, kill: bool = False) -> Counter[str]:
    """Run the cases, and return how often each promise was broken."""
    make_home(top / "home")

    def share(worker: int) -> list[str]:
        places: dict[tuple[str, bool], Place] = {}
        broken = []
        for number in range(seed + worker, seed + cases, WORKERS):
            chosen = random.Random(-number - 1)
            kind = chosen.choice(LAYOUTS), chosen.random() < 0.4
            if kind not in places:
                places[kind] = Place(top / f"{worker}-{len(places)}", *kind)
            case = Case(places[kind], number).run(kill)
            for promise, what in case.problems:
                broken.append(promise)
                sys.stderr.write(f"{'; '.join(case.said)}: {promise}: {what[:1500]}\n")
        return broken

    with ThreadPoolExecutor(WORKERS) as pool:
        return Counter(promise for part in pool.map(share, range(WORKERS)) for promise in part)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--cases", type=int, default=2000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--kill", action="store_true")
    said = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        broken = storm(Path(place), said.cases, said.seed, said.kill)
    rows = ", ".join(f"{promise}: {broken[promise]}" for promise in PROMISES)
    print(f"{said.cases} cases{' with kills' * said.kill}: {rows}")
    sys.exit(any(broken.values()))


if __name__ == "__main__":
    main()
