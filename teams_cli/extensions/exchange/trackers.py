"""Reads issues of GitHub, GitLab, Forgejo and Gitea with the user's own `gh`, `glab` or `tea`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from teams_cli import errors, processes, text
from teams_cli.extensions.exchange.items import Item, objects, words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any


_ISSUE_URL = re.compile(r"https?://[^/]+/(?P<repository>.+?)(?:/-)?/(?:issues|work_items)/(?P<number>\d+)")
_PAGE = 50
_HIGH = re.compile(
    r"(p0|p1|critical|urgent|blocker|high|(prio|priority|severity)\W*(high|critical|urgent|p?[01]))", re.I
)
_LOW = re.compile(r"(p3|p4|low|(prio|priority|severity)\W*(low|minor|p?[34]))", re.I)


class TrackerFailed(errors.TeamsError):
    """Reading the tracker failed; nothing was changed."""


@dataclass
class Wanted:
    """The issues to import: those that have all *labels*, those of the *milestone*, or only those with the
    *numbers*.
    """

    labels: Sequence[str] = ()
    milestone: str | None = None
    numbers: Sequence[int] = ()


class Tracker:
    """Reads a tracker with its command line tool. Subclasses have the requests of each tool."""

    program = ""
    repository = "repos/{owner}/{repo}"
    paginates = False
    """Whether the tool reads all pages of a list by itself."""

    def __init__(self, directory: str, environ: Mapping[str, str]) -> None:
        self._directory = directory
        self._environ = environ

    def issues(self, wanted: Wanted, imported: Collection[str]) -> list[Item]:
        """Return the wanted open issues, and those of *imported* that are closed now or no longer wanted.

        Raises:
            TrackerFailed: The tracker could not be read.
        """
        if wanted.numbers:
            rows = [self._one(number) for number in wanted.numbers]
        else:
            rows = [row for row in self._open(wanted) if "pull_request" not in row or not row["pull_request"]]
            rows = [row for row in rows if self._has(row, wanted)]
        own = self._own_name() if imported else ""
        names = {key.rpartition("#")[0] for key in imported}
        former = "" if own in names else next((name for name in sorted(names) if self._name_now(name) == own), "")
        items = {item.key: item for item in (self._item(row, own, former) for row in rows)}
        for key in imported if not wanted.numbers else ():
            repository, _, number = key.rpartition("#")
            if repository == (former or own) and key not in items:
                row = self._one(int(number), missing=True)
                item = self._item(row, own, former) if row else None
                if item is None or item.key != key:  # it was deleted, or transferred to another repository
                    item = Item(key, key, status="", left=[f"now {item.key}" if item else "no longer there"])
                items[key] = item
        return list(items.values())

    def _open(self, wanted: Wanted) -> list[dict[str, Any]]:
        """Return all open issues with the wanted labels."""
        raise NotImplementedError

    def _blockers(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the issues that the issue *row* waits for."""
        raise NotImplementedError

    def _own_name(self) -> str:
        """Return the name of the repository, as the tracker gives it."""
        return words_of(self._asked(self.repository)[0].get("full_name"))

    def _name_now(self, repository: str) -> str:
        """Return the present name of a repository, or "" if the repository no longer exists."""
        return "".join(words_of(row.get("full_name")) for row in self._asked(f"repos/{repository}", missing=True))

    def _one(self, number: int, missing: bool = False) -> dict[str, Any]:
        """Return one issue. If it may be *missing* and does not exist, return an empty dictionary."""
        rows = self._asked(f"{self.repository}/issues/{number}", missing)
        return rows[0] if rows else {}

    def _has(self, row: dict[str, Any], wanted: Wanted) -> bool:
        milestone = row.get("milestone") or {}
        names = {words_of(milestone.get(key)) for key in ("title", "number", "iid", "id")}
        return wanted.milestone is None or wanted.milestone in names

    def _item(self, row: dict[str, Any], own: str, former: str) -> Item:
        """Return the issue as an item. In a renamed repository the item keeps the key with the *former* name, which its
        task has.
        """

        def key_of(address: str) -> str:
            repository, _, number = (key := _key(address)).rpartition("#")
            return f"{former}#{number}" if former and repository == own else key

        url = words_of(row.get("html_url") or row.get("web_url"))
        key = key_of(url)
        labels = [words_of(each.get("name") if isinstance(each, dict) else each) for each in row.get("labels") or ()]
        author = row.get("user") or row.get("author") or {}
        milestone = words_of((row.get("milestone") or {}).get("title"))
        body = words_of(row.get("body") or row.get("description"))
        is_open = row.get("state") in ("open", "opened")
        return Item(
            key,
            words_of(row.get("title")),
            description=f"{body}\n\nMilestone: {milestone}" if milestone else body,
            priority=_priority(labels),
            status="pending" if is_open else "cancelled",
            why=None if is_open else f"closed at {url}",
            waits_for=[
                key_of(words_of(blocker.get("html_url") or blocker.get("web_url")))
                for blocker in (self._blockers(row) if is_open else ())
                if blocker.get("state") in ("open", "opened")
            ],
            labels=labels,
            url=url,
            author=words_of(author.get("login") or author.get("username")),
            foreign=f"#{key.rpartition('#')[2]}",
        )

    def _asked(self, path: str, missing: bool = False) -> list[dict[str, Any]]:
        """Return the objects at a path of the tracker's API. If the path may be *missing* and does not exist, return an
        empty list.

        Raises:
            TrackerFailed: The tool is not installed, failed or refused.
        """
        done = processes.outcome_of(self._command(path), self._directory, self._environ)
        if done.returncode:
            reason = " ".join((done.stderr or done.stdout).split())[:500]
            if missing and re.search(r"\b(404|410)\b", reason):
                return []
            hint = f"Nothing was changed; repeat it when `{self.program} api {self.repository}` works."
            raise TrackerFailed(f"{self.program} failed: {reason or f'exit status {done.returncode}'}", hint)
        return _documents(done.stdout, self.program)

    def _command(self, path: str) -> list[str]:
        return [self.program, "api", *(["--paginate"] if self.paginates and "?" in path else []), path]

    def _pages(self, path: str, **query: str) -> list[dict[str, Any]]:
        """Return the objects of all pages of a list."""
        rows: list[dict[str, Any]] = []
        for page in range(1, 10_000):
            new = self._asked(f"{path}?{urlencode({**query, 'limit': str(_PAGE), 'page': str(page)}, quote_via=quote)}")
            rows += new
            if len(new) < _PAGE:
                break
        return rows


