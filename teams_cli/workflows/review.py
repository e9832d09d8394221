"""The review, under the name that this module had in version 0.2. Users copied workflows of that version, which call
the module by this name.
"""

from __future__ import annotations

import runpy

if __name__ == "__main__":
    runpy.run_module("teams_cli.extensions.review", run_name="__main__", alter_sys=True)
