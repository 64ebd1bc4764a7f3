"""Who may ask: this machine's own page, with the token of this start, and no other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from secrets import compare_digest
from typing import Any

from h11 import LocalProtocolError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}
REFUSAL = b"Open the address that `sigmascale app` has printed.\n"


class Guard:
    """Refuses a request before anything of it is read.

    Parameters
    ----------
    app : application
        What answers the others.
    hosts : set of str
        Names and ports by which this server may be called: a page of another name that
        points to this machine has another.
    token : str
        The first part of every path.
    """

    def __init__(self, app: Application, hosts: set[str], token: str) -> None:
        self._app = app
        self._hosts = hosts
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def safely(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (name.encode(), value.encode())
                        for name, value in HEADERS.items()
                        if name.encode() not in own
                    ),
                ]
            with suppress(LocalProtocolError):  # the request broke off in its middle
                await send(message)

        if not self._is_allowed(scope):
            headers = [
                (b"content-type", b"text/plain; charset=utf-8"),
                (b"content-length", str(len(REFUSAL)).encode()),
                (b"connection", b"close"),  # without a look at the body
            ]
            start = {"type": "http.response.start", "status": 403, "headers": headers}
            await safely(start)
            await send({"type": "http.response.body", "body": REFUSAL})
            return
        scope["path"] = "/" + scope["path"].split("/", 2)[2]
        scope["raw_path"] = scope["path"].encode()
        await self._app(scope, receive, safely)

    def _is_allowed(self, scope: Scope) -> bool:
        headers: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value.decode("latin-1"))
        hosts, origins = headers.get(b"host", []), headers.get(b"origin", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return False
        changes = scope["method"] not in ("GET", "HEAD")
        if origins != [f"http://{hosts[0]}"] and (origins or changes):
            return False
        parts = scope["path"].split("/", 2)
        if len(parts) < 3 or not compare_digest(parts[1].encode(), self._token):
            return False
        site = headers.get(b"sec-fetch-site", ["none"])
        # the page alone is opened from elsewhere: from the file that holds the token
        is_page = parts[2] == "" and scope["method"] == "GET"
        if is_page and headers.get(b"sec-fetch-mode") == ["navigate"]:
            site = [x for x in site if x != "cross-site"]
        return set(site) <= {"same-origin", "none"}
