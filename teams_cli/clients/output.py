"""Read a client's output: the id of its session, its answer, its tokens, failures, and rate limits."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

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
    return next(_texts(profile.session_id, printed), None)


def output_in(profile: Profile, printed: str) -> str:
    """Return the client's answer in what it *printed*; "" if there is none."""
    if profile.output.get("from", "stdout") == "stdout":
        return printed
    answers = list(_texts(profile.output, printed))
    return answers[-1] if answers else ""


def partial_output_in(profile: Profile, printed: str) -> str:
    """Return all text that the client has printed so far in an unfinished turn; "" if it prints its text only at the
    end.
    """
    where = profile.output.get("from", "stdout")
    if where == "stdout":
        return printed
    return "\n".join(_texts(profile.output, printed)) if where == "lines" else ""


def has_failed(profile: Profile, status: int, printed: str) -> bool:
    """Whether the turn failed, by its exit status and by what the client reports."""
    signs = profile.failed
    if signs.get("status", True) and status != 0:
        return True
    if "json" in signs:
        return any(value_at(document, signs["json"]) is True for document in _documents("json", printed))
    for where in ("lines", "items"):
        if where in signs and any(_matches(document, signs[where]) for document in _documents(where, printed)):
            return True
    return False


def failure_in(profile: Profile, printed: str) -> str:
    """Return what the client reports about its failed turn. From JSON, these are the documents about a failure, and
    lines that are not JSON. From other output, it is the whole output.
    """
    signs = profile.failed
    if "items" in signs:
        failures = [json.dumps(item) for item in _documents("items", printed) if _matches(item, signs["items"])]
        is_json = any(True for _ in _parsed(printed))
        return "\n".join(failures) or ("" if is_json else printed)
    if "lines" not in signs:
        return printed
    lines = []
    for line in printed.splitlines():
        if all(_matches(document, signs["lines"]) for document in _parsed(line)):
            lines.append(line)
    return "\n".join(lines)


def matching(where: Mapping[str, Any], printed: str) -> Iterator[Any]:
    """Yield the documents in the output that meet the conditions in *where*."""
    for document in _documents(where["from"], printed):
        if _matches(document, where.get("match", {})):
            yield document


def _texts(where: Mapping[str, Any], printed: str) -> Iterator[str]:
    """Yield the texts at the path in *where*, from the documents that meet its conditions."""
    for document in matching(where, printed):
        value = value_at(document, where["path"])
        if isinstance(value, str):
            yield value


def _documents(where: str, printed: str) -> Iterator[Any]:
    """Yield the JSON documents in the output: the whole output (`json`), the items of a list in it (`items`), or its
    lines (`lines`), as *where* says.
    """
    if where == "lines":
        for line in printed.splitlines():
            yield from _parsed(line)
        return
    for whole in _parsed(printed):
        yield from whole if where == "items" and isinstance(whole, list) else [whole]


def _parsed(text: str) -> Iterator[Any]:
    """Yield the JSON document in the text; nothing if it is not JSON."""
    try:
        yield json.loads(text)
    except ValueError:
        return


def _matches(document: Any, wanted: Mapping[str, Any]) -> bool:
    return all(value_at(document, path) == value for path, value in wanted.items())


