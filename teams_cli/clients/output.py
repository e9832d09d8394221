"""Read a client's output: the id of its session, its answer, its tokens, failures, and rate limits."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from teams_cli.records.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from teams_cli.clients.profiles import Profile
    from teams_cli.records.types import Count, Text


def is_preset(profile: Profile) -> bool:
    """Whether we, not the client, choose the id of the client's session."""
    return bool(profile.session_id.get("from", "preset") == "preset")


def session_id_in(profile: Profile, printed: str) -> str | None:
    """Return the session id that the client chose and *printed*; None if it printed no id, or if we choose the id."""
    if is_preset(profile):
        return None
    return next(_texts(profile.session_id, printed), None)


def output_in(profile: Profile, printed: str) -> str:
    """Return the client's answer from what it *printed*; "" if there is no answer."""
    if profile.output.get("from", "stdout") == "stdout":
        return printed
    texts = list(_texts(profile.output, printed))
    return texts[-1] if texts else ""  # the earlier ones were printed in the middle of the turn


def partial_output_in(profile: Profile, printed: str) -> str:
    """Return all text that the client has *printed* so far in an unfinished turn; "" if it prints its text only at the
    end of the turn.
    """
    where = profile.output.get("from", "stdout")
    if where == "stdout":
        return printed
    return "\n".join(_texts(profile.output, printed)) if where == "lines" else ""


def has_failed(profile: Profile, status: int, printed: str) -> bool:
    """Whether the turn failed, according to the exit *status* and to what the client *printed*."""
    signs = profile.failed
    if status != 0 and signs.get("status", True):  # unless the profile says that the status means nothing
        return True
    if "json" in signs:
        return any(value_at(document, signs["json"]) is True for document in _documents("json", printed))
    for where in ("lines", "items"):
        documents = _documents(where, printed)
        if where in signs and any(_matches(document, signs[where]) for document in documents):
            return True
    return False


def failure_in(profile: Profile, printed: str) -> str:
    """Return what the client *printed* about its failed turn. If the client prints JSON, return the documents that
    report a failure, and lines that are not JSON. Otherwise return the whole output.
    """
    signs = profile.failed
    if "items" in signs:
        failures = [json.dumps(item) for item in _documents("items", printed) if _matches(item, signs["items"])]
        is_json = bool(list(_parsed(printed)))
        return "\n".join(failures) if is_json else printed
    if "lines" not in signs:
        return printed
    lines = []
    for line in printed.split("\n"):  # a line that is not JSON has no documents, so it is kept
        if all(_matches(document, signs["lines"]) for document in _parsed(line)):
            lines.append(line)
    return "\n".join(lines)


def matching(where: Mapping[str, Any], printed: str) -> Iterator[Any]:
    """Yield the documents in the output that meet the conditions in *where*, a part of a profile such as `usage`."""
    for document in _documents(where["from"], printed):
        if _matches(document, where.get("match", {})):
            yield document


def _texts(where: Mapping[str, Any], printed: str) -> Iterator[str]:
    """Yield the text at the path in *where* from each document that meets the conditions in *where*."""
    for document in matching(where, printed):
        value = value_at(document, where["path"])
        if isinstance(value, str):
            yield value


def _documents(where: str, printed: str) -> Iterator[Any]:
    """Yield the JSON documents in the output. *where* says how they are printed: one document on each line (`lines`),
    all as the items of one list (`items`), or a single document (`json`). Text that is not JSON is left out.
    """
    if where == "lines":
        for line in printed.split("\n"):  # JSON may have other characters that `splitlines` divides at
            yield from _parsed(line)
        return
    for whole in _parsed(printed):
        if where == "items" and isinstance(whole, list):
            yield from whole
        else:
            yield whole


def _parsed(text: str) -> Iterator[Any]:
    try:
        yield json.loads(text)
    except (ValueError, RecursionError):  # the text is not JSON, or nested too deeply: there is no document
        return


def _matches(document: Any, wanted_values: Mapping[str, Any]) -> bool:
    return all(value_at(document, path) == value for path, value in wanted_values.items())


def value_at(document: Any, path: str) -> Any:
    """Return the value at the *path*, which is keys separated by dots; None if there is no such value."""
    for key in path.split("."):
        document = document.get(key) if isinstance(document, dict) else None
    return document


class Tokens(Record):
    """The tokens that one model used. *cached* is the part of *input* that came from a cache."""

    model: Text | None = None
    input: Count = 0
    cached: Count = 0
    output: Count = 0

    @property
    def total(self) -> int:
        """All tokens read and written."""
        return self.input + self.output

    def minus(self, earlier: Tokens) -> Tokens:
        """Return the tokens used since the *earlier* count of the same client."""
        if earlier.total > self.total:  # the client has begun to count anew
            return self
        return self.having(
            input=max(0, self.input - earlier.input),
            cached=max(0, self.cached - earlier.cached),
            output=max(0, self.output - earlier.output),
        )


