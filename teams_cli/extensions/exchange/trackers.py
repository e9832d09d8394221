"""Reads issues of GitHub, GitLab, Forgejo and Gitea with the user's own `gh`, `glab` or `tea`."""

from __future__ import annotations

import json
import re
from urllib.parse import quote, urlencode

from teams_cli import errors, processes, text
from teams_cli.extensions.exchange.items import Item, objects, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any


_ISSUE_URL = re.compile(r"https?://[^/]+/(?P<repository>.+?)(?:/-)?/(?:issues|work_items)/(?P<number>\d+)")
_PAGE = 50
_HIGH = re.compile(
    r"(p0|p1|critical|urgent|blocker|high|(prio|priority|severity)\W*(high|critical|urgent|p?[01]))", re.I
)
_LOW = re.compile(r"(p3|p4|low|(prio|priority|severity)\W*(low|minor|p?[34]))", re.I)


class TrackerFailed(errors.TeamsError):
    """Raised when a tracker can't be read. Nothing was changed."""


class Tracker:
    """Reads a tracker with the tracker's own program, such as `gh`. Each subclass has the requests of one program."""

    program = ""
    repository = "repos/{owner}/{repo}"
    """The path of the checkout's repository in the tracker's API. The tool fills in the braces."""
    key_of_name = "full_name"
    """The key under which the tracker's answers have a repository's name."""
    state_of_open = "open"
    paginates = True
    """Whether the tool reads all pages of a list by itself."""

    def __init__(self, directory: str, environ: Mapping[str, str]) -> None:
        self._directory = directory
        self._environ = environ

    def issues(
        self, labels: list[str], milestone: str | None, numbers: list[int], imported: Collection[str]
    ) -> list[Item]:
        """Return the issues with these *numbers*. If no numbers are given, return the open issues that have all
        *labels* and, if it is given, the *milestone*.

        In the second case, also return the issues that were imported before and whose keys are in *imported*, even if
        they are closed now or have other labels, so that their tasks can be updated.

        Raises:
            TrackerFailed: The tracker could not be read.
        """
        if numbers:
            rows = [self._issue(number) for number in numbers]
        else:
            rows = [row for row in self._open_issues(labels) if self._is_of_milestone(row, milestone)]
            rows = [row for row in rows if not row.get("pull_request")]  # GitHub also lists these as issues
        name = self._name_of(self.repository) if imported else ""  # only the keys in *imported* need it
        former_name = self._former_name(name, imported)
        items: dict[str, Item] = {}
        for row in rows:
            item = self._item(row, name, former_name)
            items[item.key] = item
        if numbers:
            return list(items.values())
        for key in imported:
            repository, _, number = key.rpartition("#")
            if repository != (former_name or name) or key in items:  # it is of another repository, or read already
                continue
            row = self._issue(int(number), may_be_missing=True)
            if not row:
                items[key] = Item(key, key, status="", left_out=["no longer there"])
                continue
            item = self._item(row, name, former_name)
            if item.key != key:  # it was transferred to another repository
                item = Item(key, key, status="", left_out=[f"now {item.key}"])
            items[key] = item
        return list(items.values())

    def _former_name(self, name: str, imported: Collection[str]) -> str:
        """Return the earlier name of the repository, which the keys in *imported* have; "" if it was not renamed."""
        names = {key.rpartition("#")[0] for key in imported}
        if name in names:
            return ""
        for former in sorted(names):
            if self._name_of(self._path_of(former), may_be_missing=True) == name:
                return former
        return ""

    def _open_issues(self, labels: list[str]) -> list[dict[str, Any]]:
        query = _query(labels, state=self.state_of_open, per_page="100")
        return self._read(f"{self.repository}/issues?{query}")

    def _blockers(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the issues that block the issue *row*."""
        raise NotImplementedError

    def _path_of(self, repository: str) -> str:
        return f"repos/{repository}"

    def _name_of(self, path: str, may_be_missing: bool = False) -> str:
        rows = self._read(path, may_be_missing)
        return text_of(rows[0].get(self.key_of_name)) if rows else ""

    def _issue(self, number: int, may_be_missing: bool = False) -> dict[str, Any]:
        rows = self._read(f"{self.repository}/issues/{number}", may_be_missing)
        return rows[0] if rows else {}

    def _is_of_milestone(self, row: dict[str, Any], wanted: str | None) -> bool:
        milestone = _object_in(row, "milestone")
        names = {text_of(milestone.get(key)) for key in ("title", "number", "iid", "id")}
        return wanted is None or wanted in names

    def _item(self, row: dict[str, Any], name: str, former_name: str) -> Item:
        """Return the issue *row* as an item. *name* is the name of the repository. If the repository was renamed, the
        key of the item contains its *former_name*, like the keys of the tasks that were imported before.
        """

        def key_of(address: str) -> str:
            match = _ISSUE_URL.match(address)
            if match is None:
                what = f"{address or 'nothing'} is not the address of an issue"
                raise TrackerFailed(what, "Give the number of an issue.")
            repository = match["repository"]
            if former_name and repository == name:
                repository = former_name
            return f"{repository}#{match['number']}"

        url = _url_of(row)
        key = key_of(url)
        rows_of_labels = row.get("labels")  # each is an object or, in some answers, only the name
        if not isinstance(rows_of_labels, list):
            rows_of_labels = []
        labels = [text_of(label.get("name") if isinstance(label, dict) else label) for label in rows_of_labels]
        author = _object_in(row, "user") or _object_in(row, "author")
        milestone = text_of(_object_in(row, "milestone").get("title"))
        body = text_of(row.get("body") or row.get("description"))
        priority = "low" if any(map(_LOW.fullmatch, labels)) else "normal"
        if any(map(_HIGH.fullmatch, labels)):
            priority = "high"
        is_open = _is_open(row)
        blockers = [blocker for blocker in self._blockers(row) if _is_open(blocker)] if is_open else []
        return Item(
            key,
            text_of(row.get("title")),
            description=f"{body}\n\nMilestone: {milestone}" if milestone else body,
            priority=priority,
            status="pending" if is_open else "cancelled",
            why=None if is_open else f"closed at {url}",
            waits_for=[key_of(_url_of(blocker)) for blocker in blockers],
            labels=labels,
            url=url,
            author=text_of(author.get("login") or author.get("username")),
            foreign=f"#{key.rpartition('#')[2]}",
        )

    def _read(self, path: str, may_be_missing: bool = False) -> list[dict[str, Any]]:
        """Return the objects at *path* in the tracker's API: all objects of a list, or a single one. If nothing is
        there, return an empty list if *may_be_missing* is True; otherwise raise TrackerFailed.
        """
        is_list = "?" in path  # we give a query only for lists
        options = ["--paginate"] if is_list and self.paginates else []
        command = [self.program, "api", *options, path]
        done = processes.outcome_of(command, self._directory, self._environ)
        if done.returncode:
            reason = " ".join((done.stderr or done.stdout).split())[:500]
            if may_be_missing and re.search(r"\b(404|410)\b", reason):
                return []
            hint = f"Nothing was changed; repeat it when `{self.program} api {self.repository}` works."
            raise TrackerFailed(f"{self.program} failed: {reason or f'exit status {done.returncode}'}", hint)
        return _documents(done.stdout, self.program)


class GitHub(Tracker):
    program = "gh"

    def _blockers(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        summary = row.get("issue_dependencies_summary")
        if isinstance(summary, dict) and not summary.get("blocked_by"):
            return []  # this saves a request for most issues
        path = f"{self.repository}/issues/{text_of(row.get('number'))}/dependencies/blocked_by?per_page=100"
        return self._read(path, may_be_missing=True)  # older servers do not have it


class GitLab(Tracker):
    program = "glab"
    state_of_open = "opened"
    repository = "projects/:fullpath"
    key_of_name = "path_with_namespace"

    def _path_of(self, repository: str) -> str:
        return f"projects/{quote(repository, safe='')}"

    def _blockers(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        links = self._read(f"{self.repository}/issues/{text_of(row.get('iid'))}/links", may_be_missing=True)
        return [link for link in links if link.get("link_type") == "is_blocked_by"]


class Gitea(Tracker):
    """Gitea, and Forgejo, which has the same API."""

    program = "tea"
    paginates = False

    def _open_issues(self, labels: list[str]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for page in range(1, 10_000):  # bounded, in case a server sends full pages for ever
            query = _query(labels, state="open", type="issues", limit=str(_PAGE), page=str(page))
            rows_of_page = self._read(f"{self.repository}/issues?{query}")
            rows += rows_of_page
            if len(rows_of_page) < _PAGE:
                break
        return rows

    def _blockers(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        return self._read(f"{self.repository}/issues/{text_of(row.get('number'))}/dependencies", may_be_missing=True)


def _query(labels: list[str], **fields: str) -> str:
    if labels:
        fields["labels"] = ",".join(labels)
    return urlencode(fields, quote_via=quote)


KINDS: dict[str, type[Tracker]] = {"github": GitHub, "gitlab": GitLab, "forgejo": Gitea, "gitea": Gitea}


def _is_open(issue: dict[str, Any]) -> bool:
    return issue.get("state") in ("open", "opened")


def _object_in(row: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the object under the *key*; an empty one if there is none, or if the tracker has something else there."""
    value = row.get(key)
    return value if isinstance(value, dict) else {}


def _url_of(issue: dict[str, Any]) -> str:
    return text_of(issue.get("html_url") or issue.get("web_url"))


def _documents(output: str, program: str) -> list[dict[str, Any]]:
    """Return the objects in the *output*: one object, a list of objects, or several lists, one for each page."""
    rows: list[Any] = []
    unread = output.strip()
    try:
        while True:  # at least once: a list without issues is `[]`, so that empty output is an error
            page, end = json.JSONDecoder().raw_decode(unread)
            rows += page if isinstance(page, list) else [page]
            unread = unread[end:].lstrip()
            if not unread:
                break
        return objects(json.loads(text.whole_characters(json.dumps(rows).encode())))
    except (ValueError, RecursionError) as error:
        raise TrackerFailed(f"{program} did not answer with JSON: {error}", "Look at what it prints.") from None
