"""The review under the name that it had in version 0.2. Users copied workflows of that version, and these call it by
this name.
"""

from __future__ import annotations

import runpy

if __name__ == "__main__":
    runpy.run_module("teams_cli.extensions.review", run_name="__main__", alter_sys=True)
