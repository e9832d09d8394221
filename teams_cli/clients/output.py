"""Read a client's output: the id of its session, its answer, its tokens, failures, and rate limits."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, tzinfo

from teams_cli.records.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from teams_cli.clients.profiles import Profile
    from teams_cli.records.types import Count, Text


def is_preset(profile: Profile) -> bool:
    """Whether the client uses the session id that it is given, instead of making one."""
    return bool(profile.session_id.get("from", "preset") == "preset")


def session_id_in(profile: Profile, printed: str) -> str | None:
    """Return the session id that the client made and printed. None if it printed none, or uses the id that it was
    given.
    """
    if is_preset(profile):
        return None
    return next(_found(profile.session_id, printed), None)


def output_in(profile: Profile, printed: str) -> str:
    """Return the client's answer in what it *printed*; "" if there is none."""
    if profile.output.get("from", "stdout") == "stdout":
        return printed
    answers = list(_found(profile.output, printed))
    return answers[-1] if answers else ""


def said_in(profile: Profile, printed: str) -> str:
    """Return all text that the client has printed so far in an unfinished turn; "" if it prints its text only at the
    end.
    """
    where = profile.output.get("from", "stdout")
    return printed if where == "stdout" else "\n".join(_found(profile.output, printed)) if where == "lines" else ""


def has_failed(profile: Profile, status: int, printed: str) -> bool:
    """Whether the turn failed, by its exit status and by what the client reports."""
    where = profile.failed
    if where.get("status", True) and status != 0:
        return True
    if "json" in where:
        return any(at(document, where["json"]) is True for document in _documents("json", printed))
    for form in ("lines", "items"):
        if form in where and any(_matches(document, where[form]) for document in _documents(form, printed)):
            return True
    return False


def failure_in(profile: Profile, printed: str) -> str:
    """Return what the client reports about its failed turn. In a stream of JSON, these are the documents about a
    failure and the lines that are not JSON; else it is the whole output.
    """
    where = profile.failed
    if "items" in where:
        failures = [json.dumps(item) for item in _documents("items", printed) if _matches(item, where["items"])]
        return "\n".join(failures) or ("" if next(_parsed(printed), None) else printed)
    if "lines" not in where:
        return printed
    lines = ((line, list(_parsed(line))) for line in printed.splitlines())
    return "\n".join(line for line, parsed in lines if not parsed or _matches(parsed[0], where["lines"]))


def matching(where: Mapping[str, Any], printed: str) -> Iterator[Any]:
    """Yield the documents in the output that meet the conditions in *where*."""
    for document in _documents(where["from"], printed):
        if _matches(document, where.get("match", {})):
            yield document


def _found(where: Mapping[str, Any], printed: str) -> Iterator[str]:
    for document in matching(where, printed):
        value = at(document, where["path"])
        if isinstance(value, str):
            yield value


def _documents(form: str, printed: str) -> Iterator[Any]:
    """Yield the JSON documents in the output. By *form*, these are the whole output, the items of a list in it, or its
    lines.
    """
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
    """Return the value at a path of keys with dots between them; None if there is none."""
    for key in path.split("."):
        document = document.get(key) if isinstance(document, dict) else None
    return document


class Tokens(Record):
    """The tokens that one model used: those that it read, the part of them that came from a cache, and those that it
    wrote.
    """

    model: Text | None = None
    input: Count = 0
    cached: Count = 0
    output: Count = 0

    @property
    def total(self) -> int:
        """All tokens read and written."""
        return self.input + self.output

    def plus(self, other: Tokens) -> Tokens:
        """Return the sum of this count and the *other*, for this model."""
        return self.having(
            input=self.input + other.input, cached=self.cached + other.cached, output=self.output + other.output
        )

    def minus(self, earlier: Tokens) -> Tokens:
        """Return the tokens since the *earlier* count. If that count is larger, the client has begun to count anew, and
        this whole count is returned.
        """
        if earlier.total > self.total:
            return self
        return self.having(
            input=max(0, self.input - earlier.input),
            cached=max(0, self.cached - earlier.cached),
            output=max(0, self.output - earlier.output),
        )


def grows(profile: Profile) -> bool:
    """Whether the client counts tokens from the beginning of its session, and not for each turn."""
    return bool(profile.usage.get("grows"))


