"""Landings in words."""

from __future__ import annotations

from teams_cli import text
from teams_cli.cli.show import age, moment, present
from teams_cli.cli.tables import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Parts = list[str | Table]

_COMMIT = 10


def asked(landing: dict[str, Any]) -> Parts:
    """Show a landing with the command that follows."""
    step = f"next: teams wait --landing {landing['id']}"
    return [*over(landing), *([step] if landing["state"] in ("queued", "checking") else [])]


def over(landing: dict[str, Any]) -> Parts:
    """How it stands; of one that came back all that its owner has to know."""
    what = f"{landing['id']}: {landing['state']}, {landing['task']} onto {landing['onto']}"
    check = landing.get("checked") or {}
    at = f" is {landing['merge'][:_COMMIT]}" if landing["state"] == "landed" and "merge" in landing else ""
    return present(
        what + at,
        *_conflict(landing),
        f"check: {check['command']}: exit status {check['status']}" if check.get("status") else None,
        *(text.quoted(check["output"]) if check.get("status") else ()),
        *text.quoted(landing.get("reason")),
        f"pull request: {landing['url']}" if "url" in landing else None,
        f"to fix it: git merge {landing['onto']}, edit, commit" if landing["state"] == "red" else None,
    )


def _conflict(landing: dict[str, Any]) -> list[str]:
    """The places in which it conflicts, with whose work, and what to do."""
    if not landing.get("files"):
        return []
    from teams_cli.agents import regions  # dear, and few landings conflict

    onto, against = landing["onto"], landing.get("against")
    cause = f" with {against['owner']}'s {against['task']}, landed {moment(against['at'])}" if against else ""
    known = {place["file"]: place for place in landing.get("places") or ()}
    places = [regions.in_words(known[name]) if name in known else name for name in landing["files"]]
    how = f"to fix it: git merge {onto}, resolve, commit"
    return [f"conflict{cause} in:", *(f"  {place}" for place in places), how]


def rows(landings: list[dict[str, Any]]) -> Parts:
    columns = ["landing", "state", "task", "owner", "commit", "onto", "age", "about"]
    return [Table(columns, [_row(landing) for landing in landings], "no landings")]


def _row(landing: dict[str, Any]) -> list[str]:
    check = landing.get("checked") or {}
    about = text.listed(landing.get("files", ())) or landing.get("reason") or ""
    if landing["state"] == "red":
        about = f"{check.get('command')}: exit status {check.get('status')}"
    return [
        landing["id"],
        landing["state"],
        landing["task"],
        landing.get("owner", "-"),
        landing["head"][:_COMMIT],
        landing["onto"],
        age(landing["createdAt"]),
        about or landing["title"],
    ]


def whole(landings: list[dict[str, Any]]) -> Parts:
    """Show a landing in full."""
    (landing,) = landings
    names = ("title", "owner", "branch", "repository", "head", "base", "merge", "check", "createdAt", "endedAt")
    return [*over(landing), *(f"{name}: {landing[name]}" for name in names if name in landing)]
