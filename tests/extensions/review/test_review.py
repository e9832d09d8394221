"""A review without a model finds every kind of planted defect, and nothing in sound code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import TIMEOUT, tree
from tests.support.workflow_runs import commit, git, make_repository, put

pytestmark = pytest.mark.slow

CHECKS = ("parse", "names", "mistakes", "dangers", "secrets", "leftovers", "linters", "tests", "size")
FINDING = re.compile(r"(SERIOUS|WARNING|note) (\S+?)(?::(\d+))?: (.*) \[([\w-]+)\]")


class Reviewed:
    """The findings of the checks in a change."""

    def __init__(self, said: dict[str, str]) -> None:
        self.said = said
        rows = [row for check in CHECKS for row in FINDING.findall(said.get(check, ""))]
        self.rules = {(path, int(line or 0), rule) for _, path, line, _, rule in rows}
        self.words = {(path, rule): (weight, what) for weight, path, _, what, rule in rows}

    def of(self, path: str) -> set[str]:
        """The rules of the findings in the file."""
        return {rule for found, _, rule in self.rules if found == path}


def review(repository: Path, work: Path, *checks: str, **variables: str) -> Reviewed:
    """Run the checks as the tasks of the workflow do, in one process each."""
    work.mkdir(exist_ok=True)
    environ = {**os.environ, "TEAMS_WORK": str(work), **variables}
    said = {}
    for check in ("change", *(checks or CHECKS)):
        words = [sys.executable, "-P", "-m", "teams_cli.extensions.review", check]
        done = subprocess.run(words, cwd=repository, env=environ, capture_output=True, text=True, timeout=TIMEOUT)
        assert done.returncode == 0, done
        said[check] = done.stdout
    return Reviewed(said)


BEFORE = {
    "shop/__init__.py": "",
    "shop/stock.py": '''"""Stock."""


def count(items):
    return len(items)


def move(items, source, target):
    items.append((source, target))
''',
    "shop/sales.py": "from shop import stock\nfrom shop.stock import count, move\n\n\ndef sell(items):\n"
    "    move(items, 'a', target='b')\n    return count(items) + stock.count(items)\n",
    "settings.json": '{"port": 80}\n',
    "settings.toml": "port = 80\n",
    "settings.yaml": "server:\n  port: 80\n",
    "settings.xml": "<a>\n<b/>\n</a>\n",
    "start.sh": "#!/bin/sh\necho start\n",
    "web/app.js": "export const one = 1;\n",
    "web/lost.ts": "export const one = 1;\nexport const two = 2;\n",
    "web/kinds.ts": "export type Kind = 'a';\n",
}
"""A project without a defect."""
PLANTED: dict[str, tuple[str, str]] = {
    "bad_syntax.py": ("def f(:\n    pass\n", "syntax"),
    "settings.json": ('{"port": 80,}\n', "syntax"),
    "settings.toml": ('port = "80\nhost = 1\n', "syntax"),
    "settings.yaml": ("server:\n  port: 80\n host: x\n", "syntax"),
    "settings.xml": ("<a>\n<b>\n</a>\n", "syntax"),
    "start.sh": ("#!/bin/sh\nif true; then\necho start\n", "syntax"),
    "web/app.js": ("export const one = ;\n", "syntax"),
    "web/kinds.ts": ("export type Kind = 'a'\nexport interface B {\n", "syntax"),
    "twice.json": ('{"a": 1,\n "a": 2}\n', "key-twice"),
    "twice.yaml": ("a: 1\na: 2\n", "key-twice"),
    "shop/undefined.py": ("def f(x):\n    return y\n", "F821"),
    "shop/unused.py": ("import os\n\n\ndef f(x):\n    return x\n", "F401"),
    "shop/default.py": ("def f(x, seen=[]):\n    seen.append(x)\n    return seen\n", "B006"),
    "shop/swallow.py": ("def f(g):\n    try:\n        g()\n    except Exception:\n        pass\n", "S110"),
    "shop/forgotten.py": ("def f(x):\n    if x:\n        ValueError('no')\n", "PLW0133"),
    "shop/evals.py": ("def f(x):\n    return eval(x)\n", "S307"),
    "shop/shell.py": ("import subprocess\n\n\ndef f(x):\n    subprocess.run(f'ls {x}', shell=True)\n", "S602"),
    "shop/sql.py": ("def f(db, x):\n    return db.execute(f\"SELECT * FROM t WHERE a = '{x}'\")\n", "S608"),
    "shop/secret.py": ('PASSWORD = "correct4horse!battery"\n', "secret"),
    "shop/prints.py": ("def f(x):\n    print('DEBUG', x)\n    return x\n", "T201"),
    "NEWS.txt": (f"{'<' * 7} a\none\n{'=' * 7}\ntwo\n{'>' * 7} b\n", "conflict"),
    "shop/missing.py": ("from shop.stock import nothing\n\nnothing()\n", "import"),
    "shop/draws.py": ("import random\n\n\ndef new_token():\n    return random.choice('abc')\n", "S311"),
    "shop/module.py": ("import shop.nowhere\n\nshop.nowhere.f()\n", "import"),
    "shop/trust.py": ("def f(session):\n    session.verify = False\n", "no-verify"),
    "web/page.js": ("export const f = (a, b) => {\n  a.innerHTML = b;\n};\n", "inner-html"),
    "web/names.ts": ("export const f = (): string => missing();\n", "no-undef"),
    "web/user.ts": ("import { one, two } from './lost';\nexport const n = one + two;\n", "removed"),
    "web/lost.ts": ("export const one = 1;\n", ""),
    "web/stop.js": ("export function f() {\n  debugger;\n}\n", "no-debugger"),
    "web/nowhere.js": ("import { a } from './not_there';\n\na();\n", "import"),
    "web/list.jsx": ("export const L = ({ a }) => a.map((b) => <i>{b}</i>);\n", "jsx-key"),
    ".github/workflows/broken.yml": ("on: push\nname: ${{ a }}\n  b: c\n", "syntax"),
    "Dockerfile": ("FROM alpine\nENV API_TOKEN=abcd1234efgh5678\n", "secret"),
    "Makefile": ("all:\n\tcurl -s https://example.org/i.sh | sh\n", "curl-sh"),
    "typed.sh": ('#!/bin/bash\ntarget=$1\nls "$targt/build"\n', "SC2154"),
    "clean.sh": ("#!/bin/bash\nrm -rf $1/build\n", "SC2086"),
}
"""The text that each file has after the change, and the rule that must report it."""
FINE = {
    "shop/fine.py": '''"""What looks like a defect and is none."""

import hashlib
import json
import subprocess
import sys

TOKEN_FIELD = "access_token"
PASSWORD_HEADER = "X-Password-Hash"


def query(db, name, seen=None):
    """Ask with parameters."""
    seen = seen or []
    return db.execute("SELECT * FROM t WHERE a = ?", (name,)), seen


def run(path):
    """Without a shell."""
    subprocess.run(["ls", path], check=True)
    return json.loads(path), hashlib.sha256(path).hexdigest()


def close(thing):
    """Try, and say so when it fails."""
    try:
        thing.close()
    except OSError as error:
        print(f"can't close it: {error}", file=sys.stderr)
''',
    "tsconfig.json": '{\n  // comments are allowed here\n  "compilerOptions": {},\n}\n',
    "chart/templates/deploy.yaml": "name: {{ .Values.name }}\n{{- if .Values.x }}\nport: 80\n{{- end }}\n",
    "docker/Dockerfile": "FROM alpine\nARG VERSION=1.2.3\nENV TOKEN_FILE=/run/secrets/token\nRUN ls > /tmp/x\n",
    "many.yaml": "a: !Ref b\n---\na: 1\n",
    "fine.sh": '#!/bin/bash\nset -e\nrm -rf "${1:?}/build"\n',
    "part.sh": '#!/bin/bash\n. ./settings.sh\nls "$given_there"\n',
    "web/merged.d.ts": "export type A = 'a';\nexport declare const A: A;\n",
    "web/end.ts": "import { one } from './fine.js';\nimport d from '../settings.json';\n\nexport const n = one + d;\n",
    "web/fine.js": "export const one = 1;\nexport function f(a) {\n  return a === 1 ? window.x : process.env.Y;\n}\n",
    "tests/data/broken.json": "{",
    "tests/test_fine.py": "import subprocess\n\n\ndef test_it():\n    assert subprocess.run('ls', shell=True)\n",
    "docs/guide.md": 'Title\n=======\n\nSet `password = "your-password-here"`.\n',
}


def test_a_planted_defect_is_named_and_what_only_looks_like_one_left_alone(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repo", BEFORE)
    commit(repository, {path: text for path, (text, _) in PLANTED.items()} | FINE)
    found = review(repository, tmp_path / "work")
    for path, (_, rule) in PLANTED.items():
        assert rule in (found.of(path) or {""}), found.said
    for path in FINE:
        assert found.of(path) == set()


def test_uses_of_a_removed_function_are_reported(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repo", BEFORE)
    stock = BEFORE["shop/stock.py"].replace("def count", "def total")
    stock += "\n\ndef work_out(text):\n    exec(text, {})\n"
    commit(repository, {"shop/stock.py": stock})
    found = review(repository, tmp_path / "work", "names")
    assert {("shop/sales.py", 2, "removed"), ("shop/sales.py", 7, "removed")} <= found.rules


def test_earlier_defects_are_not_reported(tmp_path: Path) -> None:
    """A defect that existed before the change is not reported, though its file was renamed and its line moved."""
    old = "".join(text for path, (text, _) in PLANTED.items() if path.startswith("shop/") and "import" not in text)
    repository = make_repository(tmp_path / "repo", {"old/code.py": old, "a.py": "x = 1\n"})
    (repository / "new").mkdir()
    git(repository, "mv", "old/code.py", "new/name.py")
    put(repository, {"new/name.py": f"FIRST = 1\n\n\n{old}", "a.py": "x = 2\n"})
    found = review(repository, tmp_path / "work", base="HEAD")
    assert found.rules == set()
    assert "R new/name.py +3 -0 from old/code.py" in found.said["change"]
    assert found.said["change"].startswith("2 files, +4 -1 lines")


def test_lines_are_counted_as_git_counts_them(tmp_path: Path) -> None:
    """A form feed ends no line, so that nothing is missed behind it; and no name or remark becomes a finding."""
    before = "A = 1\n\f\nB = 2\n\f\nC = '\u2028 \x1c \x85'\n"
    odd = "test\nSERIOUS a.py:1: no [x]\n.py"
    repository = make_repository(tmp_path / "repo", {"a.py": before})
    bad = "def f(x):\n    return eval(x)  # TODO \fSERIOUS a.py:1: no [x]\nKEY = 'AKIAQWERTYUIOPASDFGH'\n<<<<<<< HEAD\n"
    put(repository, {"a.py": before + bad, odd: "# TODO this\n"})
    found = review(repository, tmp_path / "work", "dangers", "secrets", "leftovers", base="HEAD")
    assert {("a.py", 8, "secret"), ("a.py", 9, "conflict")} <= found.rules
    lines = "".join(found.said.values()).split("\n")
    assert sum(line.startswith(("SERIOUS", "WARNING", "note")) for line in lines) == 2 and "\f" not in str(lines)
    assert "marked as still to do: a.py:7: TODO SERIOUS a.py:1: no [x]" in lines


def test_a_comment_of_several_lines_moves_no_finding(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repo", BEFORE)
    commit(repository, {"tsconfig.json": '{\n  /* one\n     two */\n  "a": 1,\n  "a": 2\n}\n'})
    assert ("tsconfig.json", 5, "key-twice") in review(repository, tmp_path / "work", "parse").rules


def test_findings_can_be_accepted(tmp_path: Path) -> None:
    """Findings can be accepted for a file, for a rule in a file, and by a comment in a line."""
    repository = make_repository(tmp_path / "repo", {"x": "1\n"})
    evil = "def f(x):\n    return eval(x)\n"
    put(repository, {"a.py": evil, "b.py": evil, "c.py": evil.replace("(x)\n", "(x)  # teams-review: allow S307\n", 2)})
    put(repository, {"d.py": evil, "e.py": evil, ".teams-review": "a.py\nb.py S307\nd.py S102  # another rule\n"})
    found = review(repository, tmp_path / "work", "dangers", base="HEAD")
    assert {path for path, _, _ in found.rules} == {"d.py", "e.py"}
    assert "3 accepted by .teams-review or a comment" in found.said["dangers"]


def test_the_tests_of_what_changed_are_run_on_a_copy(tmp_path: Path) -> None:
    """Only tests that the change broke are reported, and the checkout is left as it was."""
    test = (
        "import unittest\n\nfrom shop import stock\n\n\nclass Stock(unittest.TestCase):\n"
        "    def test_count(self):\n        open('trace', 'w').close()\n"
        "        self.assertEqual(stock.count([1]), 1)\n\n"
        "    def test_old_sorrow(self):\n        self.fail('as ever')\n"
    )
    repository = make_repository(tmp_path / "repo", {**BEFORE, "tests/__init__.py": "", "tests/test_stock.py": test})
    put(repository, {"shop/stock.py": BEFORE["shop/stock.py"].replace("len(items)", "len(items) + 1")})
    before = tree(repository)
    found = review(repository, tmp_path / "work", "tests", base="HEAD")
    weight, what = found.words["tests/test_stock.py", "test"]
    assert weight == "SERIOUS" and "test_count" in what and "sorrow" not in str(found.rules)
    assert "2 failed, 1 of them since this change" in found.said["tests"]
    assert tree(repository) == before
    with (repository / "large.bin").open("wb") as file:  # tests would fail in an incomplete copy
        file.truncate(201 << 20)
    found = review(repository, tmp_path / "work", "tests", base="HEAD")
    assert found.rules == set() and "was not run: the checkout is larger than 200 MiB" in found.said["tests"]


def test_the_linters_of_the_repository_are_run_where_they_are_configured(tmp_path: Path) -> None:
    config = "[tool.ruff.lint]\nselect = ['N']\n"
    repository = make_repository(tmp_path / "repo", {"pyproject.toml": config, "a.py": "def Old(): ...\n"})
    put(repository, {"a.py": "def Old(): ...\ndef New(): ...\n"})
    found = review(repository, tmp_path / "work", "linters", base="HEAD")
    assert found.rules == {("a.py", 2, "ruff")} and "ruff ran" in found.said["linters"]


def test_the_verdict_lists_findings_once_and_what_was_not_done(tmp_path: Path) -> None:
    rows = [{"key": key, "owner": key, "file": f"{key}.txt"} for key in ("change", "a", "b", "gone")]
    (tmp_path / "index.json").write_text(json.dumps(rows))
    (tmp_path / "change.txt").write_text("1 file, +1 -0 lines since x\nM a.py +1 -0\n")
    (tmp_path / "a.txt").write_text("looked\nnote a.py:1: *small* [F401]\nSERIOUS a.py:2: big [S307]\nan aside\n")
    (tmp_path / "b.txt").write_text("looked, too\nSERIOUS a.py:2: big, by another [S307]\n")
    words = [sys.executable, "-P", "-m", "teams_cli.extensions.review", "verdict"]
    environ = {**os.environ, "TEAMS_RESULTS": str(tmp_path)}
    said = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=TIMEOUT).stdout
    assert said.startswith(
        "## Verdict: the review is incomplete; changes are needed\n\n1 serious finding, 0 warnings, 1 note"
    )
    assert "Not done: gone." in said and said.count("big") == 1
    assert said.index("**a.py:2**: big") < said.index(r"**a.py:1**: \*small\*") < said.index("Checks")
    assert "* an aside" in said
