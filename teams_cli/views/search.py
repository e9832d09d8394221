"""Searching a team by words: its tasks, messages, results, notes, pages and history; computed, never stored."""

from __future__ import annotations

from itertools import islice

from teams_cli import errors
from teams_cli.clock import parse_rfc3339
from teams_cli.messages.messages import MESSAGE
from teams_cli.store.contract import Store
from teams_cli.tasks.tasks import TASK
from teams_cli.teams import history
from teams_cli.teams.pages import PAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from typing import Any

    Hit = dict[str, Any]

PLACES = ("tasks", "messages", "results", "notes", "pages", "history")
_BY_DEFAULT = PLACES[:-1]
"""The places that are searched by default. The history is not one of them, because it repeats what they contain."""
_AROUND = 70
"""How many characters of a text are shown before the match. Twice as many are shown after it."""


class Wanted:
    """The conditions of a search. A text matches if it meets all of them: each word of *query* begins a word of the
    text, *sender* wrote the text, and it is not older than *since*. None for *sender* or *since* sets no condition.
    """

    def __init__(self, query: str, sender: str | None = None, since: datetime | None = None) -> None:
        import re  # slow to import, and `brief` is declared beside `search`

        self.words = list(dict.fromkeys(re.findall(r"[^\W_]+", query.lower())))
        self.sender = sender
        self.since = since
        self._patterns = [re.compile(rf"(?<![^\W_]){word}") for word in self.words]

    def excerpt(self, text: str) -> str | None:
        """Return the part of the text around its first match, on one line; None if one of the words is missing."""
        folded = text.lower()
        matches = [pattern.search(folded) for pattern in self._patterns]
        if not all(matches):
            return None
        first = min(match.start() for match in matches if match)
        if len(folded) != len(text):  # some letters are longer in lower case, so positions differ
            first = 0
        start, end = max(0, first - _AROUND), first + 2 * _AROUND
        excerpt = " ".join(text[start:end].split())
        return f"{'…' if start else ''}{excerpt}{'…' if end < len(text) else ''}"

    def admits(self, sender: str | None, written_at: str | None) -> bool:
        """Return whether a text that *sender* wrote at *written_at* meets the conditions about author and time."""
        if self.sender is not None and sender != self.sender:
            return False
        return self.since is None or (written_at is not None and parse_rfc3339(written_at) >= self.since)


def search(
    store: Store, team: str, wanted: Wanted, places: Sequence[str], limit: int, problems: list[errors.TeamsError]
) -> list[Hit]:
    """Return the newest texts that meet the conditions *wanted*, at most *limit*, the newest first. *places* names what
    to search, such as `messages`. If it is empty, everything except the history is searched.

    Raises:
        InvalidValue: The query has no letter or digit.
    """
    if not wanted.words:
        raise errors.InvalidValue("the words to search for are missing", "Give letters or digits: teams search WORDS")
    chosen = list(places) or list(_BY_DEFAULT)
    hits: list[Hit] = []
    if "messages" in chosen:
        hits += islice(_in_messages(store, team, wanted, problems), limit)
    if {"tasks", "results", "notes"}.intersection(chosen):
        hits += _in_tasks(store, team, wanted, chosen, problems)
    if "pages" in chosen:
        hits += _in_pages(store, team, wanted, problems)
    if "history" in chosen:
        hits += _in_history(store, team, wanted)
    hits.sort(key=lambda hit: hit["at"] or "", reverse=True)
    return hits[:limit]


def _hit(place: str, key: str, at: str | None, sender: str | None, text: str, **more: Any) -> Hit:
    return {"in": place, "id": key, "at": at, "from": sender, "text": text, **more}


def _in_messages(store: Store, team: str, wanted: Wanted, problems: list[errors.TeamsError]) -> Iterator[Hit]:
    for message in store.search(team, MESSAGE, wanted.words, problems):
        if wanted.since is not None and parse_rfc3339(message.timestamp) < wanted.since:
            return  # newer messages come first, so all others are older
        excerpt = wanted.excerpt(message.message) if wanted.admits(message.from_, message.timestamp) else None
        if excerpt is not None:
            yield _hit("messages", message.id, message.timestamp, message.from_, excerpt, to=message.to)


def _in_tasks(
    store: Store, team: str, wanted: Wanted, chosen: Sequence[str], problems: list[errors.TeamsError]
) -> Iterator[Hit]:
    """Yield a hit for each part of a task that matches and whose place is in *chosen*."""
    for task in store.search(team, TASK, wanted.words, problems):
        body = "\n".join(filter(None, [task.title, task.description, task.prompt, task.run, *task.require]))
        if wanted.excerpt(body) is None:  # then the query may also be the task's id, which the answer shows anyway
            body = f"{body}\n{task.id}"
        parts: list[tuple[str, str | None, str | None, str]] = [
            ("tasks", task.updated_at or task.created_at, task.created_by, body),
            ("results", task.completed_at or task.updated_at, task.owner, task.result or ""),
            *(("notes", note.at, note.by, note.added or note.reason or "") for note in task.notes),
        ]
        for place, written_at, sender, text in parts:
            if place in chosen and wanted.admits(sender, written_at) and text and (excerpt := wanted.excerpt(text)):
                yield _hit(place, task.id, written_at, sender, excerpt, title=task.title, status=task.status)


def _in_pages(store: Store, team: str, wanted: Wanted, problems: list[errors.TeamsError]) -> Iterator[Hit]:
    for page in store.search(team, PAGE, wanted.words, problems):
        if not wanted.admits(page.author, page.updated_at) or page.text is None:
            continue
        if excerpt := wanted.excerpt(f"{page.text}\n{page.key}"):
            yield _hit("pages", page.key, page.updated_at, page.author, excerpt, version=page.version)


def _in_history(store: Store, team: str, wanted: Wanted) -> Iterator[Hit]:
    for position, entry in history.since(store, team, wanted.since):
        if wanted.sender not in (None, entry.get("actor")):
            continue
        line = " ".join([history.line(entry), str(entry.get("title", ""))])
        if excerpt := wanted.excerpt(line):
            yield _hit("history", str(position), entry.get("at"), entry.get("actor"), excerpt)
