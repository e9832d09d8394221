"""Commands on what the team knows: who the caller is, the brief, shared pages, and search."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.clock import age, ago, clock_time, short_length
from teams_cli.commands import task_documents
from teams_cli.commands.declaration import Command, Table, argument, in_group, option, row_limit, switch
from teams_cli.commands.task_documents import lines_of_pages
from teams_cli.names import each_name
from teams_cli.tasks import agreements, overviews
from teams_cli.teams import history, pages, roles, teams
from teams_cli.teams.pages import Page
from teams_cli.teams.permission import standing_of
from teams_cli.views import brief, search, steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.commands.declaration import Parts

    RankedLines = list[tuple[str, int]]
    """Lines of the brief with their ranks. If there is no room, the lines of the highest rank give way first."""


_LONGEST_BRIEF = 1500
"""The maximum number of characters of a brief. If there is more to show, the least important lines are left out."""
_MARKED_READ, _NEEDED, _USEFUL, _EXTRA = range(4)
"""The ranks of lines. The subjects of `_MARKED_READ` lines count as read, so these lines are left out last."""
_RESULT, _RESULT_IN_FULL = 120, 400
"""The maximum number of characters of a blocker's result, and the maximum in the first brief since the agent joined."""
_LONGEST_LIST = 300
"""The maximum length of a list of ended tasks with their owners. A list of only their numbers may be twice as long."""
_MOST_STALE = 10


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
        "sources": {setting: source for setting, (_, source) in sources.items()},
    }
    if not team_name and (own_teams := call.own_teams(call.open_teams())):
        document["memberOf"] = own_teams
    if not team_name or call.caller is None:
        return document
    try:
        team = teams.get(call.store, team_name)
    except errors.NotFound:
        return document
    member = team.member(call.caller.name)
    standing = standing_of(team, call.caller)
    document.update(role=standing.role if standing else None, member=member is not None)
    if member:
        document.update(agentName=member.agent_name, agentType=member.agent_type)
        if about := roles.about(member, team, call.config):
            document.update(about=about, skills=sorted(roles.skills_of(member, team, call.config)))
    return document


def _brief(call: Call) -> Any:
    caller = call.known_caller
    try:
        team = call.team
    except errors.NoTeam:  # the brief says how to name one
        return brief.outside(call.store, "", caller, call.own_teams(call.open_teams()))
    return brief.brief(call.store, team, caller, call.once_shown)


_SHARED = """Show a page, or list all pages.

Raises:
    PageNotFound: There is no such page.
"""


def _share(call: Call, key: str, body: str | None, if_version: int | None, remove: bool) -> Any:
    if remove and body is not None:
        raise errors.WrongUsage("--remove takes no text", f"Write: teams share {key} --remove")
    if not remove and body is None:
        raise errors.WrongUsage("the text of the page is missing", f"Write: teams share {key} TEXT")
    page = pages.share(call.store, call.team, call.caller, key, body, if_version)
    return page.to_document() | task_documents.unshown_pages(call)


def _shared(call: Call, key: str | None) -> Any:
    team = call.load_team()
    if key is None:
        call.words = words_of_pages
        return [page.to_row() for page in pages.all_of(call.store, team.name, call.problems)]
    page = pages.get(call.store, team.name, key)
    if call.caller is not None and standing_of(team, call.caller):
        name = call.caller.name
        call.once_shown(lambda: pages.note_seen(call.store, team.name, name, [page]))
    return page.to_document()


def _agree(call: Call, tasks: list[str], text: str | None, version: int | None) -> Any:
    if text is not None and version is not None:
        raise errors.WrongUsage("--version goes with a confirmation", "Propose another text without it.")
    ids = each_name(tasks)
    return agreements.agree(call.store, call.team, call.caller, ids, text, version).to_document()


