"""Asking other agents or the human: who may ask whom, how many questions at a time, and what the asker gets back."""

from __future__ import annotations

import os

from teams_cli import errors, text
from teams_cli.clock import later, rfc3339
from teams_cli.names import HUMAN
from teams_cli.questions import human as human_queue
from teams_cli.questions import questions
from teams_cli.questions.questions import QUESTION, Answer, Question
from teams_cli.store.contract import Store
from teams_cli.teams import history, settings, teams
from teams_cli.teams.permission import require
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.records.types import Depth
    from teams_cli.teams.permission import Caller

HISTORY_NOTE = (
    "The human has already answered questions this session. Review the history above - your question may already be "
    "answered. If you still need different information, call ask_others with a more specific question."
)
OFF = "false"
_WHEN = {
    "low": "only when you are blocked, or before a decision that is critical",
    "medium": "before significant decisions, and when help or a confirmation is worth the wait",
    "high": "often: whenever you weigh options, assume something, or are about to change what others work on",
}
_WHOM = {"agents": "the other agents", HUMAN: "the human"}
_DEPTHS = {
    "low": """Response depth: LOW. Give a quick, simple answer:
- prefer basic technologies (plain HTML/CSS/JS, the standard library, simple libraries)
- avoid complex frameworks and architectures
- get the job done with as few dependencies as possible
- be brief and to the point""",
    "medium": """Response depth: MEDIUM. Give a balanced answer:
- use technology that fits the complexity of the task
- follow standard best practices without over-engineering
- balance simplicity with maintainability
- be concise but thorough""",
    "high": """Response depth: HIGH. Give a thorough, comprehensive answer:
- recommend modern frameworks and best practices (React, Next.js, TypeScript and the like, where they fit)
- consider the architecture (rendering, component libraries, testing, CI/CD)
- suggest professional tools and patterns
- go into detail, with examples""",
}


def invitation(team: Team) -> str:
    """Return the text that says whether one can ask, whom, and how readily, by the team's settings; empty where
    questions are off.
    """
    whom = _WHOM.get(str(settings.value(team, "broadcast")))
    readily = how_readily(team)
    return f"You can ask {whom} and get the answers at once: teams ask-others QUESTION. {readily}" if readily else ""


def how_readily(team: Team) -> str:
    """Return when an agent should ask, by the setting `broadcast_sensitivity`; empty where questions are off."""
    if str(settings.value(team, "broadcast")) == OFF:
        return ""
    return f"Ask {_WHEN[str(settings.value(team, 'broadcast_sensitivity'))]}."


def how_deep(depth: Depth) -> str:
    """Return how deep an answer should go, in words for the responder."""
    return _DEPTHS[depth]


def ask(
    store: Store,
    team_name: str,
    caller: Caller | None,
    question: str,
    to: list[str],
    timeout: float | None = None,
    depth: Depth | None = None,
    human: bool = False,
    waits: bool = False,
) -> Question:
    """Ask the other members, some of them, or the human. By default the team's setting `broadcast` decides.

    With *waits*, this process waits for the answers.

    Raises:
        NotAllowed: Questions are off in this team.
        InvalidValue: The question is blank, somebody asked is oneself, the human is not asked alone, or *timeout*, in
            seconds, is out of the bounds of the setting `broadcast_timeout`.
        AgentNotFound: Somebody asked is no active member.
        Conflict: As many questions of the caller's as are allowed are open.
    """
    at = require(store, team_name, caller, "ask-others")
    team, caller = at.team, at.caller
    text.checked(question, "question")
    mode = HUMAN if human else str(settings.value(team, "broadcast"))
    if mode == OFF:
        who = "the human" if team.leader == HUMAN else f"{team.leader} or the human"
        hint = (
            "Ask by mail: teams send-message NAME TEXT, or the human: teams ask-others --human QUESTION. "
            f"{who} can turn questions on: teams set broadcast agents"
        )
        raise errors.NotAllowed("questions are off in this team", hint)
    _refuse_too_many(store, team, caller.name)
    asked = _asked(team, caller.name, mode, to)
    draft = _draft(store, team, caller.name, question, asked, seconds_of(team, timeout), depth)
    if waits:
        draft = draft.awaited_by(os.getpid(), store.host)
    made, _ = store.create(team_name, QUESTION, None, _as_it_starts(store, draft))
    history.note(store, team_name, caller.name, "question asked", question=made.id, to=asked)
    return made


