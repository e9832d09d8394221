"""What clients say when their provider limits them, and until when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from teams_cli.clients.output import limited_until

NOW = datetime(2026, 3, 1, 22, 30, tzinfo=UTC)


def test_the_end_of_a_limit_is_read() -> None:
    for said, until in [
        ("Claude AI usage limit reached|1772413200", datetime(2026, 3, 2, 1, tzinfo=UTC)),
        ("You've hit your session limit · resets 4am (UTC)", datetime(2026, 3, 2, 4, tzinfo=UTC)),
        ("You've hit your weekly limit · resets 11:45pm (UTC)", datetime(2026, 3, 1, 23, 45, tzinfo=UTC)),
        ("5-hour limit reached ∙ resets 3am (America/New_York)", datetime(2026, 3, 2, 8, tzinfo=UTC)),
        ("You've hit your usage limit. Try again in 3 hours 20 minutes.", NOW + timedelta(hours=3, minutes=20)),
        ("You've hit your usage limit. Upgrade, or try again at 4:05 AM.", datetime(2026, 3, 2, 4, 5, tzinfo=UTC)),
        ("Quota exceeded for metric m. Please retry in 34.5s.", NOW + timedelta(seconds=34.5)),
        ("You have exhausted your capacity on this model. Reset after 5h12m.", NOW + timedelta(hours=5, minutes=12)),
        ("Rate limit reached for m1: Please try again in 20s", NOW + timedelta(seconds=20)),
        ("Claude AI usage limit reached|1772400000", NOW + timedelta(minutes=15)),  # it has passed, by our clock
        ("Rate limit reached: try again in 99999999999999 hours", NOW + timedelta(minutes=15)),
        ("429 Too Many Requests", NOW + timedelta(minutes=15)),
        ("exit status 1: no such file", None),
        ("the limit of the loop is 5: try again at 4:05", None),
    ]:
        assert limited_until(said, NOW) == until
