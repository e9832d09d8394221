"""A client for tests that speaks the Agent Client Protocol and writes what it is sent to `$D/sent`.

It does what the lines of a prompt say: `say TEXT`; `chunk TEXT`, a part of a text, in JSON; `print EXPRESSION`, a line
that is no message; `want TOOL`, which asks permission for a tool in JSON;
`hang` until it is cancelled; `fail TEXT`; `end`. If it gets no permission it ends its turn, as many clients do,
but while it asks it ends its turn only once it is answered. A second prompt during a turn ends the process.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

MODES = {"currentModeId": "auto", "availableModes": [{"id": "auto"}, {"id": "default"}]}
KEPT = f"{os.environ['D']}/said"


class Refused(Exception):
    """The client did not get permission."""


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def receive() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit()
    with open(f"{os.environ['D']}/sent", "a", encoding="utf-8") as file:
        file.write(line)
    return json.loads(line)


def update(kind: str, /, **more: Any) -> None:
    send(method="session/update", params={"sessionId": "one", "update": {"sessionUpdate": kind, **more}})


def say(text: str) -> None:
    update("agent_message_chunk", content={"type": "text", "text": text})


def want(tool: str) -> None:
    options = [{"optionId": f"my-{kind}", "kind": kind} for kind in ("allow_always", "allow_once", "reject_once")]
    send(id="leave", method="session/request_permission", params={"toolCall": json.loads(tool), "options": options})
    while (answer := receive()).get("id") != "leave":
        assert answer["method"] == "session/cancel", answer
    if answer["result"]["outcome"].get("optionId") != "my-allow_once":
        raise Refused
    update("tool_call", kind="other", title="done")


def take(prompt: str) -> dict[str, Any]:
    for line in prompt.splitlines():
        verb, _, rest = line.removeprefix("| ").partition(" ")
        if verb == "say":
            say(rest)
            with open(KEPT, "a", encoding="utf-8") as file:
                file.write(rest + "\n")
        elif verb == "chunk":
            say(json.loads(rest))
        elif verb == "print":
            print(eval(rest))
        elif verb == "want":
            try:
                want(rest)
            except Refused:
                return {"result": {"stopReason": "cancelled"}}
        elif verb == "hang":
            assert receive()["method"] == "session/cancel"
            return {"result": {"stopReason": "cancelled"}}
        elif verb == "fail":
            return {"error": {"code": -32000, "message": rest}}
        elif verb == "end":
            sys.exit(7)
    return {"result": {"stopReason": "end_turn"}}


def main() -> None:
    open(KEPT, "a", encoding="utf-8").close()
    print("a line that is no message")
    while True:
        message = receive()
        answer: dict[str, Any] = {"result": {}}
        match message["method"]:
            case "initialize":
                answer = {"result": {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}}
            case "session/new":
                answer = {"result": {"sessionId": "one", "modes": MODES}}
            case "session/load":
                with open(KEPT, encoding="utf-8") as file:
                    say(file.read())
                answer = {"result": {"modes": MODES}}
            case "session/prompt":
                send(id=1, method="fs/read_text_file", params={})
                assert receive()["error"]["code"] == -32601
                answer = take(message["params"]["prompt"][0]["text"])
        send(id=message["id"], **answer)


if __name__ == "__main__":
    main()
