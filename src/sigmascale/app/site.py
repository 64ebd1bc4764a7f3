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
from ..scaling.registry import methods
from .session import SLOTS, BusyError, Session
from .uploads import LargeBodyError, SlowBodyError, pieces, receive
from .worker import CancelledWork

PAGE = Path(__file__).parent / "page"
REPORT_STYLE = Path(__file__).parents[1] / "report" / "page.css"
STATIC = {path.name: path for path in PAGE.iterdir() if path.suffix in (".css", ".js")}
STATIC["report.css"] = REPORT_STYLE
STATIC["words.json"] = PAGE / "words.json"
LARGEST_ORDER = 1 << 20  # bytes of JSON
# The report runs nothing and loads nothing; its own styles are all that it needs.
REPORT_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
STATUS = {
    BusyError: 409,
    CancelledWork: 409,
    LargeBodyError: 413,
    SlowBodyError: 408,
}
Answer = Callable[[Request], Awaitable[Response]]


def make_site(session: Session) -> Starlette:
    """Return the application, without its guard."""
    uploading: set[str] = set()

    async def page(_: Request) -> Response:
        warm = asyncio.create_task(_warm(session))
        tasks.add(warm)
        warm.add_done_callback(tasks.discard)
        return FileResponse(PAGE / "page.html")

    async def static(request: Request) -> Response:
        path = STATIC.get(request.path_params["name"])
        return Response(status_code=404) if path is None else FileResponse(path)

    async def state(_: Request) -> Response:
        about = {"version": __version__, "methods": methods()}
        return JSONResponse(session.state() | about)

    async def everything(_: Request) -> Response:
        return JSONResponse(session.everything())

    def then_state(act: Callable[[Request], Awaitable[None]]) -> Answer:
        async def answer(request: Request) -> Response:
            await act(request)
            return JSONResponse(session.state())

        return answer

    async def upload(request: Request) -> None:
        slot = _slot(request)
        if slot in uploading:
            msg = "Another file is on its way."
            raise BusyError(msg)
        uploading.add(slot)
        incoming = session.incoming / secrets.token_hex(8)
        try:
            await receive(request, incoming, session.largest)
            await session.idle()
            name = session.name_for(slot, request.query_params.get("name", ""))
            session.take(slot, incoming, name)
        finally:
            uploading.discard(slot)
            incoming.unlink(missing_ok=True)
        await session.examine(slot, {})

    async def settings(request: Request) -> None:
        wanted = await _order(request)
        await session.examine(_slot(request), wanted)

    async def clear(request: Request) -> None:
        slot = _slot(request)
        await session.idle()
        session.clear(slot)

    async def demo(_: Request) -> None:
        await session.idle()
        await session.demo()

    async def same(_: Request) -> None:
        await session.idle()
        session.copy_table("other")
        await session.examine("other", {})

    async def judge(request: Request) -> None:
        session.start("judge", _slot(request))

    async def report(request: Request) -> None:
        session.start("report", _slot(request))

    async def recalibrate(request: Request) -> None:
        session.recalibrate(await _order(request))

    async def apply(request: Request) -> None:
        session.apply(await _order(request))

    async def cancel(_: Request) -> None:
        session.cancel()

    async def bins(request: Request) -> Response:
        wanted = await _order(request)
        n_bins = wanted.get("bins")
        if type(n_bins) is not int or not 1 <= n_bins <= 1000:
            msg = "The number of bins must be a whole number from 1 to 1000."
            raise InvalidInputError(msg)
        stage = session.stage(wanted)
        local, _ = await session.ask("binning", "table", "local", **stage, bins=n_bins)
        return JSONResponse(local)

    async def rows(request: Request) -> Response:
        wanted = await _order(request)
        stage = session.stage(wanted)
        limits = {name: wanted.get(name) for name in ("low", "high")}
        if not all(
            isinstance(x, (int, float, str, type(None))) for x in limits.values()
        ):
            msg = "The limits of a region must be numbers or a label."
            raise InvalidInputError(msg)
        variable = str(wanted.get("variable"))
        found, _ = await session.ask(
            "looking up rows", "table", "rows", **stage, variable=variable, **limits
        )
        return JSONResponse(found)

    async def archive(_: Request) -> Response:
        path = await asyncio.to_thread(session.archive)
        return FileResponse(
            path,
            filename="sigmascale.zip",
            media_type="application/zip",
            background=BackgroundTask(path.unlink),
        )

    async def download(request: Request) -> Response:
        name = request.path_params["name"]
        path = session.path_of(name)
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

    tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        for slot in list(session.slots):  # a file that was named at the start
            first = asyncio.create_task(session.examine(slot, {}))
            tasks.add(first)
        yield
        await session.end()

    routes: list[tuple[str, Answer, str]] = [
        ("/", page, "GET"),
        ("/static/{name}", static, "GET"),
        ("/api/state", state, "GET"),
        ("/api/everything", everything, "GET"),
        ("/api/table/{slot}", then_state(upload), "PUT"),
        ("/api/table/{slot}", then_state(clear), "DELETE"),
        ("/api/settings/{slot}", then_state(settings), "POST"),
        ("/api/demo", then_state(demo), "POST"),
        ("/api/same", then_state(same), "POST"),
        ("/api/judge/{slot}", then_state(judge), "POST"),
        ("/api/report/{slot}", then_state(report), "POST"),
        ("/api/recalibrate", then_state(recalibrate), "POST"),
        ("/api/apply", then_state(apply), "POST"),
        ("/api/cancel", then_state(cancel), "POST"),
        ("/api/bins", bins, "POST"),
        ("/api/rows", rows, "POST"),
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


async def _warm(session: Session) -> None:
    with contextlib.suppress(InvalidInputError):
        await session.worker.warm_up()


def _slot(request: Request) -> str:
    slot: str = request.path_params["slot"]
    if slot not in SLOTS:
        raise FileNotFoundError
    return slot


async def _order(request: Request) -> dict[str, Any]:
    """Return what the page has sent, which must be a small JSON object."""
    if request.headers.get("content-type", "").split(";")[0] != "application/json":
        msg = "An order must be JSON."
        raise InvalidInputError(msg)
    body = b""
    async for piece in pieces(request, LARGEST_ORDER, "The order"):
        body += piece
    try:
        found = json.loads(body)
        # what is no text, and no number, could not be shown again
        json.dumps(found, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as problem:
        msg = "An order must be JSON."
        raise InvalidInputError(msg) from problem
    if not isinstance(found, dict):
        msg = "An order must be an object."
        raise InvalidInputError(msg)
    return found


async def _refuse(_: Request, problem: Exception) -> Response:
    status = next((s for k, s in STATUS.items() if isinstance(problem, k)), 400)
    headers = {"connection": "close"} if status in (408, 413) else {}
    return JSONResponse({"problem": str(problem)}, status, headers)


def _nothing(status: int) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(_: Request, problem: Exception) -> Response:
        return Response(status_code=status)

    return answer


async def _broken(_: Request, problem: Exception) -> Response:
    traceback.print_exception(problem)  # where the app was started
    msg = "This is a defect of the app; where it was started, it says more. Try again."
    return JSONResponse({"problem": msg}, 500)
