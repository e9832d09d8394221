"""Answers in words: how the document of each command is told to a person; the declarations say by which function."""

from __future__ import annotations

from teams_cli.commands.declaration import Command, named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.cli.tables import Table


def parts(command: Command, document: Any, words: str = "") -> list[str | Table]:
    """The lines and tables that tell the answer of the command; by other *words* than usual, if given."""
    shown: list[str | Table] = named(f"cli.show.{words or command.words}")(document)
    return shown


def present(*lines: str | None) -> list[str | Table]:
    """The lines that are there."""
    return [line for line in lines if line]
