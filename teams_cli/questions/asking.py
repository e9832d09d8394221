"""Asking other agents or the human: who may be asked, how many questions may be open, and the result for the asker."""

from __future__ import annotations

import os
from contextlib import suppress

from teams_cli import errors, text
from teams_cli.clock import later, rfc3339
from teams_cli.names import HUMAN
from teams_cli.questions import human as human_queue
from teams_cli.questions import questions
from teams_cli.questions.questions import QUESTION, Question
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
DEPTHS = {
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
"""What the responder is told about the depth of its answer."""


def invitation(team: Team) -> str:
    """Return a text that says whom agents can ask, and in which cases they should; "" if questions are off."""
    readily = how_readily(team)
    if not readily:
        return ""
    whom = _WHOM[str(settings.value(team, "broadcast"))]
    return f"You can ask {whom} and get the answers at once: teams ask-others QUESTION. {readily}"


def how_readily(team: Team) -> str:
    """Return when an agent should ask, according to the setting `broadcast_sensitivity`; "" if questions are off."""
    if str(settings.value(team, "broadcast")) == OFF:
        return ""
    return f"Ask {_WHEN[str(settings.value(team, 'broadcast_sensitivity'))]}."


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
    """Ask a question of the members in *to*, or of all other members if *to* is empty. With *human*, ask the human
    alone. Without *human*, the team's setting `broadcast` decides whether agents or the human are asked.

    With *waits*, record that this process waits for the answers.

    Raises:
        NotAllowed: Questions are off in this team.
        InvalidValue: The question is blank, the caller asks itself, the human is asked together with others, or
            *timeout*, in seconds, is out of the bounds of the setting `broadcast_timeout`.
        AgentNotFound: A member in *to* is not an active member.
        Conflict: The caller has as many open questions as the team allows.
    """
    standing = require(store, team_name, caller, "ask-others")
    team, asker = standing.team, standing.name
    text.checked(question, "question")
    mode = HUMAN if human else str(settings.value(team, "broadcast"))
    if mode == OFF:
        who = "the human" if team.leader == HUMAN else f"{team.leader} or the human"
        hint = (
            "Ask by mail: teams send-message NAME TEXT, or the human: teams ask-others --human QUESTION. "
            f"{who} can turn questions on: teams set broadcast agents"
        )
        raise errors.NotAllowed("questions are off in this team", hint)
    _refuse_too_many(store, team, asker)
    responders = _responders(team, asker, mode, to)
    is_for_human = responders == [HUMAN]
    seconds = seconds_of(team, timeout)
    now = store.now()
    begin = human_queue.time_of_last(store, team_name) if is_for_human else now
    draft = Question(
        team_name=team_name,
        from_=asker,
        question=question,
        mode="human" if is_for_human else "agents",
        to=responders,
        depth=depth or settings.value(team, "response_depth"),  # type: ignore[arg-type]  # one of the setting's choices
        created_at=rfc3339(now),
        timeout=seconds,
        expires_at=rfc3339(later(begin, seconds)),
    )
    if waits:
        draft = draft.awaited_by(os.getpid(), store.host)
    asked, _ = store.create(team_name, QUESTION, None, _begun(store, draft))
    history.note(store, team_name, asker, "question asked", question=asked.id, to=responders)
    return asked


def _refuse_too_many(store: Store, team: Team, asker: str) -> None:
    """Refuse another question of *asker* if it already has as many open questions as the team allows."""
    most = int(settings.value(team, "max_broadcasts_per_agent"))
    open_ids = [
        question.id for question in questions.all_of(store, team.name, []) if question.open and question.from_ == asker
    ]
    if len(open_ids) >= most:
        raise errors.Conflict(
            f"{asker} has {len(open_ids)} open questions: {', '.join(open_ids)}", "Wait for their answers."
        )


def _responders(team: Team, asker: str, mode: str, to: list[str]) -> list[str]:
    """Return the names of those who are asked: only the human if *mode* says so; otherwise the members in *to*, or all
    others if *to* is empty.
    """
    if mode == HUMAN:
        _refuse_others_than_human(to)
        to = [HUMAN]
    if not to:
        return [name for name in team.active_names() if name != asker]
    responders = list(dict.fromkeys(teams.get_recipient(team, name) for name in to))
    if asker in responders:
        raise errors.InvalidValue("you can't ask yourself", "Name other members: teams list-agents")
    if HUMAN in responders:
        _refuse_others_than_human(responders)
    return responders


def _refuse_others_than_human(to: list[str]) -> None:
    """Refuse a question for the human that names others, too. The team's setting `broadcast` can also make it a
    question for the human. The leader can change this setting to `agents`.
    """
    others = [name for name in to if name != HUMAN]
    if others:
        raise errors.InvalidValue(
            f"the human can't be asked together with {', '.join(others)}",
            "Leave out --to, or ask separately, with --human. For agents the leader runs: teams set broadcast agents",
        )


def seconds_of(team: Team, timeout: float | None = None) -> float:
    """Return the seconds for which a question waits for answers: *timeout*, or the team's setting if it is None."""
    if timeout is None:
        return float(settings.value(team, "broadcast_timeout"))
    return float(settings.known("broadcast_timeout").parse("--timeout", str(timeout)))


def _begun(store: Store, draft: Question) -> Question:
    """Return the new question with its first status: `complete` if nobody is there to be asked, and `deferred` if the
    asker should first read earlier answers of the human.
    """
    if not draft.to:
        return draft.having(status="complete", closed_at=draft.created_at)
    if draft.to != [HUMAN]:
        return draft.having(status="collecting")
    if answered := human_queue.deferred_to(store, draft):
        return draft.having(status="deferred", known=answered, closed_at=draft.created_at)
    return draft.having(status="pending")


def result_of(store: Store, question: Question) -> dict[str, Any]:
    """Return the answers to the question as JSON, for the agent that asked. If the question is `deferred`, all earlier
    answers of the human are added, because the agent should read them first.
    """
    responses = []
    for answer in question.answers_in_time:
        if not answer.skipped:
            response = {"responder_id": answer.responder, "content": answer.content, "is_human": answer.is_human}
            responses.append({**response, "failed": True} if answer.failed else response)
    document: dict[str, Any] = {"requestId": question.id, "status": question.status, "responses": responses}
    if not question.to:
        document["note"] = "There is nobody else to ask."
    if any(answer.skipped for answer in question.answers_in_time):
        document["skipped"] = True
    if question.status == "deferred":
        with suppress(errors.TeamsError):  # if the earlier answers can't be read, the asker gets the rest
            answers = human_queue.answers_so_far(store, question.team_name)
            document |= {"human_qa_history": answers, "human_qa_note": HISTORY_NOTE}
    return document
