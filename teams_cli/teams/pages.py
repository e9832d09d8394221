"""Pages: texts that a team shares, such as interfaces and decisions, each under a key. Each change makes a new
version.
"""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.names import SYSTEM, check_key
from teams_cli.records.records import Record
from teams_cli.store.contract import Kind, Store, get_if_there, update, upsert
from teams_cli.teams import history, presence, teams
from teams_cli.teams.permission import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.records.types import Count, Name, Text, Time
    from teams_cli.teams.permission import Caller
    from teams_cli.teams.presence import OnceShown


_MAX_LINE = 80


class PageNotFound(errors.NotFound):
    """The team has no such page."""


class Page(Record):
    """One page. `version` counts its changes from 1.

    A removed page is kept without its text. If a page is written under the same key again, it gets the next version. So
    an agent never mistakes the new page for the old version that it has read.
    """

    key: Name
    text: Text | None = None
    version: Count
    author: Name
    created_at: Time
    updated_at: Time
    agreed: list[Name] | None = None
    """For an agreement between tasks: the members who confirmed this version. The author is not among them, but agrees
    by writing the version.
    """

    @property
    def agreed_by(self) -> list[str]:
        """The members who agree to this version: its author, and the members who confirmed it."""
        return [self.author, *(self.agreed or ())]

    @property
    def line(self) -> str:
        """The first line of the text that is not blank. It is shortened, if necessary."""
        lines = (line.strip().lstrip("# ") for line in (self.text or "").splitlines())
        return text.clipped(next(filter(None, lines), ""), _MAX_LINE)

    def to_row(self) -> dict[str, Any]:
        """Return the page as a row of a list, with its first line instead of its text."""
        document = self.to_document()
        document.pop("text", None)
        return {**document, "line": self.line}

    @property
    def headline(self) -> str:
        """The page on one line: its key, version and author, and the first words of its text."""
        return f"page {self.key} (version {self.version} by {self.author}): {self.line}"

    @property
    def is_there(self) -> bool:
        """Whether the page was not removed."""
        return self.text is not None


PAGE: Kind[Page] = Kind("page", Page, key="key", logins="page")


def find(store: Store, team: str, key: str) -> Page | None:
    """Return the page with that key, even if it was removed; None if there was never such a page."""
    return get_if_there(store, team, PAGE, key)


def get(store: Store, team: str, key: str) -> Page:
    """Return the page with that key.

    Raises:
        PageNotFound: There is no such page, or it was removed.
    """
    page = find(store, team, key)
    if page is None or not page.is_there:
        keys = ", ".join(page.key for page in all_of(store, team, [])[:20])
        hint = f"Pages: {keys}." if keys else "Create it: teams share KEY TEXT"
        raise PageNotFound(f"team {team} has no page {key}", hint)
    return page


def all_of(store: Store, team: str, problems: list[errors.TeamsError]) -> list[Page]:
    """Return the pages that were not removed, sorted by key. *problems* gets the errors of damaged pages."""
    return [page for page, _ in store.scan(team, PAGE, problems) if page.is_there]


def unseen(store: Store, team: str, agent: str) -> list[Page]:
    """Return the pages by other members whose present version the agent neither read nor was notified of. The newest
    page is first.
    """
    seen = presence.load(store, team, agent).pages or {}
    by_others = (page for page in all_of(store, team, []) if page.author != agent)
    changed = [page for page in by_others if seen.get(page.key) != page.version]
    return sorted(changed, key=lambda page: page.updated_at, reverse=True)


def unshown(store: Store, team: str, agent: str, once_shown: OnceShown) -> list[Page]:
    """Return the pages that `unseen` returns, to show them to the agent. *once_shown* gets a function, to be called
    after they were shown, which records that the agent knows them.
    """
    changed = unseen(store, team, agent)
    if changed:
        once_shown(lambda: note_seen(store, team, agent, changed))
    return changed


def note_seen(store: Store, team: str, name: str, pages: list[Page]) -> None:
    """Record that the agent knows the present versions of the pages. Ignore errors: at worst, it is notified again."""
    if not pages:
        return
    versions = {page.key: page.version for page in pages}

    def change(agent: presence.Agent) -> presence.Agent:
        seen = {**(agent.pages or {}), **versions}
        return agent if seen == agent.pages else agent.having(pages=seen)

    try:
        upsert(store, team, presence.AGENT, name, presence.Agent(agent=name), change)
    except errors.TeamsError:
        return


MOST = 200
"""The largest number of pages of a team."""
MAX_PAGE = 64 * 1024


