"""Rate limits: whether a client stopped because of its provider's limit, and until when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

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
"""Seconds after which one looks again, where the client does not say when."""


def limited_until(said: str, now: datetime) -> datetime | None:
    """When the provider gives more again, by the end of what a failed client said; None if it failed otherwise.

    A time of the day is the next one, in the zone that is named, else in that of *now*.
    """
    import re

    if not re.search(_SAYS_SO, said, re.IGNORECASE):
        return None
    if found := re.search(_SINCE_1970, said):
        return datetime.fromtimestamp(int(found[1]), UTC)
    if found := re.search(_IN, said, re.IGNORECASE):
        parts = re.findall(r"(\d+(?:\.\d+)?)\s*([dhms])", found[1].lower())
        return now + timedelta(seconds=sum(float(number) * _PER[unit] for number, unit in parts))
    for found in re.finditer(_AT, said, re.IGNORECASE):
        if found[2] or found[3]:
            return _next(now, int(found[1]), int(found[2] or 0), (found[3] or "").lower(), found[4])
    return now + timedelta(seconds=_UNKNOWN)


def _next(now: datetime, hour: int, minute: int, half: str, zone: str | None) -> datetime:
    """The next time that clocks show this."""
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
