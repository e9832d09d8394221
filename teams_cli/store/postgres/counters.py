"""Counters in SQL: the last number of a kind in a team. The values of each are the team, the kind and a number."""

_PUT = """INSERT INTO counters (team, kind, last) VALUES (%s, %s, %s)
    ON CONFLICT (team, kind) DO UPDATE SET last = """
TAKE = f"{_PUT}counters.last + excluded.last RETURNING last"
"""Takes so many numbers, and answers with the last of them."""
PASS = f"{_PUT}greatest(counters.last, excluded.last)"
"""Has no number up to that one taken any more."""
