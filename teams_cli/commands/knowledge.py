"""Commands on what the team knows: who the caller is, the brief, shared pages, and search."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.commands import task_documents
from teams_cli.commands.declaration import Command, argument, option, switch, table
from teams_cli.names import each_name
from teams_cli.tasks import agreements
from teams_cli.teams import history, pages, roles, teams
from teams_cli.teams.pages import Page
from teams_cli.teams.permission import standing_of
from teams_cli.views import brief, search

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call


_WHOAMI = """Show your name, role and type in the team, where the teams are kept, and the source of each value."""


def _whoami(call: Call) -> Any:
    sources = call.name_sources()
    team_name = sources["team"][0]
    document: dict[str, Any] = {
        "agentId": call.caller.name if call.caller else None,
        "agentName": (call.caller.display or None) if call.caller else None,
        "agentType": (call.caller.type or None) if call.caller else None,
        "role": None,
        "team": team_name or None,
        "member": False,
        "root": call.store.root,
        "store": call.store.address,
        "sources": {what: source for what, (_, source) in sources.items()},
    }
    if not team_name and (own := call.own_teams(call.open_teams())):
        document["memberOf"] = own
    if not team_name or call.caller is None:
        return document
    try:
        team = teams.get(call.store, team_name)
    except errors.NotFound:
        return document
    member = team.member(call.caller.name)
    document.update(role=brief.role_of(team, call.caller), member=member is not None)
    if member:
        document.update(agentName=member.agent_name, agentType=member.agent_type)
        if about := roles.about(member, team, call.config):
            document.update(about=about, skills=sorted(roles.skills_of(member, team, call.config)))
    return document


def _brief(call: Call) -> Any:
    caller = call.known
    try:
        team = call.team
    except errors.NoTeam:  # then what to do about that is what is next
        return brief.outside(call.store, "", caller, call.own_teams(call.open_teams()))
    return brief.brief(call.store, team, caller, call.once_told)


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
        call.words = "questions:pages"
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


_SEARCH = """Search the team's tasks, messages, results, notes and pages, the newest first.

A text is found if it has all the words, or longer words that begin with them, in any case. `tasks` are titles and
descriptions, `results` are outcomes, and `notes` are reasons why tasks were released, failed or cancelled. Add --in
history for the history. --since takes a time, a day, or how long ago: 90s, 10m, 2h, 1d.
"""
_HITS = 50


def _search(
    call: Call,
    words: tuple[str, ...],
    places: tuple[str, ...],
    sender: str | None,
    since: str | None,
    limit: int | None,
) -> Any:
    team = call.load_team().name
    moment = history.moment(since, call.store.now()) if since else None
    wanted = search.Wanted(" ".join(words), sender, moment)
    return search.search(call.store, team, wanted, places, limit or _HITS, call.problems)


COMMANDS = (
    table(
        "Teams",
        Command(
            "whoami",
            _whoami,
            doc=_WHOAMI,
            reads=True,
            words="teams:who",
            outside=True,
            held="",
            example="whoami",
            also="me who-am-i",
        ),
        Command(
            "brief",
            _brief,
            doc=brief.brief,
            changes=False,
            words="teams:brief",
            daily=True,
            quiet=True,
            held="",
            example="brief",
            want="your tasks, what waits for you, your next command",
            also="status state next start get-status show-status overview summary sync my-tasks mine begin",
        ),
    )
    | table(
        "Messages",
        Command(
            "share",
            _share,
            argument("KEY", "The name of the page.", name="key"),
            argument(
                "TEXT", "The whole text; `-` reads it from standard input.", name="body", text=True, required=False
            ),
            option(
                "--if-version",
                "Share it only if this is still its version; 0: if it does not exist.",
                type=int,
                metavar="N",
                seldom=True,
            ),
            switch("--remove", "Remove the page.", seldom=True),
            doc=pages.share,
            words="questions:page_changed",
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
            words="questions:page",
            held="key",
            example="shared api",
            also="pages get-pages list-pages read-page show-page page shared-page shared-pages",
        ),
        Command(
            "agree",
            _agree,
            argument("ID", "The tasks: 1,2.", name="tasks", many=True),
            option("--text", "Who changes what; `-` reads it from standard input.", text=True),
            option("--version", "Confirm it only if this is still its version.", type=int, metavar="N", seldom=True),
            doc=agreements.agree,
            words="questions:agreed",
            answers=Page,
            held="tasks text version",
            example='agree 1,2 --text "ann: Editor.edit; bob: Editor.open"',
            also="agreement confirm-agreement propose-interface",
        ),
    )
    | table(
        "Inspect",
        Command(
            "search",
            _search,
            argument("WORDS", "What to search for.", many=True, name="words"),
            option("--in", "Search only there; may be repeated.", choices=search.PLACES, many=True, name="places"),
            option("--from", "Only texts by this agent.", metavar="AGENT", name="sender"),
            option("--since", "Only changes from this time on.", metavar="TIME"),
            option("--limit", f"At most N; the default is {_HITS}.", type=int, least=1, metavar="N"),
            doc=_SEARCH,
            reads=True,
            words="inspection:hits",
            held="words places sender since limit",
            example="search parser --in results",
            also="find grep",
        ),
    )
)