def _draft(
    store: Store, team: Team, asker: str, question: str, to: list[str], seconds: float, depth: Depth | None
) -> Question:
    now = store.now()
    begins = human_queue.time_of_last(store, team.name) if to == [HUMAN] else now
    return Question(
        team_name=team.name,
        from_=asker,
        question=question,
        mode="human" if to == [HUMAN] else "agents",
        to=to,
        depth=depth or settings.value(team, "response_depth"),  # type: ignore[arg-type]  # one of the setting's choices
        created_at=rfc3339(now),
        timeout=seconds,
        expires_at=rfc3339(later(begins, seconds)),
    )


def _refuse_too_many(store: Store, team: Team, asker: str) -> None:
    most = int(settings.value(team, "max_broadcasts_per_agent"))
    going = [
        question.id for question in questions.all_of(store, team.name, []) if question.open and question.from_ == asker
    ]
    if len(going) >= most:
        raise errors.Conflict(f"{asker} has {len(going)} open questions: {', '.join(going)}", "Wait for their answers.")


def _asked(team: Team, asker: str, mode: str, to: list[str]) -> list[str]:
    """Return who is to answer."""
    if mode == HUMAN:
        _refuse_beside_human(to)
        to = [HUMAN]
    if not to:
        return [name for name in team.active_names() if name != asker]
    found = list(dict.fromkeys(teams.get_recipient(team, name) for name in to))
    if asker in found:
        raise errors.InvalidValue("you can't ask yourself", "Name other members: teams list-agents")
    if HUMAN in found:
        _refuse_beside_human(found)
    return found


def _refuse_beside_human(to: list[str]) -> None:
    others = [name for name in to if name != HUMAN]
    if others:
        raise errors.InvalidValue(
            f"the human can't be asked together with {', '.join(others)}",
            "Leave out --to, or ask separately, with --human. For agents the leader runs: teams set broadcast agents",
        )


def seconds_of(team: Team, timeout: float | None = None) -> float:
    """Return how long the question waits."""
    if timeout is None:
        return float(settings.value(team, "broadcast_timeout"))
    return float(settings.known("broadcast_timeout").parse("--timeout", str(timeout)))


def _as_it_starts(store: Store, draft: Question) -> Question:
    """Return the new question: collecting; complete if there is nobody to ask; or deferred to the human's earlier
    answers.
    """
    if not draft.to:
        return draft.having(status="complete", closed_at=draft.created_at)
    if draft.to != [HUMAN]:
        return draft.having(status="collecting")
    if answered := human_queue.deferred_to(store, draft):
        return draft.having(status="deferred", known=answered, closed_at=draft.created_at)
    return draft.having(status="pending")


def result_of(store: Store, question: Question) -> dict[str, Any]:
    """Return the question as its asker gets it back."""
    document: dict[str, Any] = {
        "requestId": question.id,
        "status": question.status,
        "responses": [
            {"responder_id": a.responder, "content": a.content, "is_human": a.is_human, **_flags(a)}
            for a in question.counted
            if not a.skipped
        ],
    }
    if not question.to:
        document["note"] = "There is nobody else to ask."
    if any(a.skipped for a in question.counted):
        document["skipped"] = True
    try:
        return {**document, **_what_the_human_said(store, question)}
    except errors.TeamsError:  # it stands as it was asked, and answered
        return document


def _what_the_human_said(store: Store, question: Question) -> dict[str, Any]:
    """Return the human's earlier answers: all of them for a deferred question, none for one that the human answered."""
    if question.status != "deferred":
        return {}
    return {"human_qa_history": human_queue.answers_so_far(store, question.team_name), "human_qa_note": HISTORY_NOTE}


def _flags(answer: Answer) -> dict[str, bool]:
    return {"failed": True} if answer.failed else {}
