"""A client here, its leader on another machine, PostgreSQL between them: woken and opened where it is."""

from __future__ import annotations

import os
import signal

from tests.e2e.conftest import Office
from tests.e2e.sitting import (
    NAME,
    Desk,
    begun,
    history_of,
    opened_again,
    row_of,
    seats,
    until,
    wait_for_mail,
    wait_for_state,
)
from tests.support.cli import ALPHA, Cli


@seats("claude", beside=("codex", "opencode", "qwen", "gemini"))
def test_it_is_woken_and_goes_on_on_its_own_machine_alone(on_postgres: str, office: Office, desk: Desk) -> None:
    """By the waker there, for what was sent here; killed, it is opened again there, and refused here."""
    office.variables = {"TEAMS_STORE": on_postgres, "TEAMS_HOST": "desk"}
    away = Cli(office.top / "away/root", "lea", ALPHA, TEAMS_HOST="away")
    seat = begun(office, desk)
    (row,) = [found for found in away.ok("list-agents")["agents"] if found["name"] == NAME]
    assert (row["host"], row["terminal"]["state"]) == ("desk", "idle")
    away.ok("send-message", NAME, "the build is red")
    wait_for_mail(office, seat, "| the build is red")
    wait_for_state(office, NAME, "idle")
    assert history_of(office).count("terminal woken") == 1
    again = f"teams open {office.client} --resume {NAME}"
    os.kill(row["terminal"]["pid"], signal.SIGKILL)
    wait_for_state(office, NAME, "gone")
    refused = away("open", office.client, "--resume", NAME)
    assert refused.status == 11 and f"{NAME} sits on another machine, desk" in refused.stderr, refused
    assert f"There: {again}" in refused.stderr
    back = opened_again(office, desk)
    away.ok("send-message", NAME, "it is green again")
    wait_for_mail(office, back, "| it is green again")
    until(lambda: row_of(office, NAME)["queueDepth"] == 0, office.logs)
