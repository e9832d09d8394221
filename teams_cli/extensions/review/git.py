"""Ask git, in the directory of the repository, without locks, hooks or a pager."""

from __future__ import annotations

import os
import subprocess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class GitFailed(Exception):
    """Git refused what it was asked; the text is what it said."""


class Git:
    """Git in one directory."""

    def __init__(self, directory: str, environ: Mapping[str, str]) -> None:
        self.directory = directory
        self.environ = {**environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}

    def writing_to(self, place: str) -> Git:
        """Git in the same directory, which notes in *place* what it would note in the repository."""
        objects = os.path.join(place, "objects")
        os.makedirs(objects, exist_ok=True)
        theirs = os.path.join(self.directory, self.said("rev-parse", "--git-path", "objects"))
        own = {"GIT_INDEX_FILE": os.path.join(place, "index"), "GIT_OBJECT_DIRECTORY": objects}
        return Git(self.directory, {**self.environ, **own, "GIT_ALTERNATE_OBJECT_DIRECTORIES": theirs})

    def __call__(self, *words: str, given: bytes | None = None) -> bytes:
        """What git prints.

        Raises:
            GitFailed: It ended with another status than 0.
        """
        command = ["git", "-c", "core.fsmonitor=false", *words]
        done = subprocess.run(command, cwd=self.directory, env=self.environ, input=given or b"", capture_output=True)
        if done.returncode:
            raise GitFailed(done.stderr.decode(errors="replace").strip() or f"git {words[0]} failed")
        return done.stdout

    def said(self, *words: str) -> str:
        """What git prints, as one line; empty when it refuses."""
        try:
            return self(*words).decode(errors="replace").strip()
        except GitFailed:
            return ""

    def names(self, *words: str) -> list[str]:
        """The names that git prints, each ended by NUL."""
        return [os.fsdecode(entry) for entry in self(*words).split(b"\0")[:-1]]
