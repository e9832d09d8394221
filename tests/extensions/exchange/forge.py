"""A tracker for tests: a script in place of `gh`, `glab` or `tea`, which answers from a file and records each call."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import program

_SCRIPT = """#!{python} -IS
import json, os, signal, subprocess, sys
from urllib.parse import parse_qs, unquote, urlsplit
PLACE, TOOL = {place!r}, os.path.basename(sys.argv[0])
with open(PLACE + "/calls", "a+") as log:
    log.write(json.dumps([TOOL, *sys.argv[1:]]) + "\\n")
    log.seek(0)
    number = len(log.readlines())
said = json.load(open(PLACE + "/answers"))
def write():
    json.dump(said, open(PLACE + "/new", "w"))
    os.replace(PLACE + "/new", PLACE + "/answers")
def kill(when):
    if said.get("kill_at") == number:
        os.kill(os.getppid(), signal.SIGKILL)
    if said.get("kill_each") == when and sys.argv[1:3] not in said["killed"]:
        said["killed"].append(sys.argv[1:3])
        write()
        os.kill(os.getppid(), signal.SIGKILL)
        sys.exit(1)
def option(name):
    return sys.argv[sys.argv.index(name) + 1]
def keep():
    write()
    kill("after")
def head():
    command = ["git", "--git-dir=" + PLACE + "/far", "rev-parse", said["pr"]["head"]]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()
kill("before")
if said.get("fail_at") == number:
    sys.exit(said["failure"])
if sys.argv[1] != "api":
    match sys.argv[1:3]:
        case "pr", "create":
            if said.get("pr", {{}}).get("state") == "OPEN":
                sys.exit("a pull request for branch " + option("--head") + " already exists")
            said["pr"] = dict(head=option("--head"), title=option("--title"), body=option("--body"), state="OPEN")
            keep()
            print(said["url"])
        case "pr", "list":
            pr = said.get("pr")
            if pr and {{"--head=" + pr["head"], "--state=" + pr["state"].lower()}} <= set(sys.argv):
                print(said["url"], head())
        case "pr", "view":
            known = dict(state=said["pr"]["state"], headRefOid=head(), statusCheckRollup=said.get("checks", []))
            reviews = [dict(one, commit=dict(oid=head())) for one in said.get("reviews", [])]
            print(json.dumps(dict(known, reviews=reviews)))
        case "run", "view":
            print(said["log"])
        case "issue", "view":
            print(*said["comments"], sep=chr(10))
        case "issue", "comment":
            said["comments"].append(option("--body"))
            keep()
    sys.exit()
path = urlsplit([word for word in sys.argv[2:] if not word.startswith("-")][0])
query = {{key: values[0] for key, values in parse_qs(path.query).items()}}
parts = path.path.removeprefix("repos/{{owner}}/{{repo}}").removeprefix("projects/:fullpath").strip("/").split("/")
issues = said["issues"]
if parts == [""] or path.path == "repos/" + said.get("former", ""):
    print(json.dumps(dict(full_name=said["name"], path_with_namespace=said["name"])))
elif parts == ["issues"]:
    wanted = set(query.get("labels", "").split(",")) - {{""}}
    rows = [row for row in issues.values() if row["state"] in ("open", "opened")]
    rows = [row for row in rows if wanted <= {{one if isinstance(one, str) else one["name"] for one in row["labels"]}}]
    if "--paginate" in sys.argv:
        print("".join(json.dumps(rows[start : start + 2]) for start in range(0, len(rows), 2)) or "[]")
    else:
        start = (int(query["page"]) - 1) * int(query["limit"])
        print(json.dumps(rows[start : start + int(query["limit"])]))
elif len(parts) == 2 and parts[1] in issues:
    print(json.dumps(issues[parts[1]]))
elif len(parts) > 2 and parts[1] in issues:
    print(json.dumps([issues[str(other)] for other in said["waits"].get(parts[1], [])]))
else:
    sys.exit("gh: Not Found (HTTP 404)")
"""


class Forge:
    """The tracker `acme/shop`, whose issues are written by the test."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch, tool: str = "gh") -> None:
        self.place = place
        self.tool = tool
        self.said: dict[str, Any] = {"name": "acme/shop", "issues": {}, "waits": {}, "comments": []}
        self.said["url"] = "https://github.com/acme/shop/pull/7"
        place.mkdir()
        made = program(place / "bin" / tool, _SCRIPT.format(python=sys.executable, place=str(place)))
        (place / "calls").touch()
        monkeypatch.setenv("PATH", f"{made.parent}:{os.environ['PATH']}")
        self.write()

    def write(self, **more: Any) -> None:
        """Change what the tracker answers from now on."""
        self.said.update(more)
        (self.place / "answers").write_text(json.dumps(self.said))

    def issue(self, number: int, title: str, body: str | None = "", **more: Any) -> dict[str, Any]:
        """Add an issue in the form of GitHub's API."""
        row = {
            "number": number,
            "title": title,
            "body": body,
            "state": "open",
            "labels": [],
            "user": {"login": "stranger"},
            "milestone": None,
            "html_url": f"https://github.com/acme/shop/issues/{number}",
            "issue_dependencies_summary": {"blocked_by": len(self.said["waits"].get(str(number), ()))},
            **more,
        }
        self.said["issues"][str(number)] = row
        self.write()
        return row

    def now(self) -> dict[str, Any]:
        """What the tracker would answer now, with the requests and comments that it was sent."""
        self.said = json.loads((self.place / "answers").read_text())
        return self.said

    def calls(self) -> list[list[str]]:
        """The arguments of each call."""
        return [json.loads(line)[1:] for line in (self.place / "calls").read_text().splitlines()]
