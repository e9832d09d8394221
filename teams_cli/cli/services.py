"""Servers that a command answers with; each is imported only when it is to run."""

from __future__ import annotations

import gc
from importlib import import_module

from teams_cli import errors
from teams_cli.environment import to_install

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.commands.answers import Service
    from teams_cli.commands.call import Call


def run(call: Call, service: Service) -> int:
    """Run the server until it ends; the exit status.

    Raises:
        ExtensionMissing: The extra that brings what it needs is missing.
    """
    gc.set_threshold(700, 10, 10)
    try:
        module = import_module(f"teams_cli.{service.module}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("teams_cli"):
            raise
        raise errors.ExtensionMissing(
            f"this needs the Python package {error.name}, which is not installed", to_install(service.extra)
        ) from None
    return int(module.run(call, service.settings))