class GitHub(Tracker):
    program = "gh"
    paginates = True

    def _open(self, wanted: Wanted) -> list[dict[str, Any]]:
        query = {"state": "open", "per_page": "100", **({"labels": ",".join(wanted.labels)} if wanted.labels else {})}
        return self._asked(f"{self.repository}/issues?{urlencode(query, quote_via=quote)}")

    def _blockers(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        summary = row.get("issue_dependencies_summary")
        if isinstance(summary, dict) and not summary.get("blocked_by"):
            return []
        path = f"{self.repository}/issues/{row['number']}/dependencies/blocked_by?per_page=100"
        return self._asked(path, missing=True)  # older servers do not have it


class GitLab(Tracker):
    program = "glab"
    paginates = True
    repository = "projects/:fullpath"

    def _own_name(self) -> str:
        return words_of(self._asked(self.repository)[0].get("path_with_namespace"))

    def _name_now(self, repository: str) -> str:
        rows = self._asked(f"projects/{quote(repository, safe='')}", missing=True)
        return "".join(words_of(row.get("path_with_namespace")) for row in rows)

    def _open(self, wanted: Wanted) -> list[dict[str, Any]]:
        query = {"state": "opened", "per_page": "100", **({"labels": ",".join(wanted.labels)} if wanted.labels else {})}
        return self._asked(f"{self.repository}/issues?{urlencode(query, quote_via=quote)}")

    def _blockers(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        links = self._asked(f"{self.repository}/issues/{row['iid']}/links", missing=True)
        return [link for link in links if link.get("link_type") == "is_blocked_by"]


class Gitea(Tracker):
    """Gitea, and Forgejo, which has the same API."""

    program = "tea"

    def _open(self, wanted: Wanted) -> list[dict[str, Any]]:
        labels = {"labels": ",".join(wanted.labels)} if wanted.labels else {}
        return self._pages(f"{self.repository}/issues", state="open", type="issues", **labels)

    def _blockers(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        return self._asked(f"{self.repository}/issues/{row['number']}/dependencies", missing=True)


KINDS: dict[str, type[Tracker]] = {"github": GitHub, "gitlab": GitLab, "forgejo": Gitea, "gitea": Gitea}


def _key(url: str) -> str:
    """Return the key of the issue at *url*, as in every import: `owner/repository#12`.

    Raises:
        TrackerFailed: The URL is not the address of an issue.
    """
    parts = _ISSUE_URL.match(url)
    if parts is None:
        raise TrackerFailed(f"{url or 'nothing'} is not the address of an issue", "Give the number of an issue.")
    return f"{parts['repository']}#{parts['number']}"


def _priority(labels: Sequence[str]) -> str:
    if any(map(_HIGH.fullmatch, labels)):
        return "high"
    return "low" if any(map(_LOW.fullmatch, labels)) else "normal"


def _documents(output: str, program: str) -> list[dict[str, Any]]:
    """Return the objects in the output of a tool, which is an object, a list, or the lists of several pages.

    Raises:
        TrackerFailed: The output is not JSON.
    """
    decoder, place = json.JSONDecoder(), 0
    rows: list[Any] = []
    try:
        while not place or place < len(output.rstrip()):  # a list without issues is `[]`, not empty output
            page, place = decoder.raw_decode(output, place + len(output[place:]) - len(output[place:].lstrip()))
            rows += page if isinstance(page, list) else [page]
    except ValueError as error:
        raise TrackerFailed(f"{program} did not answer with JSON: {error}", "Look at what it prints.") from None
    return objects(json.loads(text.whole_characters(json.dumps(rows).encode())))
