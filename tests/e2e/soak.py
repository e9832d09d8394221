"""Clients at their prompts get messages for an hour: `python -m tests.e2e.soak [--minutes 60] [--messages
200]`.

Needs real clients, as `eval "$(tests/e2e/install.sh)"` names them; the model is scripted. In the end every
message must have been shown to its model once, no process of `teams` may be left, and the processes that stay
beside clients may not have grown. Exits with 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from tests.e2e.conftest import BINARIES, Office
from tests.e2e.model import Model, Say
from tests.e2e.sitting import WOKEN_NATIVELY, Desk, install, prepare, processes_of, row_of, until, wait_for_state

STAY = ("agents.waking", "--wait")
"""The processes of `teams` that stay beside clients, by a word of their command line."""
SLACK = 2048
"""KiB by which such a process may have grown at the end."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--messages", type=int, default=200)
    said = parser.parse_args()
    clients = [client for client in WOKEN_NATIVELY if os.access(BINARIES[client], os.X_OK)]
    for client in sorted({*WOKEN_NATIVELY} - {*clients}):
        print(f"!!! without {client}: see what tests/e2e/install.sh said", flush=True)
    if not clients:
        sys.exit("no client is there")
    with tempfile.TemporaryDirectory(prefix="teams-soak-") as top:
        model = Model()
        office = Office(Path(top), clients[0], model)
        desk = Desk(office)
        try:
            for client in clients:
                sit_down(office, desk, client)
            wrong = soak(office, clients, said.minutes * 60, said.messages)
        finally:
            desk.close()
        wrong += left(office)
        model.close()
    print("\n".join(f"!!! {what}" for what in wrong) or "all read once, no process left, memory flat")
    sys.exit(bool(wrong))


def sit_down(office: Office, desk: Desk, client: str) -> None:
    """Start the client in a terminal, and have it take one turn."""
    office.client = client
    with suppress(FileExistsError):
        (office.bin / client).symlink_to(BINARIES[client])
    prepare(office)
    install(office)
    office.model.script(word(client), Say("hello"))
    seat = desk.start(client, TEAMS_AGENT_ID=client).ready()
    seat.say(f"{word(client)} hi")
    wait_for_state(office, client, "idle")
    print(f"{client} sits", flush=True)


def soak(office: Office, clients: list[str], seconds: float, count: int) -> list[str]:
    """Write to the clients one after the other, evenly over the time, and return what was wrong."""
    before: dict[str, int] = {}
    began = time.monotonic()
    to = [clients[number % len(clients)] for number in range(count)]
    random.Random(7).shuffle(to)
    for number, name in enumerate(to):
        time.sleep(max(0.0, began + seconds * number / count - time.monotonic()))
        if number == count // 10:  # by then each was woken, and has loaded what it needs
            before = memory(office)
        office.say("send-message", name, f"note {number}.", agent="human")
        if number % 20 == 0:
            print(f"{time.monotonic() - began:6.0f} s, {number} sent, KiB: {memory(office)}", flush=True)
    for name in clients:
        until(lambda name=name: row_of(office, name)["queueDepth"] == 0, lambda: office.logs(), 120)  # type: ignore[misc]
        wait_for_state(office, name, "idle")
    after = memory(office)
    print(f"KiB before: {before}\nKiB after:  {after}", flush=True)
    wrong = [f"{what} grew from {before[what]} to {after[what]} KiB" for what in grown(before, after)]
    return wrong + [problem for number, name in enumerate(to) for problem in unread(office, name, number)]


def unread(office: Office, name: str, number: int) -> list[str]:
    """What is wrong with the delivery of the message, which must be in its conversation once."""
    times = office.model.requests[word(name)][-1].text.count(f"| note {number}.")
    (to,) = json.loads(office.say("show-message", f"msg-{number + 1}"))["reach"]
    if (times, to["state"]) in ((1, "shown"), (1, "read"), (1, "handled")):
        return []
    return [f"note {number} to {name} was shown {times} times, and is {to['state']}"]


def memory(office: Office) -> dict[str, int]:
    """The size of the largest process of each kind that stays, in KiB, and their number."""
    found = {}
    for what in STAY:
        sizes = [resident(pid) for pid in processes_of(office, what)]
        found[what], found[f"{what} processes"] = max(sizes, default=0), len(sizes)
    return found


def grown(before: dict[str, int], after: dict[str, int]) -> list[str]:
    return [what for what in before if after[what] > before[what] + (0 if what.endswith("processes") else SLACK)]


def resident(pid: int) -> int:
    """The resident memory of the process in KiB."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(status.partition("VmRSS:")[2].split()[0])


def left(office: Office) -> list[str]:
    """The processes of `teams` that are still there after the clients ended and the team was closed."""
    office.cli("close-team", "--force", agent="lea")
    with suppress(AssertionError):
        until(lambda: not any(processes_of(office, what) for what in STAY), str, 30)
    return [f"{what} is left" for what in STAY if processes_of(office, what)]


def word(client: str) -> str:
    """The word by which the model knows the conversation of the client."""
    return f"[{client}]"


if __name__ == "__main__":
    main()
