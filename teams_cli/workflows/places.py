"""Finding workflow files: those of the program, and those of the current directory."""

from __future__ import annotations

import os

LOCAL = "workflows"


def shipped_directory() -> str:
    """Where the workflows that come with the program are: in the package, or in the checkout that it runs from."""
    here = os.path.dirname(os.path.abspath(__file__))
    installed = os.path.join(here, "shipped")
    return installed if os.path.isdir(installed) else os.path.join(os.path.dirname(os.path.dirname(here)), LOCAL)


def paths(directory: str) -> list[str]:
    """The files of the shipped workflows, then of those in ./workflows."""
    found: list[str] = []
    for place in directories(directory):
        names = sorted(os.listdir(place)) if os.path.isdir(place) else []
        found += [os.path.join(place, name) for name in names if name.endswith(".md")]
    return found


def directories(directory: str) -> list[str]:
    """Shipped ones first: the name of one must not start what a foreign checkout calls the same."""
    places = [shipped_directory(), os.path.join(directory, LOCAL)]
    return [places[0]] if os.path.realpath(places[0]) == os.path.realpath(places[1]) else places
