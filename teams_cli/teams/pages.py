"""Pages: what a team knows in common, each under a key: interfaces, decisions, findings; each change is a version."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.records.records import Record
from teams_cli.store.contract import Kind, Store
from teams_cli.store.retrying import upsert
from teams_cli.teams import presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.records.types import Count, Name, Text, Time
    from teams_cli.teams.presence import OnceTold

_LINE = 80


class PageNotFound(errors.NotFound):
    """The team has no such page."""


class Page(Record):
    """One page. `version` counts its changes from 1. One without text was taken away: its versions go on if it comes
    back, so that who read an older one is not taken for up to date.
    """

    key: Name
    text: Text | None = None
    version: Count
    author: Name
    created_at: Time
    updated_at: Time
    agreed: list[Name] | None = None
    """Who confirmed this version, of an agreement between tasks; its author does with writing it."""

    @property
    def agreed_by(self) -> list[str]:
        """Who agrees to this version."""
        return [self.author, *(self.agreed or ())]

    @property
    def line(self) -> str:
        """Its first line that says something, as far as it is short."""
        lines = (line.strip().lstrip("# ") for line in (self.text or "").splitlines())
        first = next(filter(None, lines), "")
        return text.clipped(first, _LINE)

    def to_row(self) -> dict[str, Any]:
        """The page as it is listed: without its text, of which its first line tells."""
        document = self.to_document()
        document.pop("text", None)
        return {**document, "line": self.line}

    @property
    def headline(self) -> str:
        """What is told of it to who has not looked: its key, its version, whose that is, and how it begins."""
        return f"page {self.key} (version {self.version} by {self.author}): {self.line}"

    @property
    def is_there(self) -> bool:
        """Whether it was not taken away."""
        return self.text is not None


PAGE: Kind[Page] = Kind("page", Page, key="key", logins="page")


def find(store: Store, team: str, key: str) -> Page | None:
    """The page of that key, also one that was taken away; None if there never was one."""
    try:
        return store.get(team, PAGE, key)[0]
    except errors.NotFound:
        return None


def get(store: Store, team: str, key: str) -> Page:
    """The page of that key.

    Raises:
        PageNotFound: There is none.
    """
    page = find(store, team, key)
    if page is None or not page.is_there:
        known = ", ".join(found.key for found in all_of(store, team, [])[:20])
        hint = f"Pages: {known}." if known else "Create it: teams share KEY TEXT"
        raise PageNotFound(f"team {team} has no page {key}", hint)
    return page


def all_of(store: Store, team: str, problems: list[errors.TeamsError]) -> list[Page]:
    """The pages that there are, by key."""
    return [page for page, _ in store.scan(team, PAGE, problems) if page.is_there]


def unseen(store: Store, team: str, agent: str) -> list[Page]:
    """The pages that others changed since the agent looked at them or was told of them, the newest first."""
    seen = presence.load(store, team, agent).pages or {}
    found = [page for page in all_of(store, team, []) if page.author != agent and seen.get(page.key) != page.version]
    return sorted(found, key=lambda page: page.updated_at, reverse=True)


def untold(store: Store, team: str, agent: str, once_told: OnceTold) -> list[Page]:
    """The pages that others changed since the agent looked or was told of them; it is told of them with this."""
    found = unseen(store, team, agent)
    if found:
        once_told(lambda: note_seen(store, team, agent, found))
    return found


def note_seen(store: Store, team: str, name: str, pages: list[Page]) -> None:
    """Note that the agent knows the pages as they are. Where that can't be written it will be told of them again."""
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
