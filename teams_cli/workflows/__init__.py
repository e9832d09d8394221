"""Workflows: Markdown files that people read as a guide and `teams run` carries out; and where these files are."""

from __future__ import annotations

import os

LOCAL = "workflows"


def paths(directory: str) -> list[str]:
    """Return the paths of the shipped workflow files, followed by those of the files in ./workflows."""
    files: list[str] = []
    for folder in directories(directory):
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        files += [os.path.join(folder, name) for name in names if name.endswith(".md")]
    return files


def directories(directory: str) -> list[str]:
    """Return the directories with workflows. The directory of the shipped workflows is first, so that a workflow in a
    checkout can't take the place of a shipped one.
    """
    package = os.path.dirname(os.path.abspath(__file__))
    shipped, local = os.path.join(package, "shipped"), os.path.join(directory, LOCAL)
    if not os.path.isdir(shipped):  # the program runs from a checkout
        shipped = os.path.join(os.path.dirname(os.path.dirname(package)), LOCAL)
    return [shipped] if os.path.realpath(shipped) == os.path.realpath(local) else [shipped, local]
