"""The command on what agents took."""

from __future__ import annotations

from teams_cli.commands.declaration import Command, option, table
from teams_cli.views import spending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call

_DOC = """Show the tokens and the time that agents used, by agent, task or model, and the state of budgets.

Input is everything that the models read, with cached tokens. A client that does not report its use is unknown.
A turn for several tasks is divided evenly among them.
"""


def _usage(call: Call, by: str) -> Any:
    return spending.spent(call.store, call.load_team(), by, call.problems)


COMMANDS = table(
    "Agents",
    Command(
        "usage",
        _usage,
        option("--by", "What each row is for.", choices=spending.BY, default="agent"),
        doc=_DOC,
        reads=True,
        words="spending:spent",
        held="by",
        example="usage --by model",
        also="tokens cost costs budget spend spending",
    ),
)
