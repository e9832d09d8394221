"""What each turn of an agent is given: its environment, its token and its prompt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from teams_cli.agents import sessions
from teams_cli.agents.sessions import SESSION
from teams_cli.store.contract import update
from tests.support.agents import (
    NEEDS_PROC,
    detach,
    end_all,
    ended,
    lines,
    outputs_to,
    place,
    run_agent,
    session,
    team_of_agents,
    with_client,
)
from tests.support.cli import ALPHA, Cli
from tests.support.waits import until

pytestmark = NEEDS_PROC


FOREIGN = {
    "TEAMS_AGENT_NAME": "Bob the first",
    "TEAMS_TOKEN": "bobs",
    "TEAMS_RUN_ID": "bobs-run",
    "OPENCODE_AGENT_ID": "bob",
    "CLAUDECODE": "bobs",
    "CODEX_THREAD_ID": "bobs",
    "GIT_DIR": "/bobs/.git",
}


@pytest.mark.slow
def test_nothing_of_another_identity_is_inherited(cli: Cli) -> None:
    """An agent inherits API keys, but no identity, from whoever starts or wakes it."""
    more = {**FOREIGN, "ANTHROPIC_API_KEY": "key"}
    prompt = "env -0 >$D/turn-$TEAMS_RESUME"
    assert cli("spawn", prompt, "--wait", "--agent-id", "zoe", agent="bob", **more).status == 0
    assert cli("send-message", "zoe", "hi", agent="mia", **more).status == 0
    ended(cli, "zoe", 2)
    for turn in ("", "1"):
        entries = (place(cli) / f"turn-{turn}").read_bytes().decode().rstrip("\0").split("\0")
        variables = dict(entry.split("=", 1) for entry in entries)
        assert variables["ANTHROPIC_API_KEY"] == "key"
        assert not [value for value in variables.values() if "bob" in value.lower()]
        for prefix in ("TEAMS_AGENT", "OPENCODE_AGENT"):
            assert [variables[f"{prefix}_{key}"] for key in ("ID", "NAME", "TYPE")] == ["zoe", "zoe", "team-member"]
        assert (variables["TEAMS_TEAM"], variables.get("TEAMS_RESUME", "")) == (ALPHA, turn)
        assert ".zoe." in variables["TEAMS_RUN_ID"] and int(variables["TEAMS_PORT_BASE"]) >= 10000


def test_in_a_secure_team_each_agent_has_its_own_token(tmp_path: Path) -> None:
    cli = team_of_agents(tmp_path)
    answer = cli("spawn-team", "safe", "--secure", "--json", agent="boss", team="safe").json
    prompt = "$T announce here >&2 && echo $TEAMS_TOKEN >>$D/tokens"
    words = ("run-agent", prompt, "--agent-id", "zoe", "--json")
    done = cli(*words, agent="boss", team="safe", TEAMS_TOKEN=answer["token"])
    assert done.status == 0, done
    sent = cli("send-message", "zoe", "hi", agent="boss", team="safe", TEAMS_TOKEN=answer["token"])
    assert sent.status == 0
    store = cli.store()
    until(lambda: len(lines(cli, "tokens")) == 2 and sessions.find(store, "safe", "zoe").ended)  # type: ignore[union-attr]
    tokens = lines(cli, "tokens")
    assert len({*tokens, answer["token"]}) == 3
    kept = "".join(path.read_text(errors="replace") for path in cli.root.rglob("*") if path.is_file())
    assert not [token for token in (*tokens, answer["token"]) if token in kept]
    end_all(cli.root)


@pytest.mark.slow
def test_a_client_with_json_lines_and_its_own_session_id(cli: Cli) -> None:
    """A client of the user's own is resumed with the id that it printed and its messages as the prompt."""
    with_client(cli)
    odd = "'odd' \"chars\" $HOME `x` \\ {prompt} {agent} ümläut \U0001f600"
    prompt = f"say first\nrun $T send-message lea hello\nsay {odd}"
    done = run_agent(cli, prompt, "--harness", "scripted", "--agent-id", "zoe")
    assert done["output"] == odd
    assert [m["from"] for m in cli.ok("read-messages", agent="lea")] == ["zoe"]
    cli.ok("send-message", "zoe", "say more\nsleep 0", agent="bob")
    zoe = ended(cli, "zoe", 2)
    assert zoe.session_id.startswith("made-") and outputs_to(cli, "lea")[1:] == [("zoe", "more")]
    turns = [json.loads(line) for line in lines(cli, zoe.session_id)]
    how = "(answer with: teams reply msg-3 TEXT; or: teams ack msg-3)"
    assert turns == [prompt, f'[From agent "bob"]:\n| say more\n| sleep 0\n{how}']
    detach(cli, "yan", "fail the model is gone", "--harness", "scripted")
    assert ended(cli, "yan").outcome == "failed"


