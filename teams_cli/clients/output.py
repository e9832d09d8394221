"""Reading the output of clients by their profiles: the session's id, the answer, and failures."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from teams_cli.clients.profiles import Profile


def is_preset(profile: Profile) -> bool:
    """Whether the client takes the session id that it is given, instead of making one."""
    return bool(profile.session_id.get("from", "preset") == "preset")


def session_id_in(profile: Profile, printed: str) -> str | None:
    """The session id that the client printed, if it makes one itself."""
    if is_preset(profile):
        return None
    return next(_found(profile.session_id, printed), None)


def output_in(profile: Profile, printed: str) -> str:
    """The answer in what the client printed."""
    if profile.output.get("from", "stdout") == "stdout":
        return printed
    found = list(_found(profile.output, printed))
    return found[-1] if found else ""


def said_in(profile: Profile, printed: str) -> str:
    """All that the client has said in a turn that is not over, if it prints that as it comes."""
    where = profile.output.get("from", "stdout")
    return printed if where == "stdout" else "\n".join(_found(profile.output, printed)) if where == "lines" else ""


def has_failed(profile: Profile, status: int, printed: str) -> bool:
    """Whether the turn failed, by the exit status and by what the client says itself."""
    said = profile.failed
    if said.get("status", True) and status != 0:
        return True
    if "json" in said:
        return any(at(document, said["json"]) is True for document in _documents("json", printed))
    for form in ("lines", "items"):
        if form in said and any(_matches(document, said[form]) for document in _documents(form, printed)):
            return True
    return False


def failure_in(profile: Profile, printed: str) -> str:
    """What the client says of its failed turn: of a stream of JSON the documents that report a failure, and lines that
    are no JSON; else all that it printed.
    """
    said = profile.failed
    if "items" in said:
        found = [json.dumps(item) for item in _documents("items", printed) if _matches(item, said["items"])]
        return "\n".join(found) or ("" if next(_parsed(printed), None) else printed)
    if "lines" not in said:
        return printed
    lines = ((line, list(_parsed(line))) for line in printed.splitlines())
    return "\n".join(line for line, parsed in lines if not parsed or _matches(parsed[0], said["lines"]))


def matching(where: Mapping[str, Any], printed: str) -> Iterator[Any]:
    """The documents in what was printed that have what is to match."""
    for document in _documents(where["from"], printed):
        if _matches(document, where.get("match", {})):
            yield document


def _found(where: Mapping[str, Any], printed: str) -> Iterator[str]:
    for document in matching(where, printed):
        value = at(document, where["path"])
        if isinstance(value, str):
            yield value


def _documents(form: str, printed: str) -> Iterator[Any]:
    """The JSON documents in what was printed: the whole, the items of the whole, or one a line."""
    if form == "lines":
        for line in printed.splitlines():
            yield from _parsed(line)
        return
    for whole in _parsed(printed):
        yield from whole if form == "items" and isinstance(whole, list) else [whole]


def _parsed(text: str) -> Iterator[Any]:
    try:
        yield json.loads(text)
    except ValueError:
        return


def _matches(document: Any, wanted: Mapping[str, Any]) -> bool:
    return all(at(document, path) == value for path, value in wanted.items())


def at(document: Any, path: str) -> Any:
    """What lies at a path of keys, with dots between them; None if nothing does."""
    for key in path.split("."):
        document = document.get(key) if isinstance(document, dict) else None
    return document
