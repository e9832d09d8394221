"""`doctor --client --turn` with real clients tells whether a hook fired."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.e2e.conftest import BINARIES, Office
from tests.e2e.model import Say
from tests.support.cli import COMMAND


def test_doctor_sees_whether_hooks_fire(office: Office) -> None:
    """Doctor also notices that Codex silently skips hooks that nobody trusted."""
    office.model.script("ready", *[Say("ready")] * 10)
    assert fired(office) is False
    office.say("install", office.client)
    if office.client == "codex":
        assert fired(office) is False
        trust(office)
    assert fired(office) is True
    office.say("uninstall", office.client)
    assert fired(office) is False


def fired(office: Office) -> bool:
    done = subprocess.run(
        [*COMMAND, "doctor", "--client", office.client, "--turn", "--json"],
        env=office.environ(),
        cwd=office.work,
        capture_output=True,
        text=True,
        timeout=60,
    )
    *_, last = json.loads(done.stdout)["findings"]
    assert "in a turn of the client" in last["what"], done
    assert done.returncode == (0 if last["level"] == "good" else 1)
    return bool(last["level"] == "good")


def trust(office: Office) -> None:
    """Trust all hooks, as a person does with `/hooks`."""
    server = subprocess.Popen(
        [BINARIES["codex"], "app-server"],
        env=office.environ(),
        cwd=office.work,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )

    def ask(number: int, method: str, parameters: dict[str, Any]) -> Any:
        assert server.stdin and server.stdout
        server.stdin.write(json.dumps({"id": number, "method": method, "params": parameters}) + "\n")
        server.stdin.flush()
        for line in server.stdout:
            if (answer := json.loads(line)).get("id") == number:
                return answer["result"]
        raise AssertionError(f"no answer to {method}")

    with server:
        ask(1, "initialize", {"clientInfo": {"name": "test", "version": "1"}})
        found = ask(2, "hooks/list", {"cwds": [str(office.work)]})
        server.terminate()
    with (office.home / ".codex/config.toml").open("a") as config:
        for hook in found["data"][0]["hooks"]:
            config.write(f'[hooks.state.{json.dumps(hook["key"])}]\ntrusted_hash = "{hook["currentHash"]}"\n')
