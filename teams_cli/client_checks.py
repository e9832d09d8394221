"""Whether a client is there and our hooks work in it: the binary, the settings, their command, and a real turn."""

from __future__ import annotations

import json
import os
import subprocess
from shutil import which
from tempfile import TemporaryDirectory

from teams_cli import harness, hook_settings, installation, membership, messages
from teams_cli.caller import Caller
from teams_cli.store.files import FileStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from teams_cli.config import Config
    from teams_cli.installation import Place
    from teams_cli.store.contract import Finding

_PROBE = "This is a test of the hooks"
_PROMPT = "Answer with the one word: ready"
_PATIENCE = 120
_TEAM, _AGENT = "probe", "probe"


def examine(
    client: str, config: Config | None, environ: Mapping[str, str], directory: str, turn: bool
) -> Iterator[Finding]:
    """Look at all that has to be right for the client's hooks to fire; with *turn*, have it take one and see.

    What is right is told as well, with the level `good`.
    """
    profile = harness.find(client, config)
    program = which(profile.start[0], path=environ.get("PATH"))
    if program is None:
        yield _finding(client, "problem", f"there is no {profile.start[0]} on PATH", "Install it.")
        return
    yield _finding(client, "good", f"{program}: {_version(program, environ)}")
    places = [installation.user_places(client, environ.get("HOME", "/"), environ)[0]]
    places.append(installation.project_places(client, directory)[0])
    found = [command for place in places for command in _commands(place)]
    if not found:
        brought = hook_settings.words(profile.hooks, "python")
        remedy = f"teams install {client}" + (" (agents started by teams need it not)" if brought else "")
        yield _finding(client, "warning" if brought else "problem", "its settings have no hooks of ours", remedy)
    for command in dict.fromkeys(found):
        yield _try_command(client, command, environ)
    if turn:
        yield _try_turn(client, profile, environ, directory)


def _version(program: str, environ: Mapping[str, str]) -> str:
    try:
        words = [program, "--version"]
        done = subprocess.run(words, env=dict(environ), capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "does not say its version"
    return (done.stdout.strip() or done.stderr.strip() or "does not say its version").splitlines()[0]


def _commands(place: Place) -> list[str]:
    """The commands of ours in a client's settings."""
    try:
        with open(place.path, encoding="utf-8") as file:
            text = file.read()
        if place.client == "opencode":
            line = next(line for line in text.splitlines() if line.startswith("const command = "))
            return [json.loads(line.partition("= ")[2])]
        hooks = json.loads(text)["hooks"]
        inner = [hook for event in hook_settings.EVENTS[place.client] for e in hooks[event] for hook in e["hooks"]]
    except (OSError, ValueError, LookupError, TypeError, StopIteration):
        return []
    return [hook["command"] for hook in inner if hook_settings.is_ours(hook.get("command"))]


def _scratch(top: str) -> FileStore:
    """A team of its own in which the probe has mail."""
    store = FileStore(f"{top}/root")
    membership.spawn_team(store, _TEAM, Caller("lead"))
    membership.join(store, _TEAM, Caller(_AGENT))
    messages.send(store, _TEAM, Caller("lead"), _AGENT, _PROBE)
    return store


def _environment(store: FileStore, environ: Mapping[str, str]) -> dict[str, str]:
    kept = {key: value for key, value in environ.items() if not key.startswith(("TEAMS_", "OPENCODE_AGENT"))}
    return {**kept, **store.variables, "TEAMS_TEAM": _TEAM, "TEAMS_AGENT_ID": _AGENT}


def _try_command(client: str, command: str, environ: Mapping[str, str]) -> Finding:
    """Run the hook as the client would, after a tool call, with mail waiting."""
    dialect = command.split()[-1]
    given = json.dumps({"hook_event_name": "AfterTool" if dialect == "gemini" else "PostToolUse"})
    with TemporaryDirectory() as top:
        done = subprocess.run(
            ["sh", "-c", command],
            env=_environment(_scratch(top), environ),
            input=given,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    if done.returncode == 0 and _PROBE in done.stdout:
        return _finding(client, "good", f"answers: {command}")
    said = (done.stderr.strip() or f"exit status {done.returncode}, and nothing said")[-300:]
    return _finding(client, "problem", f"does not answer: {command}: {said}", f"teams install {client}")


def _try_turn(client: str, profile: harness.Profile, environ: Mapping[str, str], directory: str) -> Finding:
    """Have the client take a turn with its own settings, and see whether a hook of ours fired in it."""
    from uuid import uuid4

    words = harness.fill(profile.start, {"prompt": _PROMPT, "session_id": str(uuid4()), "agent": _AGENT, "root": ""})
    with TemporaryDirectory() as top:
        store = _scratch(top)
        try:
            done = subprocess.run(
                words,
                env=_environment(store, environ),
                cwd=directory,
                input=_PROMPT,
                capture_output=True,
                text=True,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return _finding(client, "problem", f"took no turn: {error}", f"Try it: {profile.start[0]}")
        fired = os.path.exists(f"{store.root}/teams/{_TEAM}/inboxes/{_AGENT}.seen")
    if fired:
        return _finding(client, "good", "a hook fired in a turn of the client")
    said = (done.stderr.strip() or done.stdout.strip())[-300:]
    remedy = "In codex say /hooks, and trust them." if client == "codex" else f"teams install {client}"
    return _finding(
        client, "problem", f"no hook fired in a turn of the client (status {done.returncode}): {said}", remedy
    )


def _finding(client: str, level: str, what: str, remedy: str = "") -> Finding:
    return {"level": level, "where": client, "what": what, "remedy": remedy}