def grows(profile: Profile) -> bool:
    """Whether the client counts its tokens from the beginning of its session. If not, it counts those of each turn."""
    return bool(profile.usage.get("grows"))


def of_turn_in(profile: Profile, printed: str) -> Tokens | None:
    """Return the tokens that the client *printed* for the turn alone, apart from a count that may cover its whole
    session. Return None if the client does not print such a count.
    """
    if "turn" not in profile.usage:
        return None
    for document in matching(profile.usage, printed):
        for tokens in _counted(profile.usage["turn"], document, None):
            return tokens
    return None


def tokens_in(profile: Profile, printed: str, model: str | None = None) -> list[Tokens] | None:
    """Return the counts of tokens in the output, one for each model; None if the output has no counts. *model* is the
    name of the chosen model, for clients that do not print the name.
    """
    where = profile.usage
    if not where:
        return None
    counts = [tokens for document in matching(where, printed) for tokens in _counted(where, document, model)]
    if not counts:
        return None
    if grows(profile) and "each" not in where:
        return counts[-1:]  # the last count includes the earlier ones
    sums: dict[str | None, Tokens] = {}
    for tokens in counts:
        before = sums.get(tokens.model, Tokens(model=tokens.model))
        sums[tokens.model] = tokens.having(
            input=before.input + tokens.input,
            cached=before.cached + tokens.cached,
            output=before.output + tokens.output,
        )
    return list(sums.values())


def _counted(where: Mapping[str, Any], document: Any, model: str | None) -> Iterator[Tokens]:
    """Yield the counts of tokens in the *document*: one for each model, or a single one for *model*. A count without
    input or without output is left out.
    """
    by_model = value_at(document, where["each"]) if "each" in where else {model: document}
    if not isinstance(by_model, dict):
        return
    for name, part in by_model.items():
        counts: dict[str, int] = {}
        for kind in ("input", "cached", "output"):
            values = [value_at(part, path) for path in where.get(kind, ())]
            numbers = [int(value) for value in values if isinstance(value, int | float) and value >= 0]
            if numbers:
                counts[kind] = sum(numbers)
        if "input" in counts and "output" in counts:
            yield Tokens(model=name, **counts)


_LIMIT_REACHED = (
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
"""The seconds until requests are retried, if the client does not say when the limit ends."""


def limited_until(printed: str, now: datetime) -> datetime | None:
    """Return the time from which the model's provider accepts requests again, found in what a failed client *printed*;
    None if the client failed for another reason.

    A printed time of day stands for the next such time after *now*. Its time zone is the printed one, or else that of
    *now*. The returned time is later than *now*: a printed time that has passed, or that no calendar has, does not
    count.
    """
    import re

    if not re.search(_LIMIT_REACHED, printed, re.IGNORECASE):
        return None
    try:
        end = _printed_end(printed, now)
    except OverflowError:
        end = None
    return end if end and end > now else now + timedelta(seconds=_DEFAULT_WAIT)


def _printed_end(printed: str, now: datetime) -> datetime | None:
    """Return the end of a limit that a client *printed*, or None if it printed none. Raises OverflowError if no
    calendar has this time.
    """
    import re

    if match := re.search(_SINCE_1970, printed):  # the number of seconds since 1970
        return datetime.fromtimestamp(int(match[1]), UTC)
    if match := re.search(_IN_A_TIME, printed, re.IGNORECASE):
        parts = re.findall(r"(\d+(?:\.\d+)?)\s*([dhms])", match[1].lower())
        seconds = sum(float(number) * _SECONDS_PER[unit] for number, unit in parts)
        return now + timedelta(seconds=seconds)
    for match in re.finditer(_AT_A_TIME, printed, re.IGNORECASE):
        hour, minute, am_or_pm, zone = match.groups()
        if minute or am_or_pm:  # a number alone may be no time of day
            return _next_time(now, int(hour), int(minute or 0), (am_or_pm or "").lower(), zone)
    return None


def _next_time(now: datetime, hour: int, minute: int, am_or_pm: str, zone: str | None) -> datetime:
    """Return the next time after *now* at which it is *hour*:*minute* in the *zone*, or in the zone of *now* if None.
    If there is no such time of day, return a time some minutes after *now*.
    """
    from zoneinfo import ZoneInfo

    if am_or_pm:  # 12 am is 0 hours, and 12 pm is 12 hours
        hour = hour % 12 + (12 if am_or_pm == "pm" else 0)
    if hour > 23 or minute > 59:
        return now + timedelta(seconds=_DEFAULT_WAIT)
    try:
        now_there = now.astimezone(ZoneInfo(zone) if zone else now.tzinfo)
    except (ValueError, OSError, KeyError):  # such as a zone that this machine does not know
        now_there = now
    then = now_there.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return then if then > now_there else then + timedelta(days=1)