class StaleVersion(errors.Conflict):
    """The page does not have the version that the caller read."""


def share(
    store: Store, team_name: str, caller: Caller | None, key: str, body: str | None, if_version: int | None = None
) -> Page:
    """Share a page with the team: an interface, a decision, a finding.

    The other members are notified once. The later of two changes wins, unless --if-version forbids it. Sharing the same
    text again changes nothing.

    Raises:
        StaleVersion: The page does not have the version given with *if_version*; 0 means that there is no page yet.
        PageNotFound: There is no page to remove.
        Conflict: The team has 200 pages already.
    """
    name = check(store, team_name, caller, key, body)
    now = teams.now(store)
    fresh = Page(key=key, version=_highest_known(store, team_name, key), author=SYSTEM, created_at=now, updated_at=now)

    def change(page: Page) -> Page:
        version = page.version if page.is_there else 0  # a removed page keeps its number
        is_repeated = page.version > 0 and (page.text, page.author) == (body, name)
        # A repeated command names the version before its own change.
        is_expected = if_version in (None, version) or (is_repeated and if_version == page.version - 1)
        if not is_expected:
            raise StaleVersion(
                f"page {page.key} has version {version}, not {if_version}"
                + (f": {page.author} changed it" if version else ""),
                f"Read it and try again: teams shared {page.key}" if version else "Share it with --if-version 0.",
            )
        if is_repeated or (page.is_there and page.text == body and if_version is None):
            return page
        if body is None and not page.is_there:
            raise PageNotFound(f"there is no page {page.key}", "See: teams shared")
        return page.having(text=body, version=page.version + 1, author=name, updated_at=now, agreed=None)

    before, page = upsert(store, team_name, PAGE, key, fresh, change)
    if before is not page:
        if page.is_there and not before.is_there:
            _refuse_late(store, team_name, page)
        what = "page shared" if page.is_there else "page taken away"
        history.note(store, team_name, name, what, page=key, version=page.version)
    note_seen(store, team_name, name, [page])
    return page


def _highest_known(store: Store, team: str, key: str) -> int:
    """Return the highest version of the page that any agent knows; 0 if the page has a record, which has its version.
    After a damaged record was removed, a new page needs a higher version than agents know.
    """
    if find(store, team, key) is not None:
        return 0
    known_versions = ((agent.pages or {}).get(key) for agent, _ in store.scan(team, presence.AGENT, []))
    return max((version for version in known_versions if isinstance(version, int)), default=0)


def check(store: Store, team_name: str, caller: Caller | None, key: str, body: str | None) -> str:
    """Refuse a change of the page that can't be made, before anything is written. *body* is the new text; None removes
    the page. Return the name of the caller, who is the author of the change.

    Raises:
        InvalidValue: The key does not have the form of a key, or the text is blank or too long.
        AlreadyExists: There is a page whose key differs only in case.
        Conflict: The team has as many pages as it may have.
    """
    name = require(store, team_name, caller, "share", key).name
    check_key(key, "page")
    if body is not None:
        check_text(body)
        page = find(store, team_name, key)
        if page is None or not page.is_there:
            refuse_new_page(store, team_name, key)
    return name


def check_text(body: str) -> str:
    """Return *body* if it can be the text of a page: neither blank nor too long."""
    return text.checked(body, "page", MAX_PAGE)


def refuse_new_page(store: Store, team: str, key: str) -> None:
    """Refuse a new page if the team has as many pages as it may have, or if the new key differs from another page's key
    only in case.
    """
    pages = [page for page, _ in store.scan(team, PAGE, [])]
    if sum(page.is_there for page in pages) >= MOST:
        raise _too_many(team)
    for page in pages:
        if page.key != key and page.key.lower() == key.lower():
            raise errors.AlreadyExists(f"there is a page {page.key} already", f"Write: teams share {page.key} TEXT")


def _refuse_late(store: Store, team: str, new_page: Page) -> None:
    """If the team has too many pages, because others were stored at the same time, remove *new_page* and raise an
    error.
    """
    try:
        if len(all_of(store, team, [])) <= MOST:
            return
    except errors.TeamsError:  # the page is stored, and nobody knows whether it is one too many
        return

    def without_text(page: Page) -> Page:
        return page if page.version != new_page.version else page.having(text=None, version=page.version + 1)

    update(store, team, PAGE, new_page.key, without_text)
    raise _too_many(team)


def _too_many(team: str) -> errors.Conflict:
    return errors.Conflict(
        f"team {team} has {MOST} pages, the most allowed",
        "Extend one (see: teams shared), or remove one: teams share KEY --remove",
    )
