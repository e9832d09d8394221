"""Landing: the branches of completed tasks are merged into the team's branch one at a time, each after a check of the
merged result.
"""

from teams_cli.extensions import Extension

EXTENSION = Extension(
    commands={"land": "commands", "get-landings": "commands"},
    settings={
        "landing": "settings:WHEN",
        "landingCheck": "settings:CHECK",
        "landingTogether": "settings:TOGETHER",
        "landingOrder": "settings:ORDER",
        "landingVia": "settings:VIA",
        "landingComments": "settings:COMMENTS",
    },
    checks=("queueing:unqueued",),
    provides={
        "land a completed task": "commands:follow",
        "land the queue": "lander:start",
        "a landing of the task": "outcomes:settled",
        "a task after its landing": "outcomes:up_to_date",
        "refuse all landings": "queueing:refuse_all",
    },
)
