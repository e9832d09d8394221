"""Traces of a team, read with the message classes that OpenTelemetry publishes for its protocol."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status, TracesData

from teams_cli.agents.budgets import USAGE
from teams_cli.runs.runs import RUN
from teams_cli.tasks.landings import LANDING
from tests.support.cli import ALPHA, add_tasks, make_team

_IDS = ("traceId", "spanId", "parentSpanId")
TURN = {"turn": 1, "run": "r", "seconds": 2.0, "tasks": ["task-1"]}


def as_messages(said: Any) -> Any:
    """The JSON as the protobuf library wants it: ids in base 64 instead of the hexadecimal digits of OTLP."""
    if isinstance(said, list):
        return [as_messages(one) for one in said]
    if not isinstance(said, dict):
        return said
    return {
        key: base64.b64encode(bytes.fromhex(value)).decode() if key in _IDS else as_messages(value)
        for key, value in said.items()
    }


def attributes(span: Span) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def test_spans_fit_the_protocol(tmp_path: Path) -> None:
    """Exported spans have only fields of the protocol, and each span has the right parent."""
    cli = make_team(tmp_path / "root", "bob")
    add_tasks(cli, "one", "two")
    cli.ok("claim-task", "1", agent="bob")
    store = cli.store()
    tokens = [{"model": "m", "input": 10, "cached": 4, "output": 3}]
    now = store.now().isoformat()
    landed = {**dict.fromkeys(("repository", "onto", "head", "title"), "x"), "teamName": ALPHA, "task": "task-1"}
    landed |= {"by": "bob", "state": "red", "createdAt": now, "endedAt": now}
    run = {**dict.fromkeys(("workflow", "leader", "mark", "report"), "w"), "definition": {}}
    run |= {"status": "completed", "startedAt": now, "endedAt": now}
    turn = {**TURN, "at": now, "tokens": tokens}
    for kind, said in ((LANDING, landed), (RUN, run)):
        store.create(ALPHA, kind, None, kind.record.from_json(said))
    store.create(ALPHA, USAGE, "bob", USAGE.record.from_json({"agent": "bob", "turns": [turn]}))
    cli.ok("update-task", "1", "--status", "completed", "--result", "done", agent="bob")
    answer = cli("export", "--format", "otlp", agent="lea")
    data = json_format.ParseDict(as_messages(json.loads(answer.stdout)), TracesData())
    (resource,) = data.resource_spans
    assert attributes(resource.resource)["teams.gen_ai.conventions"] == "0.1.0"
    team, ran, task, turned, landing = resource.scope_spans[0].spans
    assert [one.name for one in (ran, task, turned)] == ["invoke_workflow w", "task-1", "invoke_agent bob"]
    assert landing.parent_span_id == task.span_id and landing.status.code == Status.STATUS_CODE_ERROR
    assert attributes(ran)["gen_ai.operation.name"] == "invoke_workflow" and ran.parent_span_id == team.span_id
    assert not team.parent_span_id and task.parent_span_id == team.span_id and turned.parent_span_id == task.span_id
    assert {len(team.trace_id), len(team.span_id)} == {16, 8} and task.trace_id == team.trace_id == turned.trace_id
    assert task.status.code == Status.STATUS_CODE_OK and task.kind == Span.SPAN_KIND_INTERNAL
    assert turned.end_time_unix_nano - turned.start_time_unix_nano == 2_000_000_000
    said = attributes(turned)
    assert said["gen_ai.operation.name"] == "invoke_agent" and said["gen_ai.agent.name"] == "bob"
    assert (said["gen_ai.usage.input_tokens"], said["gen_ai.usage.cache_read.input_tokens"]) == (10, 4)
    assert (said["gen_ai.usage.output_tokens"], said["gen_ai.request.model"]) == (3, "m")
    assert cli("export", "--format", "otlp", agent="lea").stdout == answer.stdout