_SEARCH = """Search the team's tasks, messages, results, notes and pages, the newest first.

A text is found if it has all the words, or longer words that begin with them; upper and lower case do not matter.
`tasks` are titles and descriptions, and `results` are outcomes. `notes` are the notes on tasks, and the reasons why
tasks were released, failed or cancelled. The history is searched only with --in history. --since takes a time, a day,
or how long ago: 90s, 10m, 2h, 1d.
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


def words_of_page_changed(page: dict[str, Any]) -> Parts:
    if "text" not in page:
        return [f"{page['key']}: removed"]
    return [f"{page['key']}: version {page['version']}", *lines_of_pages(page)]


def words_of_agreed(page: dict[str, Any]) -> Parts:
    names = text.listed([page["author"], *page.get("agreed", ())])
    return [f"{page['key']}: version {page['version']}, agreed to by {names}", *text.quoted(page["text"])]


def words_of_page(page: dict[str, Any]) -> Parts:
    head = f"{page['key']}: version {page['version']} by {page['author']}, {ago(page['updatedAt'])}"
    return [head, *text.quoted(page["text"])]


def words_of_pages(pages: list[dict[str, Any]]) -> Parts:
    rows = [[page["key"], str(page["version"]), page["author"], age(page["updatedAt"]), page["line"]] for page in pages]
    return [Table(["page", "version", "by", "age", "begins"], rows, "no pages")]


def words_of_hits(hits: list[dict[str, Any]]) -> Parts:
    rows = []
    for hit in hits:
        title = f" ({hit['title']})" if hit.get("title") and hit["in"] != "tasks" else ""
        rows.append([hit["in"], hit["id"], hit["from"] or "-", clock_time(hit["at"]), f"{hit['text']}{title}"])
    return [Table(["in", "id", "from", "at", "text"], rows)] if rows else ["nothing was found"]


def words_of_who(document: dict[str, Any]) -> Parts:
    root = f"root: {document['root']} ({document['sources']['root']})"
    if document["agentId"] is None:
        return ["unknown: name yourself with --as AGENT or TEAMS_AGENT_ID; a person is `human`", root]
    role = document["role"] or ("no member" if document["team"] else _membership(document))
    team = f" of team {document['team']}" if document["team"] else ""
    about = text.quoted(document.get("about"))
    return [f"{document['agentId']}: {role}{team}", *about, root]


def words_of_brief(document: dict[str, Any]) -> Parts:
    if "members" not in document:  # the reader is in no team
        if document["team"]:
            situation = f"team {document['team']} does not exist yet"
        else:
            is_open = document["teams"] and "memberOf" not in document
            open_teams = f"; teams: {', '.join(document['teams'][:20])}" if is_open else ""
            situation = _membership(document) + open_teams
        return [f"{document['agent']}: {situation}", f"next: {document['next']}"]
    lines = [*_own_lines(document), *_waiting_lines(document), *_team_lines(document)]
    if document["next"]:
        ending = f"next: {document['next']}"
    elif "closed" in document:  # the line about the closing says that the reader is done
        ending = ""
    else:
        ending = overviews.DONE
    head = (
        f"{document['agent']}: {document['role'] or 'no member'} of team {document['team']}"
        f" (leader {document['leader']}, {text.counted(document['members'], 'member')})"
    )
    room = _LONGEST_BRIEF - len(head) - len(ending) - 2  # two line breaks
    while lines and sum(len(line) + 1 for line, _ in lines) > room:  # leave out the longest line of the highest rank
        lines.remove(max(lines, key=lambda line_and_rank: (line_and_rank[1], len(line_and_rank[0]))))
    return [head, *(line for line, _ in lines), *ending.splitlines()]


def _membership(document: dict[str, Any]) -> str:
    """Return a phrase about the teams of an agent that named no team, and how to choose one of them."""
    if document.get("memberOf"):
        return f"a member of {', '.join(document['memberOf'][:20])}; choose with --team NAME or TEAMS_TEAM"
    return "in no team"


def _own_lines(document: dict[str, Any]) -> RankedLines:
    """Return the lines about the reader: its role, its tasks, changed pages, and its notices."""
    lines: RankedLines = []
    if "closed" in document:
        by = f" by {document['closedBy']}" if document.get("closedBy") else ""
        when = ago(document["closed"]["at"])
        lines.append((f"the team was closed{by} {when}: you are done", _NEEDED))
    lines += [(line, _NEEDED) for line in text.quoted(document.get("about"))]
    lines += [(line, _MARKED_READ) for line in text.quoted(document.get("rules"), "| ")]
    for task in document["myTasks"]:
        lines.append((f"yours: {task['id']} {task['title']}{_state(task)}", _NEEDED))
        lines += [(line, _NEEDED) for line in text.quoted(task.get("description"))]
        is_first_look = "description" in task
        most_characters = _RESULT_IN_FULL if is_first_look else _RESULT
        for blocker in task["results"]:
            result = text.clipped_line(blocker["result"], most_characters)
            lines.append((f"  {blocker['id']} ({blocker['owner']}): {result}", _USEFUL))
    if document["myTaskCount"] > len(document["myTasks"]):
        lines.append((f"your tasks: {document['myTaskCount']}: teams get-tasks --owner {document['agent']}", _NEEDED))
    lines += [(f"{page['text']} ({steps.read_page(page['key'])})", _NEEDED) for page in document.get("pages", ())]
    if document.get("morePages"):
        lines.append((f"{document['morePages']} more pages changed: teams shared", _NEEDED))
    return lines + [(line, _MARKED_READ) for line in document["news"]]


def _state(task: dict[str, Any]) -> str:
    """Return, in brackets, what an owner has to know about its task: the time left if short, blockers, its plan."""
    phrases = []
    if task["leaseEndsSoon"]:
        phrases.append(f"{short_length(task['leaseSeconds'])} left: any `teams` command renews it")
    if task["waitsFor"]:
        phrases.append(f"waits for {', '.join(task['waitsFor'])}")
    if task["plan"]:
        plan = "plan" if task["planId"] is None else task["planId"]
        phrases.append(f"{plan} {task['plan']}")
    return f" ({'; '.join(phrases)})" if phrases else ""


def _waiting_lines(document: dict[str, Any]) -> RankedLines:
    """Return the lines about mail, questions, plans and requests that wait for the reader."""
    least = "at least " if document.get("moreUnread") else ""
    lines: list[str | None] = [
        f"asked to shut down: {document['shutdown']}" if document["shutdown"] else None,
        f"unread: {least}{document['unread']} ({', '.join(document['unreadFrom'])})" if document["unread"] else None,
        _first("read, still open", document["unhandled"], document["unhandledCount"], "teams read-messages --peek"),
        *(f"overdue: {row['id']} is not acknowledged by {', '.join(row['waitsFor'])}" for row in document["overdue"]),
        _first("questions to you", document["questions"], document["questionCount"], "teams get-questions"),
        _first("plans waiting for you", document["plans"], document["planCount"], "teams get-plans --open"),
        *(f"  {plan['id']} of {plan['from']}: {plan['plan']}" for plan in document["proposed"]),
    ]
    return [(line, _NEEDED) for line in lines if line]


def _first(label: str, ids: list[str], count: int, command: str) -> str | None:
    """Return a line with the *ids* of the first things that wait for the reader; None if nothing waits. If *count*, the
    number of all that wait, is higher, the line names the *command* that lists them.
    """
    if not ids:
        return None
    more = f" and {count - len(ids)} more: {command}" if count > len(ids) else ""
    return f"{label}: {', '.join(ids)}{more}"


def _team_lines(document: dict[str, Any]) -> RankedLines:
    """Return the lines about the work of the team: ended and blocked tasks, other changes, and counts."""
    lines: RankedLines = []
    for status in ("completed", "failed"):
        ended_tasks = [_end(each, document["leads"]) for each in document["finished"] if each["status"] == status]
        if ended_tasks:
            lines.append((f"{status}: {_named(ended_tasks)}", _NEEDED))
    if document["stale"] and document["leads"]:
        lines.append((f"checked on commits that did not land: {', '.join(document['stale'][:_MOST_STALE])}", _NEEDED))
    if document["stuck"]:
        lines.append((f"blocked by failed tasks: {', '.join(document['stuck'][:5])}", _USEFUL))
    if document["moreChanges"]:
        other_changes = text.counted(document["moreChanges"], "other change")
        lines.append((f"{other_changes}: teams history --since {document['since']}", _EXTRA))
    counts = ", ".join(f"{count} {status}" for status, count in document["tasks"].items()) or "none"
    return [*lines, (f"tasks: {counts}; ready: {document['ready']}", _USEFUL)]


def _end(task: dict[str, Any], leads: bool) -> str:
    """Describe a finished task: its owner and, if the reader *leads*, whether it was checked and who accepted it."""
    phrases = [task["by"]]
    if leads and task.get("checked"):
        phrases.append("checked")
    if leads and "acceptedBy" in task:
        phrases.append(f"accepted by {task['acceptedBy']}")
    return f"{task['id']} ({', '.join(phrases)})"


def _named(ended: list[str]) -> str:
    """Return the *ended* tasks as one text. If that is too long, return only their numbers, or only their count."""
    in_full = ", ".join(ended)
    if len(in_full) <= _LONGEST_LIST:
        return in_full
    numbers = ", ".join(each.partition(" ")[0].removeprefix("task-") for each in ended)
    return numbers if len(numbers) <= 2 * _LONGEST_LIST else f"{len(ended)} tasks: teams get-tasks"


COMMANDS = (
    in_group(
        "Teams",
        Command(
            "whoami",
            _whoami,
            doc="Show your name, role and type in the team, where the teams are kept, and the source of each value.",
            words=words_of_who,
            traits="reads outside",
            held="",
            example="whoami",
            also="me who-am-i",
        ),
        Command(
            "brief",
            _brief,
            doc=brief.brief,
            changes=False,
            words=words_of_brief,
            traits="daily quiet",
            held="",
            example="brief",
            want="show your tasks, what waits for you, and your next command",
            also="status state next start get-status show-status overview summary sync my-tasks mine begin",
        ),
    )
    | in_group(
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
                "Share only if the page has this version; 0 means that there is no page yet.",
                type=int,
                metavar="N",
                seldom=True,
            ),
            switch("--remove", "Remove the page.", seldom=True),
            doc=pages.share,
            words=words_of_page_changed,
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
            words=words_of_page,
            traits="reads",
            held="key",
            example="shared api",
            also="pages get-pages list-pages read-page show-page page shared-page shared-pages",
        ),
        Command(
            "agree",
            _agree,
            argument("ID", "The ids of the tasks, such as 1,2.", name="tasks", many=True),
            option("--text", "Who changes what; `-` reads it from standard input.", text=True),
            option("--version", "Confirm only if the agreement has this version.", type=int, metavar="N", seldom=True),
            doc=agreements.agree,
            words=words_of_agreed,
            answers=Page,
            held="tasks text version",
            example='agree 1,2 --text "ann: Editor.edit; bob: Editor.open"',
            also="agreement confirm-agreement propose-interface",
        ),
    )
    | in_group(
        "Inspect",
        Command(
            "search",
            _search,
            argument("WORDS", "What to search for.", many=True, name="words"),
            option(
                "--in",
                "Search only there; you can give the option several times.",
                choices=search.PLACES,
                many=True,
                name="places",
            ),
            option("--from", "Only texts by this agent.", metavar="AGENT", name="sender"),
            option("--since", "Only changes from this time on.", metavar="TIME"),
            row_limit(f"Show at most N texts; the default is {_HITS}."),
            doc=_SEARCH,
            words=words_of_hits,
            traits="reads",
            held="words places sender since limit",
            example="search parser --in results",
            also="find grep",
        ),
    )
)
