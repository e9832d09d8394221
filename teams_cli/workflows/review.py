"""The review under the name it had in version 0.2, for workflows that were copied then."""

from __future__ import annotations

import runpy

if __name__ == "__main__":
    runpy.run_module("teams_cli.extensions.review", run_name="__main__", alter_sys=True)
