"""Answers in words: for each command how its document is told to a person; one module for each of `commands`."""

from __future__ import annotations

from teams_cli import commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.cli.output import Table


def parts(name: str, document: Any) -> list[str | Table]:
    """The lines and tables that tell the answer of the command *name*."""
    module = __import__(f"teams_cli.cli.show.{commands.INDEX[name]}", fromlist=["SHOW"])
    shown: list[str | Table] = module.SHOW[name](document)
    return shown


def present(*lines: str | None) -> list[str | Table]:
    """The lines that are there."""
    return [line for line in lines if line]
