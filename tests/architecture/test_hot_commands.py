"""What the everyday commands load: each module costs a part of a millisecond, and this list is what keeps them quick.

A module that has to be added here is one that the command uses each time; what it uses at times is imported then.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import teams_cli
from teams_cli import __main__, commands
from teams_cli.cli import main
from tests.architecture.test_layers import own_imports
from tests.support import loaded
from tests.support.cli import add_tasks, make_team


def every(names: str) -> list[str]:
    """The modules that a text names."""
    return names.split()


LIBRARY = every("__future__ _datetime _json errno fcntl gc marshal zlib")
START = every("__main__ compiled cli cli.main errors records records.annotations streams text")
COMMAND = START + every(
    """
    agents agents.terminals cli.calls cli.output cli.parse cli.show cli.show.ages
    cli.tables clock commands commands.call commands.declaration environment names records.json_text
    records.owed records.records records.shapes store store.contract store.documents store.files
    store.files.decoded store.files.disk store.files.engine store.files.layout store.files.locks store.files.marks
    store.files.message_log store.files.numbers store.files.root_directory store.files.seen store.files.together
    store.meanwhile store.opening store.retrying teams teams.caller teams.config teams.history teams.opencode_rules
    teams.operations teams.permission teams.presence teams.roles teams.teams teams.tokens views
    """
)
MAIL = COMMAND + every("cli.show.messages messages messages.messages")
REMINDED = every("views.reminders")
NOTED = every("agents.sessions store.files.journal")
TASKS = [
    *COMMAND,
    *REMINDED,
    *every(
        """
        cli.show.tasks commands.task_documents messages messages.messages messages.notices tasks tasks.checks
        tasks.dependencies tasks.leases tasks.tasks
        """
    ),
]
CLAIMING = every("store.candidacy tasks.assigning tasks.choosing tasks.claims")
EDITING = every("tasks.assigning tasks.keeping tasks.changes tasks.editing tasks.owners")
COMPLETING = every(
    """
    agents.checking agents.checkouts agents.git agents.landings agents.landings.landings agents.landings.merging
    agents.landings.outcomes clients clients.environments processes tasks.claims tasks.evidence tasks.life tasks.plans
    tasks.reviews teams.settings views.steps views.work
    """
)
WAITING = [
    *MAIL,
    *CLAIMING,
    *every(
        """
        cli.show.waiting commands.waiting messages.inboxes messages.notices store.pace tasks tasks.checks
        tasks.dependencies tasks.leases tasks.tasks views.steps
        """
    ),
]
CONCERNS = [*REMINDED, *every("views.concerns views.facts views.matters views.work")]
FOR_ONE_THING = every("commands.waiting_for_one tasks.overviews tasks.plans views.conditions views.standing")
LEADING = every(
    """
    membership membership.shutdowns messages.counting questions questions.questions tasks.overviews tasks.plans
    views.leading views.needed views.silences views.standing
    """
)
HOT = {
    "--version": START,
    "send-message lea hi": [*MAIL, *REMINDED, *NOTED, "commands.messages"],
    "read-messages": [
        *MAIL,
        "commands.messages_inbox",
        "messages.handling",
        "messages.inboxes",
        "messages.reading",
        "views.steps",
    ],
    "claim-task 1": [*TASKS, *NOTED, *CLAIMING, "commands.tasks_claims", "teams.pages", "views.steps"],
    "claim-task --next": [*TASKS, *NOTED, *CLAIMING, "commands.tasks_claims", "teams.pages", "views.steps"],
    "heartbeat": [*TASKS, *NOTED, "tasks.holding", "commands.tasks_heartbeats"],
    "update-task 2 --description more": [*TASKS, *NOTED, *EDITING, "commands.tasks_updates"],
    "wait --task 3": [*WAITING, *FOR_ONE_THING, "cli.show.tasks"],
    "wait --timeout 5": [*WAITING, *CONCERNS],
    "wait --needed --timeout 5": [*WAITING, *CONCERNS, *LEADING],
    "update-task 2 --status completed": [*TASKS, *NOTED, *EDITING, *COMPLETING, "commands.tasks_updates"],
}


def test_what_is_loaded_in_a_row_is_what_every_command_uses() -> None:
    usual, more = main._USUAL.split(), main._OF_TASKS.split()
    assert set(usual) <= set.intersection(*(set(names) for words, names in HOT.items() if words != "--version"))
    of_tasks = [set(names) for words, names in HOT.items() if main.is_of_tasks(words.split()[0])]
    assert set(more) <= set.intersection(*of_tasks)
    for words, names in HOT.items():
        for _, own in main.rows(words.split()):
            assert words == "--version" or set(own.split()) <= set(names)


def test_a_wait_for_one_thing_is_known_by_its_options() -> None:
    of_wait, of_another = (
        {flag for parameter in commands.get(name).parameters for flag in parameter.flags} for name in ("wait", "whoami")
    )
    assert of_wait - of_another - {"--claim", "--needed", "--completed", "--timeout"} == main.ONE_THING


@pytest.mark.parametrize("words", [*main._OWN, "wait --message", "wait --needed"])
def test_what_is_loaded_in_a_row_stands_behind_what_it_imports(words: str) -> None:
    """Else that is imported in the slow way, which nobody notices but by the time that it takes."""
    row = [*__main__._FIRST.split(), *(name for _, own in main.rows(words.split()) for name in own.split())]
    assert len(row) == len(set(row))
    before = {"", "__main__", "compiled"}
    for module in row:
        needed = {found for found, when in own_imports(module) if when == "import"}
        assert needed | {module.rpartition(".")[0]} <= before, module
        before.add(module)


@pytest.mark.parametrize("words", HOT)
def test_what_a_command_loads(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it does not tidy up as well, which one of some hundred does."""
    monkeypatch.chdir(tmp_path)  # in no worktree, as this checkout may be one
    tries = (loaded_by(words, tmp_path / str(number)) for number in range(5))
    found = next(found for found in tries if "store.files.examination" not in found)
    assert found - {"teams_cli"} <= {*HOT[words], *LIBRARY}


def loaded_by(words: str, root: Path) -> set[str]:
    """What the command loads when one gives it who was heard of a moment before, and was told of its mail."""
    cli = make_team(root, "mia")
    add_tasks(cli, "t", "u", "v")
    cli.ok("send-message", "mia", "hi", agent="lea")
    cli.ok("claim-task", "2", agent="mia") if words.startswith("update") else None
    cli.ok("update-task", "3", "--status", "cancelled", agent="human") if words.endswith("--task 3") else None
    cli("note", "1", "seen", agent="mia")
    path = [str(Path(teams_cli.__file__).parents[1])]
    return {name.removeprefix("teams_cli.") for name in loaded.loaded_by(words.split(), cli.environ("mia"), path)}