@pytest.mark.slow
def test_a_client_says_several_megabytes(cli: Cli) -> None:
    """In a very long output the session id and the answer are found; a long answer keeps its end."""
    with_client(cli)
    done = run_agent(cli, "chat 3000000\nsay the end\nchat 3000000", "--harness", "scripted", "--agent-id", "zoe")
    assert done["output"] == "the end" and session(cli, "zoe").session_known
    done = run_agent(cli, "yes 0123456789 | head -c 5000000; echo; echo the end", "--agent-id", "yan")
    assert len(done["output"].encode()) <= 1024 * 1024 and done["output"].endswith("\nthe end\n")
    assert done["output"].startswith("[the beginning of 5000009 bytes is in ")
    detach(cli, "xan", "yes 0123456789 | head -c 200000")
    ended(cli, "xan")
    [(_, message)] = outputs_to(cli, "lea")[2:]
    assert len(message) < 65536 and message.endswith("more characters: teams recall xan --output]")
    assert len(cli.ok("recall", "xan", "--output")["agents"][0]["output"]) == 200000


def lose_session(cli: Cli) -> None:
    """Make it look as if zoe's client was killed before it said its session id."""
    lost = update(cli.store(), ALPHA, SESSION, "zoe", lambda s: s.having(session_id="lost", session_known=None))[1]
    sessions.note_started_here(cli.store(), ALPHA, lost)


@pytest.mark.slow
def test_a_client_that_was_killed_before_it_said_its_id_starts_over(cli: Cli) -> None:
    with_client(cli)
    detach(cli, "zoe", "say one", "--harness", "scripted")
    known = ended(cli, "zoe").session_id
    lose_session(cli)
    cli.ok("send-message", "zoe", "say two", agent="bob")
    assert ended(cli, "zoe", 2).session_id == known  # the id was in the log of the last turn
    (cli.root / "logs" / ALPHA / "zoe.2.out").unlink()
    lose_session(cli)
    cli.ok("send-message", "zoe", "say three", agent="bob")
    again = ended(cli, "zoe", 3).session_id
    assert again not in (known, "lost") and outputs_to(cli, "lea")[-1] == ("zoe", "three")
    assert json.loads(lines(cli, again)[0]).startswith("say one\n\n[From agent")


def test_why_an_agent_can_not_be_started_is_told(cli: Cli) -> None:
    config = {"harness": {"absent": {"start": ["no-such-program"], "resume": ["no-such-program"]}}}
    (cli.root / "config.json").write_text(json.dumps(config))
    done = run_agent(cli, "x", "--harness", "absent", status=1)
    said = f"no-such-program can't be started in {place(cli)}: there is no program no-such-program on the PATH"
    assert (done["outcome"], done["failure"]) == ("failed", said)
    long = cli("run-agent", "-", "--json", agent="lea", stdin=b"true " + b"#" * 300_000)
    assert (long.status, "Argument list too long" in json.loads(long.stdout)["failure"]) == (1, True)
    away = place(cli) / "away"
    away.mkdir()
    assert cli("run-agent", "cat", "--agent-id", "zoe", "--cwd", str(away), agent="lea").status == 0
    away.rmdir()
    cli.ok("send-message", "zoe", "hi", agent="bob")
    assert ended(cli, "zoe", 2).failure == f"sh can't be started in {away}: No such file or directory"
