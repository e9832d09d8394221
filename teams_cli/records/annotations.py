"""The names that annotations need, in one place: they are looked up by type checkers, and loaded by nobody."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator as AsyncIterator,
    )
    from collections.abc import (
        Awaitable as Awaitable,
    )
    from collections.abc import (
        Callable as Callable,
    )
    from collections.abc import (
        Collection as Collection,
    )
    from collections.abc import (
        Coroutine as Coroutine,
    )
    from collections.abc import (
        Iterable as Iterable,
    )
    from collections.abc import (
        Iterator as Iterator,
    )
    from collections.abc import (
        Mapping as Mapping,
    )
    from collections.abc import (
        Sequence as Sequence,
    )
    from typing import (
        IO as IO,
    )
    from typing import (
        Any as Any,
    )
    from typing import (
        Self as Self,
    )
    from typing import (
        TextIO as TextIO,
    )

    from teams_cli.records.types import (
        AskedWhom as AskedWhom,
    )
    from teams_cli.records.types import (
        Checked as Checked,
    )
    from teams_cli.records.types import (
        Count as Count,
    )
    from teams_cli.records.types import (
        Depth as Depth,
    )
    from teams_cli.records.types import (
        HarnessInput as HarnessInput,
    )
    from teams_cli.records.types import (
        HarnessTable as HarnessTable,
    )
    from teams_cli.records.types import (
        Ladder as Ladder,
    )
    from teams_cli.records.types import (
        LandingId as LandingId,
    )
    from teams_cli.records.types import (
        LandingState as LandingState,
    )
    from teams_cli.records.types import (
        MessageId as MessageId,
    )
    from teams_cli.records.types import (
        MessageType as MessageType,
    )
    from teams_cli.records.types import (
        Name as Name,
    )
    from teams_cli.records.types import (
        Number as Number,
    )
    from teams_cli.records.types import (
        Object as Object,
    )
    from teams_cli.records.types import (
        Outcome as Outcome,
    )
    from teams_cli.records.types import (
        Permissions as Permissions,
    )
    from teams_cli.records.types import (
        PermissionTable as PermissionTable,
    )
    from teams_cli.records.types import (
        PlanId as PlanId,
    )
    from teams_cli.records.types import (
        PlanStatus as PlanStatus,
    )
    from teams_cli.records.types import (
        Priority as Priority,
    )
    from teams_cli.records.types import (
        QuestionId as QuestionId,
    )
    from teams_cli.records.types import (
        QuestionStatus as QuestionStatus,
    )
    from teams_cli.records.types import (
        Reviewed as Reviewed,
    )
    from teams_cli.records.types import (
        RoleDefinition as RoleDefinition,
    )
    from teams_cli.records.types import (
        RoleTable as RoleTable,
    )
    from teams_cli.records.types import (
        Seconds as Seconds,
    )
    from teams_cli.records.types import (
        SessionState as SessionState,
    )
    from teams_cli.records.types import (
        SettingTable as SettingTable,
    )
    from teams_cli.records.types import (
        ShutdownId as ShutdownId,
    )
    from teams_cli.records.types import (
        ShutdownStatus as ShutdownStatus,
    )
    from teams_cli.records.types import (
        TaskId as TaskId,
    )
    from teams_cli.records.types import (
        TaskStatus as TaskStatus,
    )
    from teams_cli.records.types import (
        TeamState as TeamState,
    )
    from teams_cli.records.types import (
        TerminalState as TerminalState,
    )
    from teams_cli.records.types import (
        Text as Text,
    )
    from teams_cli.records.types import (
        Time as Time,
    )
    from teams_cli.records.types import (
        Word as Word,
    )
else:

    def __getattr__(name: str) -> None:
        """Every name is there, and means nothing while the program runs."""
        if name.startswith("__"):
            raise AttributeError(name)
        globals()[name] = None  # who asks next finds it without a call
