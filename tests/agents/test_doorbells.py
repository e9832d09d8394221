"""Doorbells: who may wait there for which client."""

from __future__ import annotations

import json
from pathlib import Path

from teams_cli.agents.seats import channels
from teams_cli.agents.seats.channels import Doorbell

PID = 4711


def test_nobody_waits_for_a_client_whose_hooks_were_taken_out_until_they_are_back(tmp_path: Path) -> None:
    """Nor after the one who waited went; the client that sits there next is another."""
    bells = {client: heard_bell(tmp_path, client) for client in ("claude", "codex")}
    channels.dismiss(str(tmp_path), "claude")
    assert bells["claude"].wait(20) == channels.LEAVE and bells["codex"].wait(0) == b""
    for bell in bells.values():
        bell.close()
    assert bells["claude"].is_dismissed(PID) and not bells["codex"].is_dismissed(PID)
    assert not bells["claude"].is_dismissed(PID + 1)
    channels.dismiss(str(tmp_path), "claude")
    channels.readmit(str(tmp_path), "claude")
    assert not bells["claude"].is_dismissed(PID) and bells["claude"].client() == PID


def heard_bell(place: Path, client: str) -> Doorbell:
    """The bell of a client of that kind, at which somebody waits."""
    (place / f"{client}.json").write_text(json.dumps({"client": client}))
    bell = Doorbell(str(place / f"{client}.bell"))
    assert bell.take(PID)
    return bell