def of_turn_in(profile: Profile, printed: str) -> Tokens | None:
    """Return the tokens of the turn alone, if the client prints them beside a count that may cover its whole session;
    else None.
    """
    if "turn" not in profile.usage:
        return None
    documents = matching(profile.usage, printed)
    return next((tokens for each in documents for tokens in _counted(profile.usage["turn"], each, None)), None)


def tokens_in(profile: Profile, printed: str, model: str | None = None) -> list[Tokens] | None:
    """Return the tokens in the output, for each model; None if it has none. *model* is the chosen model, for clients
    that do not name it.
    """
    where = profile.usage
    if not where:
        return None
    counts = [counted for document in matching(where, printed) for counted in _counted(where, document, model)]
    if not counts:
        return None
    return counts[-1:] if grows(profile) and "each" not in where else summed(counts)


def summed(counts: Sequence[Tokens]) -> list[Tokens]:
    """Add up the counts to one for each model."""
    together: dict[str | None, Tokens] = {}
    for each in counts:
        together[each.model] = together[each.model].plus(each) if each.model in together else each
    return list(together.values())


def _counted(where: Mapping[str, Any], document: Any, model: str | None) -> Iterator[Tokens]:
    """Yield the counts in one document: one for each model if they stand under the names of models, else a single one
    for *model*.
    """
    if "each" not in where:
        parts = {model: document}
    else:
        parts = at(document, where["each"])
        if not isinstance(parts, dict):
            return
    for name, part in parts.items():
        kinds = {kind: _sum(part, where.get(kind, ())) for kind in ("input", "cached", "output")}
        if None not in (kinds["input"], kinds["output"]):
            yield Tokens(model=name, **{kind: count or 0 for kind, count in kinds.items()})


def _sum(part: Any, paths: Sequence[str]) -> int | None:
    """Return the sum of the numbers at these *paths*; None if there is no number."""
    values = [at(part, path) for path in paths]
    numbers = [int(each) for each in values if isinstance(each, int | float) and each >= 0]
    return sum(numbers) if numbers else None


_SAYS_SO = (
    r"(usage|rate|session|weekly|daily|\d+-hour) limit (reached|exceeded|hit)|(hit|reached|exceeded) your (\w+ )*limit"
    r"|(exceeded|exhausted) your (\w+ )*(quota|capacity)|quota (exceeded|exhausted)|RESOURCE_EXHAUSTED|rate_limit_error"
    r"|too many requests|rate limit"
)
_PER = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_SPAN = r"\d+(?:\.\d+)?\s*(?:d(?:ays?)?|h(?:ours?|rs?)?|m(?:in(?:utes?)?)?|s(?:ec(?:onds?)?)?)"
_IN = rf"(?:in|after) ((?:{_SPAN}[\s,]*(?:and\s+)?)+)"
_AT = r"(?:resets?|again|until|at)(?: at)? (\d{1,2})(?::(\d{2}))?\s*([ap]m)?(?:\s*\(([\w/+-]+)\))?"
_SINCE_1970 = r"limit reached\|(\d{10})"
_UNKNOWN = 15 * 60.0
"""Seconds until the next try, if the client does not say when."""


def limited_until(printed: str, now: datetime) -> datetime | None:
    """Return when the provider accepts requests again, from what a failed client *printed*; None if the client failed
    for another reason.

    A time of day stands for the next such time, in the time zone that is named, else in that of *now*.
    """
    import re

    if not re.search(_SAYS_SO, printed, re.IGNORECASE):
        return None
    if match := re.search(_SINCE_1970, printed):
        return datetime.fromtimestamp(int(match[1]), UTC)
    if match := re.search(_IN, printed, re.IGNORECASE):
        parts = re.findall(r"(\d+(?:\.\d+)?)\s*([dhms])", match[1].lower())
        return now + timedelta(seconds=sum(float(number) * _PER[unit] for number, unit in parts))
    for match in re.finditer(_AT, printed, re.IGNORECASE):
        if match[2] or match[3]:
            return _next(now, int(match[1]), int(match[2] or 0), (match[3] or "").lower(), match[4])
    return now + timedelta(seconds=_UNKNOWN)


def _next(now: datetime, hour: int, minute: int, half: str, zone: str | None) -> datetime:
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    there = now.astimezone(_zone(zone) or now.tzinfo)
    if hour > 23 or minute > 59:
        return now + timedelta(seconds=_UNKNOWN)
    then = there.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return then if then > there else then + timedelta(days=1)


def _zone(name: str | None) -> tzinfo | None:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name) if name else None
    except (ValueError, OSError, KeyError):
        return None
