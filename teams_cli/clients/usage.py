"""Usage: the tokens that a turn took, as its client says, found where its profile says."""

from __future__ import annotations

from teams_cli.clients import output
from teams_cli.records.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from teams_cli.clients.profiles import Profile
    from teams_cli.records.types import Count, Text


class Tokens(Record):
    """Tokens of one model: all that it read, what of that came from a cache, and what it wrote."""

    model: Text | None = None
    input: Count = 0
    cached: Count = 0
    output: Count = 0

    @property
    def total(self) -> int:
        """All that was read and written."""
        return self.input + self.output

    def plus(self, other: Tokens) -> Tokens:
        """Both together, under this model's name."""
        return self.having(
            input=self.input + other.input, cached=self.cached + other.cached, output=self.output + other.output
        )

    def minus(self, earlier: Tokens) -> Tokens:
        """What came since; where less is said than before, it was counted anew."""
        if earlier.total > self.total:
            return self
        return self.having(
            input=max(0, self.input - earlier.input),
            cached=max(0, self.cached - earlier.cached),
            output=max(0, self.output - earlier.output),
        )


def grows(profile: Profile) -> bool:
    """Whether the client counts from the beginning of its session on, not each turn for itself."""
    return bool(profile.usage.get("grows"))


def of_turn_in(profile: Profile, printed: str) -> Tokens | None:
    """The tokens of the turn alone, where the client says them beside what may count its whole session."""
    if "turn" not in profile.usage:
        return None
    documents = output.matching(profile.usage, printed)
    return next((found for each in documents for found in _counted(profile.usage["turn"], each, None)), None)


def tokens_in(profile: Profile, printed: str, model: str | None = None) -> list[Tokens] | None:
    """The tokens in what the client printed, for each model; None if it does not say.

    *model* is the one that was chosen: some clients don't name it.
    """
    where = profile.usage
    if not where:
        return None
    found = [counted for document in output.matching(where, printed) for counted in _counted(where, document, model)]
    if not found:
        return None
    return found[-1:] if grows(profile) and "each" not in where else summed(found)


def summed(found: Sequence[Tokens]) -> list[Tokens]:
    """Counts put together by their models."""
    together: dict[str | None, Tokens] = {}
    for each in found:
        together[each.model] = together[each.model].plus(each) if each.model in together else each
    return list(together.values())


def _counted(where: Mapping[str, Any], document: Any, model: str | None) -> Iterator[Tokens]:
    """The counts of one document: one for each model, under whose name it stands, or one in all."""
    if "each" not in where:
        parts = {model: document}
    else:
        parts = output.at(document, where["each"])
        if not isinstance(parts, dict):
            return
    for name, part in parts.items():
        kinds = {kind: _sum(part, where.get(kind, ())) for kind in ("input", "cached", "output")}
        if None not in (kinds["input"], kinds["output"]):
            yield Tokens(model=name, **{kind: count or 0 for kind, count in kinds.items()})


def _sum(part: Any, paths: Sequence[str]) -> int | None:
    """The numbers at these paths together; None if there is none."""
    found = [output.at(part, path) for path in paths]
    numbers = [int(each) for each in found if isinstance(each, int | float) and each >= 0]
    return sum(numbers) if numbers else None
