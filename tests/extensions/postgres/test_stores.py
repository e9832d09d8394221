"""The store is chosen by a flag, the environment or the configuration, and handed on to all processes that are
started.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import new_address
from tests.support.cli import ALPHA, Cli, make_team
from tests.support.postgres import end_users_of
from tests.support.waits import until
from tests.support.workflow_runs import processes_of


@pytest.mark.slow
def test_a_flag_wins_over_the_environment_over_the_configuration(tmp_path: Path) -> None:
    addresses = {name: new_address() for name in ("flag", "variable", "configured")}
    for name, address in addresses.items():
        Cli(tmp_path / "root", "lea").ok("spawn-team", name, "--store", address)
    cli = Cli(tmp_path / "root", "human")
    cli.ok("spawn-team", "infiles")

    def seen(*words: str, **environ: str) -> tuple[list[str], str]:
        answer = cli("discover-teams", *words, "--json", **environ)
        assert answer.status == 0, answer
        source = cli("settings", *words, "--json", **environ).json["call"]["store"]["source"]
        return [row["name"] for row in answer.json], source

    assert seen() == (["infiles"], "default")
    assert cli.ok("set", "--user", "store", addresses["configured"])["value"] == addresses["configured"]
    assert seen() == (["configured"], "config.json")
    assert seen(TEAMS_STORE=addresses["variable"]) == (["variable"], "TEAMS_STORE")
    assert seen("--store", addresses["flag"], TEAMS_STORE=addresses["variable"]) == (["flag"], "flag")
    assert seen("--store", "files", TEAMS_STORE=addresses["variable"]) == (["infiles"], "flag")
    assert cli.ok("set", "--user", "store", "files")["value"] == "files"
    assert seen() == (["infiles"], "config.json")


def test_what_is_no_store_is_refused_without_its_password(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root")
    for words in (
        ["set", "store", "files"],
        ["set", "--user", "store", "mysql://x:s3cret@y"],
        ["get-tasks", "--store", "sqlite.db"],
        ["get-tasks", "--store", "postgresql://x:s3cret@y:zz:1/?a"],
        ["get-tasks", "--store", "postgresql://x:s3cret@a/b?schema=a;b"],
    ):
        answer = cli(*words, agent="human")
        assert answer.status == 2 and "s3cret" not in answer.stdout + answer.stderr, answer


def test_a_refused_store_is_named_with_the_place_where_it_was_set(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root")
    assert cli("get-tasks", "--json", TEAMS_STORE="x").error["message"].startswith("TEAMS_STORE: 'x' is not")
    config = cli.root / "config.json"
    config.write_text('{"store": "x"}')
    assert cli("get-tasks", "--json").error["message"].startswith(f"{config}: store: 'x' is not")
    assert cli("get-tasks", "--store", "files").status == 0


def test_without_psycopg2_the_program_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "psycopg2.py").write_text("raise ImportError('not here')\n")
    cli = Cli(tmp_path / "root", "lea", PYTHONPATH=str(tmp_path))
    answer = cli("spawn-team", ALPHA, "--store", "postgresql://x/y", "--json")
    assert answer.status == 2 and ".[postgres]" in answer.error["hint"]


@pytest.mark.slow
def test_a_password_is_in_no_answer_and_no_command_line(tmp_path: Path) -> None:
    """Supervisors, wakers and clients get the password of the database only through their environment."""
    address = new_address().replace("teams@", "teams:s3cret@")
    cli = Cli(tmp_path / "root", "lea", ALPHA, TEAMS_STORE=address)
    try:
        cli.ok("spawn-team", ALPHA)
        for words in (["settings"], ["doctor"], ["version"], ["whoami"], ["list-agents"]):
            answer = cli(*words, "--json")
            assert "s3cret" not in answer.stdout + answer.stderr, answer
        assert cli("set", "--user", "store", address, "--json", agent="human").stdout.count("s3cret") == 0
        cli.ok("run-agent", f"touch {tmp_path}/ready; sleep 1000", "--agent-id", "ann", "--detach")
        until((tmp_path / "ready").exists)
        found = processes_of(cli.root)
        assert len(found) >= 3, found  # the keeper, the waker, the shell
        assert not [line for line in found.values() if "s3cret" in line]
        files = [path for path in cli.root.rglob("*") if path.is_file() and path.name != "config.json"]
        assert not [path for path in files if "s3cret" in path.read_text(errors="replace")]
        cli.ok("stop-agent", "ann")
    finally:
        end_users_of(address)
