"""How much one server takes on, so that no client makes it grow or wait without bound. Sizes in bytes, times in s."""

CONNECTIONS = 512
STREAMS = 300
"""Open event streams; the rest of the connections stays for requests."""
WAITING = 96
"""Requests that may take long, each in a thread of its own."""
QUICK = 8
"""Threads for the requests of the person that do not wait, which always get on."""
BODY = 8 << 20
"""The longest text there is, 1 MiB, with every character escaped, fits in."""
BODIES = 64 << 20
"""All bodies that are being read together."""
HEAD = 64 << 10
HEAD_SECONDS = 10.0
BODY_SECONDS = 20.0
UNTAKEN = 256 << 10
"""What the system keeps of an answer for one client that does not take it, beside what the server does."""
SEND_SECONDS = 20.0
"""How long a client may take nothing of what is sent to it."""
KEEP_ALIVE_SECONDS = 15
BEAT_SECONDS = 15.0
"""After so long without an event a stream gets a comment, which shows that both ends are there."""
EVENTS = 1000
"""Events that are kept in memory for each team; older ones are read from its history."""
