"""Which versions of a client our hooks and our server were tried with, and what is said of others."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.clients.contract import Client

_PATIENCE = 30


class Versions:
    """The *oldest* that was tried, and the first that is *too_new*, with the reason; that may be empty."""

    def __init__(self, oldest: str, too_new: str = "", why: str = "") -> None:
        self.oldest = oldest
        self.too_new = too_new
        self.why = why


def said_by(program: str, environ: Mapping[str, str]) -> str:
    """What the program says of its version."""
    import subprocess

    try:
        words = [program, "--version"]
        done = subprocess.run(
            words, env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired):
        return "does not say its version"
    return (done.stdout.strip() or done.stderr.strip() or "does not say its version").splitlines()[0]


def trouble(client: Client, said: str) -> tuple[str, str]:
    """What is wrong with that version of the client, and what to do about it; both empty if nothing is."""
    import re  # dear for hooks, which know of clients too

    found, known = re.search(r"\d+(\.\d+)+", said), client.versions
    if not found or not known:
        return "", ""
    if known.too_new and _numbers(found[0]) >= _numbers(known.too_new):
        return f"{client.name} {found[0]} is too new: {known.why}", f"Use {client.name} below {known.too_new}."
    if _numbers(found[0]) < _numbers(known.oldest):
        return f"{client.name} {found[0]} is older than {known.oldest}, the oldest that was tried", "Update it."
    return "", ""


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]
