"""What turns of real clients took, against what the model says that it counted."""

from __future__ import annotations

import json

from tests.e2e.apis import CACHED, INPUT, OUTPUT
from tests.e2e.conftest import Office, every_client
from tests.e2e.model import Run, Say


@every_client
def test_what_turns_took_is_what_the_model_counted(office: Office) -> None:
    """Of the first turn and of one that resumes the session: some clients count on from the first."""
    office.model.script("[ann]", Run("teams announce 'reading'"), Say("forty-two"), Say("more"))
    office.run("[ann] what is it?")
    office.say("send-message", "ann", "go on")
    office.say("wait", "--agent", "ann", "--timeout", "150")
    requests = len(office.model.requests["[ann]"])
    found = json.loads(office.say("usage"))
    assert requests == 3 and found["total"]["turns"] == 2 and found["total"]["uncounted"] == 0
    said = {kind: found["total"][kind] for kind in ("input", "cached", "output")}
    assert said == {"input": requests * INPUT, "cached": requests * CACHED, "output": requests * OUTPUT}
