"""Teams as they are answered with."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.teams.teams import Team

PRIVATE = ("tokenHash", "launcher")
"""What is in the record of a member and in no answer."""


def to_document(team: Team) -> dict[str, Any]:
    """The team as JSON for everyone: without the hashes of tokens, and who launched what."""
    document = team.to_document()
    document.pop("humanTokenHash", None)
    members = [member.having().to_json() for member in team.roster()]
    document["members"] = [{k: v for k, v in m.items() if k not in PRIVATE} for m in members]
    return {**document, "secure": True} if team.secure else document