def value_at(document: Any, path: str) -> Any:
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
        """Return the tokens since the *earlier* count. If the earlier count is larger, the client has begun to count
        anew, and this count is returned as it is.
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
    for document in matching(profile.usage, printed):
        for tokens in _counted(profile.usage["turn"], document, None):
            return tokens
    return None


def tokens_in(profile: Profile, printed: str, model: str | None = None) -> list[Tokens] | None:
    """Return the tokens in the output, for each model; None if the output has no counts. *model* is the name of the
    chosen model, for clients that do not print it.
    """
    where = profile.usage
    if not where:
        return None
    counts = [tokens for document in matching(where, printed) for tokens in _counted(where, document, model)]
    if not counts:
        return None
    if grows(profile) and "each" not in where:
        return counts[-1:]  # the last count includes the earlier ones
    return summed(counts)


def summed(counts: Sequence[Tokens]) -> list[Tokens]:
    """Add up the counts to one for each model."""
    sums: dict[str | None, Tokens] = {}
    for tokens in counts:
        sums[tokens.model] = sums[tokens.model].plus(tokens) if tokens.model in sums else tokens
    return list(sums.values())


def _counted(where: Mapping[str, Any], document: Any, model: str | None) -> Iterator[Tokens]:
    """Yield the counts in one document: a count for each model if the document has counts under the names of models,
    else a single count for *model*.
    """
    parts = value_at(document, where["each"]) if "each" in where else {model: document}
    if not isinstance(parts, dict):
        return
    for name, part in parts.items():
        counts = {kind: _sum(part, where.get(kind, ())) for kind in ("input", "cached", "output")}
        if counts["input"] is not None and counts["output"] is not None:
            yield Tokens(model=name, **{kind: count or 0 for kind, count in counts.items()})


def _sum(part: Any, paths: Sequence[str]) -> int | None:
    """Return the sum of the numbers at these *paths*; None if there is no number."""
    values = [value_at(part, path) for path in paths]
    numbers = [int(value) for value in values if isinstance(value, int | float) and value >= 0]
    return sum(numbers) if numbers else None


_LIMIT = (
    r"(usage|rate|session|weekly|daily|\d+-hour) limit (reached|exceeded|hit)|(hit|reached|exceeded) your (\w+ )*limit"
    r"|(exceeded|exhausted) your (\w+ )*(quota|capacity)|quota (exceeded|exhausted)|RESOURCE_EXHAUSTED|rate_limit_error"
    r"|too many requests|rate limit"
)
_SECONDS_PER = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_SPAN = r"\d+(?:\.\d+)?\s*(?:d(?:ays?)?|h(?:ours?|rs?)?|m(?:in(?:utes?)?)?|s(?:ec(?:onds?)?)?)"
_IN_A_TIME = rf"(?:in|after) ((?:{_SPAN}[\s,]*(?:and\s+)?)+)"
_AT_A_TIME = r"(?:resets?|again|until|at)(?: at)? (\d{1,2})(?::(\d{2}))?\s*([ap]m)?(?:\s*\(([\w/+-]+)\))?"
_SINCE_1970 = r"limit reached\|(\d{10})"
_DEFAULT_WAIT = 15 * 60.0
"""Seconds until the next try, if the client does not say when."""


def limited_until(printed: str, now: datetime) -> datetime | None:
    """Return when the provider accepts requests again, from what a failed client *printed*; None if the client failed
    for another reason.

    A printed time of day stands for the next such time after *now*, in the printed time zone, or else in that of *now*.
    """
    import re

    if not re.search(_LIMIT, printed, re.IGNORECASE):
        return None
    if match := re.search(_SINCE_1970, printed):
        return datetime.fromtimestamp(int(match[1]), UTC)
    if match := re.search(_IN_A_TIME, printed, re.IGNORECASE):
        parts = re.findall(r"(\d+(?:\.\d+)?)\s*([dhms])", match[1].lower())
        return now + timedelta(seconds=sum(float(number) * _SECONDS_PER[unit] for number, unit in parts))
    for match in re.finditer(_AT_A_TIME, printed, re.IGNORECASE):
        hour, minute, half, zone = match.groups()
        if minute or half:  # a number alone may be anything
            return _next_time(now, int(hour), int(minute or 0), (half or "").lower(), zone)
    return now + timedelta(seconds=_DEFAULT_WAIT)


def _next_time(now: datetime, hour: int, minute: int, half: str, zone: str | None) -> datetime:
    """Return the next time after *now* when a clock in the *zone* shows *hour* and *minute*. If the zone is None or
    unknown, take that of *now*. *half* is `am`, `pm`, or "" for 24 hours. If no clock shows this time, return the time
    after the default wait.
    """
    from zoneinfo import ZoneInfo

    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    if hour > 23 or minute > 59:
        return now + timedelta(seconds=_DEFAULT_WAIT)
    try:
        now_there = now.astimezone(ZoneInfo(zone) if zone else now.tzinfo)
    except (ValueError, OSError, KeyError):
        now_there = now
    then = now_there.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return then if then > now_there else then + timedelta(days=1)
