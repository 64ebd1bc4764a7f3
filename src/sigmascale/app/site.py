"""The addresses of the app, and what they answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from .._support.version import __version__
from ..exceptions import InvalidInputError
from .session import SLOTS, STEPS, BusyError, Session
from .uploads import LargeBodyError, pieces, receive

PAGE = Path(__file__).parent / "page"
STATIC = {path.name: path for path in PAGE.iterdir() if path.suffix in (".css", ".js")}
STATIC["report.css"] = Path(__file__).parents[1] / "report" / "page.css"
LARGEST_ORDER = 1 << 20  # bytes of JSON
# The report runs nothing and loads nothing; its own styles are all that it needs.
REPORT_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
Answer = Callable[[Request], Awaitable[Response]]


def make_site(session: Session) -> Starlette:
    """Return the application, without its guard."""
    newest: dict[str, str] = {}  # the last upload that has begun, by slot
    tasks: set[asyncio.Task[None]] = set()

    async def page(_: Request) -> Response:
        warm = asyncio.create_task(session.worker.warm_up())
        tasks.add(warm)
        warm.add_done_callback(tasks.discard)
        return FileResponse(PAGE / "page.html")

    async def static(request: Request) -> Response:
        path = STATIC.get(request.path_params["name"])
        return Response(status_code=404) if path is None else FileResponse(path)

    async def state(request: Request) -> Response:
        known = request.query_params.get("known", "")
        return JSONResponse(session.state(known) | {"version": __version__})

    def then_state(act: Callable[[Request], Awaitable[None]]) -> Answer:
        async def answer(request: Request) -> Response:
            await act(request)
            return JSONResponse(session.state())

        return answer

    async def upload(request: Request) -> None:
        """Take a file; one that is slow does not keep out the next."""
        slot, incoming = _slot(request), session.incoming / secrets.token_hex(8)
        newest[slot] = incoming.name
        try:
            await receive(request, incoming, session.largest)
            if newest[slot] == incoming.name:
                await session.idle()
            if newest[slot] != incoming.name:
                msg = "Another file came after this one."
                raise BusyError(msg, "busy")
            session.take(slot, incoming, request.query_params.get("name", ""))
        finally:
            incoming.unlink(missing_ok=True)

    async def clear(request: Request) -> None:
        slot = _slot(request)
        await session.idle()
        session.clear(slot)

    async def settle(request: Request) -> None:
        slot, fields = _slot(request), await _order(request)
        await session.idle()
        session.settle(slot, fields)

    async def examine(request: Request) -> None:
        session.examine(_slot(request))

    async def demo(_: Request) -> None:
        await session.idle()
        session.demo()

    async def run(request: Request) -> None:
        step = request.path_params["step"]
        if step not in STEPS:
            raise FileNotFoundError
        session.run(step, await _order(request))

    async def cancel(_: Request) -> None:
        await session.idle()

    async def archive(_: Request) -> Response:
        path = await asyncio.to_thread(session.archive)
        return FileResponse(
            path,
            filename="sigmascale.zip",
            media_type="application/zip",
            background=BackgroundTask(path.unlink),
        )

    async def download(request: Request) -> Response:
        path = session.path_of(request.path_params["name"])
        if path is None:
            return Response(status_code=404)
        found = path.stat()  # or a new result has just replaced it
        if request.query_params.get("show") and path.suffix in (".html", ".svg"):
            headers = {"content-security-policy": REPORT_POLICY}
            return FileResponse(path, headers=headers, stat_result=found)
        return FileResponse(
            path,
            filename=path.name,
            media_type="application/octet-stream",
            stat_result=found,
        )

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await session.end()

    routes: list[tuple[str, Answer, str]] = [
        ("/", page, "GET"),
        ("/static/{name}", static, "GET"),
        ("/api/state", state, "GET"),
        ("/api/table/{slot}", then_state(upload), "PUT"),
        ("/api/table/{slot}", then_state(clear), "DELETE"),
        ("/api/fields/{slot}", then_state(settle), "POST"),
        ("/api/examine/{slot}", then_state(examine), "POST"),
        ("/api/demo", then_state(demo), "POST"),
        ("/api/run/{step}", then_state(run), "POST"),
        ("/api/cancel", then_state(cancel), "POST"),
        ("/all.zip", archive, "GET"),
        ("/files/{name:path}", download, "GET"),
    ]
    return Starlette(
        routes=[
            Route(path, answer, methods=[method]) for path, answer, method in routes
        ],
        exception_handlers={
            InvalidInputError: _refuse,
            ClientDisconnect: _nothing(400),
            FileNotFoundError: _nothing(404),
            Exception: _broken,
        },
        lifespan=lifespan,
    )


def _slot(request: Request) -> str:
    slot: str = request.path_params["slot"]
    if slot not in SLOTS:
        raise FileNotFoundError
    return slot


async def _order(request: Request) -> dict[str, Any]:
    """Return what the page has sent, which must be a small JSON object."""
    msg = "An order must be an object of JSON."
    if request.headers.get("content-type", "").split(";")[0] != "application/json":
        raise InvalidInputError(msg, "order")
    body = b"".join([piece async for piece in pieces(request, LARGEST_ORDER)])
    try:
        found = json.loads(body)
        # what is no text, and no number, could not be shown again
        json.dumps(found, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as problem:
        raise InvalidInputError(msg, "order") from problem
    if not isinstance(found, dict):
        raise InvalidInputError(msg, "order")
    return found


async def _refuse(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, InvalidInputError)
    status = {BusyError: 409, LargeBodyError: 413}.get(type(problem), 400)
    headers = {"connection": "close"} if status == 413 else {}
    told = {"message": str(problem), "code": problem.code, "fields": problem.fields}
    return JSONResponse(told, status, headers)


def _nothing(status: int) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(_: Request, problem: Exception) -> Response:
        return Response(status_code=status)

    return answer


async def _broken(_: Request, problem: Exception) -> Response:
    traceback.print_exception(problem)  # where the app was started
    msg = "This is a defect of the app; where it was started, it says more. Try again."
    return JSONResponse({"message": msg, "code": "defect", "fields": {}}, 500)
