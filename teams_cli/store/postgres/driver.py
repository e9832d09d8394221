"""The client library, `psycopg2`, without what it imports for versions of OpenSSL that are gone.

It imports `ssl`, and with that `socket`, which take as long as all the rest of it, to have callbacks set up that
OpenSSL before 1.1 needed; where there is no `ssl` it leaves that to libpq, which needs none with a later one.
"""

from __future__ import annotations

import sys

_alone = not {"ssl", "threading"} & sys.modules.keys()
if _alone:  # no other thread can be importing it meanwhile
    sys.modules["ssl"] = None  # type: ignore[assignment]
try:
    import psycopg2
    from psycopg2 import errorcodes, extensions
finally:
    if _alone:
        del sys.modules["ssl"]

__all__ = ["errorcodes", "extensions", "psycopg2"]
