"""The types that records, settings and workflows are declared with; imported only where something is validated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, Required

from pydantic import AfterValidator, Field, StringConstraints
from typing_extensions import TypedDict

from teams_cli.clock import parse_rfc3339
from teams_cli.names import is_name
from teams_cli.records.shapes import is_check, is_review


def _name(text: str) -> str:
    if not is_name(text):
        raise ValueError("is not a name")
    return text


def _time(text: str) -> str:
    parse_rfc3339(text)
    return text


def _rung(pair: list[Any]) -> list[Any]:
    signals = ("HUP", "INT", "QUIT", "TERM", "KILL")
    seconds = pair[1] if len(pair) == 2 else -1
    if type(seconds) not in (int, float) or not 0 <= seconds < 1e6 or pair[0] not in signals:
        raise ValueError(f"is not a signal ({', '.join(signals)}) and the seconds that it is given")
    return pair


def _came_of(event: str, has_its_shape: Callable[[dict[str, Any]], bool]) -> AfterValidator:
    def shaped(found: dict[str, Any]) -> dict[str, Any]:
        if not has_its_shape(found):
            raise ValueError(f"is not what came of a {event}")
        return found

    return AfterValidator(shaped)


def _unicode(text: str) -> str:
    text.encode()
    return text


Name = Annotated[str, AfterValidator(_name)]
Time = Annotated[str, Field(max_length=64), AfterValidator(_time)]
Text = Annotated[str, AfterValidator(_unicode)]
Word = Annotated[str, StringConstraints(min_length=1, max_length=255), AfterValidator(_unicode)]
Count = Annotated[int, Field(ge=0, lt=2**53)]
Number = Annotated[int, Field(ge=1, lt=10**12)]
Seconds = Annotated[float, Field(ge=0, lt=1e12)]
Object = dict[str, Any]
Checked = Annotated[Object, _came_of("check", is_check)]
Reviewed = Annotated[Object, _came_of("review", is_review)]

TaskId = Annotated[str, StringConstraints(pattern=r"^task-[1-9][0-9]{0,11}\z")]
MessageId = Annotated[str, StringConstraints(pattern=r"^msg-[1-9][0-9]{0,11}\z")]
PlanId = Annotated[str, StringConstraints(pattern=r"^plan-[1-9][0-9]{0,11}\z")]
ShutdownId = Annotated[str, StringConstraints(pattern=r"^shutdown-[1-9][0-9]{0,11}\z")]

TeamState = Literal["active", "closed"]
TaskStatus = Literal["pending", "in_progress", "in_review", "completed", "failed", "cancelled"]
Priority = Literal["high", "normal", "low"]
PlanStatus = Literal["proposed", "approved", "rejected"]
ShutdownStatus = Literal["requested", "approved", "rejected"]
MessageType = Literal["plain", "broadcast", "reply", "notice", "plan", "shutdown", "output", "question", "info"]

Verdict = Literal["allow", "ask", "deny"]
PermissionTable = dict[Literal["tool"], dict[Word, dict[Word, Verdict] | Verdict]]


class RoleDefinition(TypedDict, total=False):
    """A role that a team or a user defines."""

    extends: Required[Name]
    skill: list[Word]
    description: Text
    allow: list[Word]
    deny: list[Word]


RoleTable = dict[Name, RoleDefinition]
SettingTable = dict[Word, bool | int | float | str]
HarnessTable = dict[Name, Object]
HarnessInput = Literal["prompt", "messages"]
Permissions = Literal["ask", "edit", "all"]
Ladder = list[Annotated[list[Any], AfterValidator(_rung)]]
SessionState = Literal["starting", "running", "waiting", "done", "paused"]
TerminalState = Literal["idle", "working", "permission", "unknown", "gone"]
Outcome = Literal["completed", "failed", "stopped", "lost"]
LandingId = Annotated[str, StringConstraints(pattern=r"^landing-[1-9][0-9]{0,11}\z")]
LandingState = Literal["queued", "checking", "landed", "red", "conflict", "refused"]
QuestionId = Annotated[str, StringConstraints(pattern=r"^ask-[1-9][0-9]{0,11}\z")]
AskedWhom = Literal["agents", "human"]
Depth = Literal["low", "medium", "high"]
QuestionStatus = Literal["pending", "collecting", "complete", "timeout", "deferred"]
