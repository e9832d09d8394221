"""The guard before everything: who may send requests, and the headers for browsers."""

from __future__ import annotations

from hmac import compare_digest
from urllib.parse import parse_qs

from teams_cli.extensions.http import refusals
from teams_cli.extensions.http.refusals import RequestRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

READING = ("GET", "HEAD")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
)
_HEADERS = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
"""As they are sent, once for all answers; what an answer says itself stands."""
PROOF = "/api/proof"
"""Where the server shows that it is the one that has the token: read by who does not yet send it."""
_API = ("/api/", "/openapi.json")


def _said(scope: Scope) -> dict[bytes, list[str]]:
    """What the fields of the head say that the guard looks at, found in one go."""
    said: dict[bytes, list[str]] = {b"host": [], b"origin": [], b"sec-fetch-site": [], b"authorization": []}
    for name, value in scope["headers"]:
        if name in said:
            said[name].append(value.decode("latin-1"))
    return said


class RequestGuard:
    """Lets through what comes from this machine for this server, with the token where it changes something.

    Pages of other sites are kept out by the name they have to call the server by (`Host`), by the site they say they
    are of (`Origin`, `Sec-Fetch-Site`), and by the token, which they can't know.
    """

    def __init__(self, app: ASGIApp, port: int, token: str, private: bool) -> None:
        self.app = app
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"} | ({"127.0.0.1", "localhost"} if port == 80 else set())
        self.token = token.encode()
        self.private = private

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or hand it on."""

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                said = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(one for one in _HEADERS if one[0] not in said)]
            await send(message)

        try:
            self._check(scope, _said(scope))
        except RequestRefused as refused:
            return await refusals.answer(refused)(scope, receive, send_guarded)
        await self.app(scope, receive, send_guarded)

    def _check(self, scope: Scope, said: dict[bytes, list[str]]) -> None:
        hosts = said[b"host"]
        if len(hosts) != 1 or hosts[0] not in self.hosts:
            known = " or ".join(sorted(self.hosts))
            raise RequestRefused(421, "wrong_host", "this server does not go by that name", f"Call it {known}.")
        origins = said[b"origin"]
        if origins and origins != [f"http://{hosts[0]}"]:
            raise RequestRefused(
                403, "foreign_origin", "pages of other sites may not ask", "Use the board of this server."
            )
        api = scope["path"].startswith(_API)
        if api and said[b"sec-fetch-site"][:1] not in ([], ["none"], ["same-origin"]):
            raise RequestRefused(
                403, "foreign_origin", "pages of other sites may not ask", "Use the board of this server."
            )
        if scope["method"] not in READING or (api and self.private and scope["path"] != PROOF):
            self._check_token(scope, "".join(said[b"authorization"][:1]))

    def _check_token(self, scope: Scope, said: str) -> None:
        scheme, _, given = said.partition(" ")
        if not given and scope["path"] == "/api/events":  # browsers' event streams can't say more than the address
            scheme, given = "bearer", parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scheme.lower() == "bearer" and compare_digest(given.strip().encode(), self.token):
            return
        wrong = "wrong" if given else "missing"
        hint = (
            "`teams serve` prints the token, and server.json in the root has it. "
            "Requests carry it as `Authorization: Bearer TOKEN`."
        )
        raise RequestRefused(401, "wrong_token", f"the token is {wrong}", hint, {"WWW-Authenticate": "Bearer"})
