"""The team of a repository in words."""

from __future__ import annotations

from teams_cli.cli.show import present
from teams_cli.cli.show.teams import client_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.cli.tables import Table

    Parts = list[str | Table]


def risen(done: dict[str, Any]) -> Parts:
    return present(
        f"{done['team']}: {'created' if done['created'] else 'exists'}; its leader is {done['leader']}",
        *(f"{member['name']}: {member['state']}, {member['role']}{_kept(member)}" for member in done["members"]),
        f"pages: {', '.join(done['pages'])}" if done["pages"] else None,
        f"tasks: {', '.join(done['tasks'])}" if done["tasks"] else None,
    )


def _kept(member: dict[str, Any]) -> str:
    return f" (not {member['said']}: members keep their role)" if "said" in member else ""


def ended(done: dict[str, Any]) -> Parts:
    return present(
        f"{done['team']}: closed",
        f"stopped: {', '.join(done['stopped'])}" if done["stopped"] else None,
        *(client_left(done["team"], name) for name in done.get("leftClients", ())),
    )
