"""The settings of teams that say when and how work lands."""

from __future__ import annotations

from teams_cli.teams.settings import Setting

WHEN = Setting(
    "asked",
    "when work lands: only after `teams land` (`asked`), or also when its task is completed (`completed`)",
    choices=("asked", "completed"),
)
CHECK = Setting("", "a check that every landing must pass, besides the task's own check", prose=True)
TOGETHER = Setting(1, "how many small, independent branches may be checked together", least=1, most=100)
ORDER = Setting(
    "conflicts",
    "which queued branch lands first: the one with the fewest conflicts (`conflicts`), or the most"
    " urgent one, and the oldest one if several are equally urgent (`priority`)",
    choices=("conflicts", "priority"),
)
VIA = Setting(
    "merge",
    "how work lands: it is merged in this repository (`merge`), or it is pushed and `gh` opens a pull request (`pr`)",
    choices=("merge", "pr"),
    of_person=True,
)
COMMENTS = Setting(
    "off",
    "whether an issue on GitHub gets a comment when the work of its task has landed",
    choices=("off", "on"),
    of_person=True,
)
