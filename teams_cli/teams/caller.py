"""The caller of a command, and the rules for it beyond its role."""

from __future__ import annotations

from teams_cli.names import HUMAN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from teams_cli.teams.config import Config

    Approve = Callable[[str, str], bool]


class Caller:
    """An agent or the human, as a face of the program found it out.

    *type* is what the environment says of an agent that has not joined yet; once it has, the team's files say its
    role. *approve* puts a request to the human, where there is one to ask.
    """

    def __init__(
        self,
        name: str,
        *,
        display: str = "",
        type: str = "",
        token: str = "",
        config: Config | None = None,
        approve: Approve | None = None,
    ) -> None:
        self.name = name
        self.display = display
        self.type = type
        self.token = token
        self.config = config
        self.approve = approve

    @property
    def is_human(self) -> bool:
        return self.name == HUMAN
