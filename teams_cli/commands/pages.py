"""Commands on pages."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.commands import task_documents
from teams_cli.commands.declaration import Command, argument, option, switch, table
from teams_cli.names import each_name
from teams_cli.tasks import agreements
from teams_cli.teams import pages
from teams_cli.teams.pages import Page
from teams_cli.teams.permission import standing_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call

_SHARED = """Show a page, or list all pages.

Raises:
    PageNotFound: There is no such page.
"""


def _share(call: Call, key: str, body: str | None, if_version: int | None, remove: bool) -> Any:
    if remove == (body is not None):
        raise errors.WrongUsage("the text of the page is missing", "Write: teams share KEY TEXT")
    page = pages.share(call.store, call.team, call.caller, key, body, if_version)
    return page.to_document() | task_documents.untold_pages(call)


def _shared(call: Call, key: str | None) -> Any:
    team = call.load_team()
    if key is None:
        call.words = "pages:listed"
        return [page.to_row() for page in pages.all_of(call.store, team.name, call.problems)]
    page = pages.get(call.store, team.name, key)
    if call.caller is not None and standing_of(team, call.caller):
        name = call.caller.name
        call.once_told(lambda: pages.note_seen(call.store, team.name, name, [page]))
    return page.to_document()


def _agree(call: Call, tasks: list[str], text: str | None, version: int | None) -> Any:
    if text is not None and version is not None:
        raise errors.WrongUsage("--version goes with a confirmation", "Propose another text without it.")
    ids = each_name(tasks)
    return agreements.agree(call.store, call.team, call.caller, ids, text, version).to_document()


COMMANDS = table(
    "Messages",
    Command(
        "share",
        _share,
        argument("KEY", "The name of the page.", name="key"),
        argument("TEXT", "The whole text; `-` reads it from standard input.", name="body", text=True, required=False),
        option(
            "--if-version",
            "Only if this is still its version; 0: if it does not exist.",
            type=int,
            metavar="N",
            seldom=True,
        ),
        switch("--remove", "Remove the page.", seldom=True),
        doc=pages.share,
        words="pages:changed",
        answers=Page,
        held="key body if_version remove",
        example='share api "GET /users gives a list" --if-version 2',
        also="share-page write-page publish set-page",
    ),
    Command(
        "shared",
        _shared,
        argument("KEY", "The name of the page.", name="key", required=False),
        doc=_SHARED,
        reads=True,
        words="pages:whole",
        held="key",
        example="shared api",
        also="pages get-pages list-pages read-page show-page page shared-page shared-pages",
    ),
    Command(
        "agree",
        _agree,
        argument("ID", "The tasks: 1,2.", name="tasks", many=True),
        option("--text", "Who changes what; `-` reads it from standard input.", text=True),
        option("--version", "Only if this is still the version.", type=int, metavar="N", seldom=True),
        doc=agreements.agree,
        words="pages:agreed",
        answers=Page,
        held="tasks text version",
        example='agree 1,2 --text "ann: Editor.edit; bob: Editor.open"',
        also="agreement confirm-agreement propose-interface",
    ),
)
