"""Every command in the documentation does what the page says."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from teams_cli import commands, extensions, kinds
from tests.conftest import server
from tests.docs.pages import (
    CHECKOUT,
    DOCS,
    GENERATED,
    OTHERS,
    PAGES,
    STAND_INS,
    Shell,
    blocks,
    is_shown,
    steps,
    text_of,
)
from tests.support import postgres

QUICK = {
    *(f"docs/{name}.md" for name in ("disk", "follow", "install", "messages", "questions", "roles", "scripts")),
    *(
        f"docs/{name}.md"
        for name in ("importing", "settings", "tasks", "troubleshooting", "recipes/plans-first", "recipes/usage-limits")
    ),
}
"""Pages whose commands take less than a second. The commands of other pages run with the slow tests."""
AFTERWARDS = {
    "docs/recipes/claude-team.md": "test -e ~/app/task-1.txt -a -e ~/app/task-2.txt -a -e ~/app/task-3.txt",
    "docs/recipes/ci-review.md": "test -s ~/review.md",
    "docs/recipes/merge-when-checked.md": "test -e ~/app/task-1.txt -a -e ~/app/task-2.txt",
    "docs/recipes/ten-issues.md": "test -e ~/app/task-10.txt && grep -q 'wrote task-10' ~/morning.md",
    "docs/recipes/take-over.md": """
        script -qec 'teams open claude --resume ann' /dev/null </dev/null && teams history | grep -q "given back ann"
    """,
    "docs/recipes/notify-phone.md": "timeout 60 sh -c 'until grep -q Adyen ~/phone.txt; do sleep 0.1; done'",
}
"""What must hold after the commands of a page."""
NEEDED = {"ntfy.sh": "network", "import github": "tracker"}
"""What replaces the things that a page with that word needs."""
RUN = [page for page in PAGES if blocks(text_of(page), "console", "bash") and page != "docs/permissions.md"]
"""The page of permissions is run by tests/clients/test_permissions.py."""
LACKING = extensions.BROUGHT_BY.keys() - commands.every().keys()
"""The commands whose extension was deleted."""
LINK = re.compile(r"\]\((?!https?:)([^)]+)\)")
MOST_LINES = 120
MOST_LINES_OF_A_PARAGRAPH = 5


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[] if page in QUICK else [pytest.mark.slow]) for page in RUN]
)
def test_a_page_is_true(page: str, tmp_path: Path) -> None:
    """Transcripts (`console`) are compared line by line, scripts (`bash`) by their exit status, all in one shell."""
    text = text_of(page)
    if missing := [command for command in LACKING if re.search(rf"^[$>] .*teams {command}\b", text, re.MULTILINE)]:
        pytest.skip(f"the extension that brings {missing[0]} is not here")
    variables = {}
    if "$DATABASE" in text:
        name = f"docs_{os.urandom(6).hex()}"
        assert server().psql(f"CREATE DATABASE {name}").returncode == 0
        variables["DATABASE"] = server().address(name)
    stand_ins = [STAND_INS / name for word, name in NEEDED.items() if word in text]
    with Shell(tmp_path, *stand_ins, **variables) as shell:
        for block in blocks(text, "console", "bash"):
            if block.startswith("$ "):
                for command, expected in steps(block):
                    output, _ = shell.run(command)
                    assert is_shown(expected, output), f"$ {command}\n{output}"
            else:
                output, status = shell.run(f"{{ set -e\n{block}set +e; }} </dev/null")
                assert status == 0, f"{block}\n{output}"
        assert shell.run(AFTERWARDS.get(page, "true"))[1] == 0
    if "DATABASE" in variables:
        postgres.end_users_of(variables["DATABASE"])


@pytest.mark.skipif(bool(LACKING) or not extensions.clients(), reason="an extension is not here")
def test_generated_pages_are_as_the_program_declares() -> None:
    from docs import generate

    for name, page in generate.pages().items():
        assert text_of(f"docs/{name}") == page, f"run: python -m docs.generate ({name} is old)"


def test_a_page_is_short() -> None:
    """Pages and paragraphs have bounds, and no page names modules or functions."""
    for page in PAGES:
        if page in GENERATED or page == "README.md":
            continue
        lines = text_of(page).splitlines()
        assert len(lines) <= MOST_LINES, page
        length = 0
        fenced = False
        for line in lines:
            fenced ^= line.startswith("```")
            goes_on = line and not fenced and not re.match(r"[|#`*>-]|\d+\. ", line)
            length = length + 1 if goes_on else 0
            assert length <= MOST_LINES_OF_A_PARAGRAPH, f"{page}: {line}"
            assert "teams_cli" not in line, f"{page}: {line}"


def test_links_lead_somewhere() -> None:
    """Links to files of the project and to headings are followed."""
    links = [(page, link) for page in [*PAGES, *OTHERS] for link in LINK.findall(text_of(page))]
    for page, target in links:
        path, _, heading = target.partition("#")
        file = (CHECKOUT / page).parent / path if path else CHECKOUT / page
        assert file.exists(), f"{page}: {target}"
        if heading:
            titles = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = [re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-") for title in titles]
            assert heading in anchors, f"{page}: {target}"


def test_every_page_is_in_the_table_of_contents() -> None:
    contents = text_of("docs/README.md")
    for page in DOCS.rglob("*.md"):
        name = str(page.relative_to(DOCS))
        assert name == "README.md" or f"]({name})" in contents, name


def test_the_workflow_is_one(tmp_path: Path) -> None:
    with Shell(tmp_path) as shell:
        for number, text in enumerate(blocks(text_of("docs/workflow-files.md"), "yaml")):
            (tmp_path / f"{number}.md").write_text(text)
            assert shell.run(f"teams check-workflow ~/{number}.md")[1] == 0


def test_every_exit_status_is_explained() -> None:
    from teams_cli import errors

    statuses = {kind.status for kind in errors.kinds().values()} | {0, 3, 130}
    table = text_of("docs/scripts.md").partition("| status | meaning |")[2]
    assert {int(number) for number in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)} == statuses


def test_every_key_of_a_file_is_explained() -> None:
    page, keys = text_of("docs/keys.md"), set()
    records = [kind.record for kind in kinds.ALL]
    while records:
        record = records.pop()
        keys |= record.attributes.keys()
        records += record.nested.values()
    assert not [key for key in sorted(keys) if f"`{key}`" not in page]
