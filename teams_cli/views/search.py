"""Searching a team by words: its tasks, messages, results, notes, pages and history; computed, never stored."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import parse_rfc3339
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.store.contract import Store
from teams_cli.tasks.tasks import TASK, Task
from teams_cli.teams import history
from teams_cli.teams.pages import PAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from typing import Any

    Hit = dict[str, Any]

PLACES = ("tasks", "messages", "results", "notes", "pages", "history")
_UNLESS_SAID = PLACES[:-1]
"""The history repeats what the others say."""
_AROUND = 70


class Wanted:
    """A search: the words, each the beginning of a word of the text, the author, and the time since when."""

    def __init__(self, said: str, sender: str | None = None, since: datetime | None = None) -> None:
        import re  # dear, and `brief` is declared beside the command that searches

        self.words = list(dict.fromkeys(re.findall(r"[^\W_]+", said.lower())))
        self.sender = sender
        self.since = since
        self._each = [re.compile(rf"(?<![^\W_]){word}") for word in self.words]

    def excerpt(self, text: str) -> str | None:
        """The text around the first of the words, on one line; None if one of them is missing."""
        folded = text.lower()
        found = [pattern.search(folded) for pattern in self._each]
        if not all(found):
            return None
        first = min(match.start() for match in found if match)
        if len(folded) != len(text):  # places in one are not those in the other
            first = 0
        start, end = max(0, first - _AROUND), first + 2 * _AROUND
        cut = " ".join(text[start:end].split())
        return f"{'…' if start else ''}{cut}{'…' if end < len(text) else ''}"

    def admits(self, sender: str | None, at: str | None) -> bool:
        """Whether something of that sender and time is looked for."""
        if self.sender is not None and sender != self.sender:
            return False
        return self.since is None or (at is not None and parse_rfc3339(at) >= self.since)


def search(
    store: Store, team: str, wanted: Wanted, places: Sequence[str], limit: int, problems: list[errors.TeamsError]
) -> list[Hit]:
    """The texts that have all the words, the newest first; at most so many. Without places, everywhere but in the
    history.

    Raises:
        InvalidValue: There is no letter or digit to look for.
    """
    if not wanted.words:
        raise errors.InvalidValue("the words to search for are missing", "Give letters or digits: teams search WORDS")
    chosen = list(places) or list(_UNLESS_SAID)
    found: list[Hit] = []
    if "messages" in chosen:
        found += _first(_in_messages(store, team, wanted, problems), limit)
    if {"tasks", "results", "notes"}.intersection(chosen):
        found += _in_tasks(store, team, wanted, chosen, problems)
    if "pages" in chosen:
        found += _in_pages(store, team, wanted, problems)
    if "history" in chosen:
        found += _in_history(store, team, wanted)
    found.sort(key=lambda hit: hit["at"] or "", reverse=True)
    return found[:limit]


def _first(hits: Iterator[Hit], limit: int) -> Iterator[Hit]:
    for _, hit in zip(range(limit), hits, strict=False):
        yield hit


def _hit(place: str, key: str, at: str | None, sender: str | None, text: str, **more: Any) -> Hit:
    return {"in": place, "id": key, "at": at, "from": sender, "text": text, **more}


def _in_messages(store: Store, team: str, wanted: Wanted, problems: list[errors.TeamsError]) -> Iterator[Hit]:
    for message in store.search(team, MESSAGE, wanted.words, problems):
        if wanted.since is not None and parse_rfc3339(message.timestamp) < wanted.since:
            return  # those that follow are older
        if hit := _message(message, wanted):
            yield hit


def _message(message: Message, wanted: Wanted) -> Hit | None:
    if not wanted.admits(message.from_, message.timestamp):
        return None
    excerpt = wanted.excerpt(message.message)
    if excerpt is None:
        return None
    return _hit("messages", message.id, message.timestamp, message.from_, excerpt, to=message.to)


def _in_tasks(
    store: Store, team: str, wanted: Wanted, chosen: Sequence[str], problems: list[errors.TeamsError]
) -> Iterator[Hit]:
    for task in store.search(team, TASK, wanted.words, problems):
        for hit in _of_task(task, wanted):
            if hit["in"] in chosen:
                yield hit


def _of_task(task: Task, wanted: Wanted) -> Iterator[Hit]:
    said = "\n".join(filter(None, [task.title, task.description, task.prompt, task.run, *task.require]))
    if wanted.excerpt(said) is None:  # one may look for its id as well, which is told beside the text
        said = f"{said}\n{task.id}"
    parts: list[tuple[str, str | None, str | None, str]] = []
    parts.append(("tasks", task.updated_at or task.created_at, task.created_by, said))
    parts.append(("results", task.completed_at or task.updated_at, task.owner, task.result or ""))
    parts += [("notes", note.at, note.by, note.added or note.reason or "") for note in task.notes]
    for place, at, sender, text in parts:
        if wanted.admits(sender, at) and text and (excerpt := wanted.excerpt(text)):
            yield _hit(place, task.id, at, sender, excerpt, title=task.title, status=task.status)


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
        said = " ".join([history.line(entry), str(entry.get("title", ""))])
        if excerpt := wanted.excerpt(said):
            yield _hit("history", str(position), entry.get("at"), entry.get("actor"), excerpt)
