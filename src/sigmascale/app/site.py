"""The addresses of the app, and what they answer."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import secrets
import traceback
import zipfile
import zlib
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
from .session import SLOTS, STEPS, Session

PAGE = Path(__file__).parent / "page"
STATIC = {path.name: path for path in PAGE.iterdir() if path.suffix in (".css", ".js")}
STATIC["report.css"] = Path(__file__).parents[1] / "report" / "page.css"
LARGEST_ORDER = 1 << 20  # bytes of JSON
UNPACKED_AT_A_TIME = 1 << 20  # bytes that are unpacked at a time
# The report runs nothing and loads nothing; its own styles are all that it needs.
REPORT_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
Handler = Callable[[Request], Awaitable[Response]]


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

    def then_state(act: Callable[[Request], Awaitable[None]]) -> Handler:
        async def answer(request: Request) -> Response:
            await act(request)
            return JSONResponse(session.state())

        return answer

    async def upload(request: Request) -> None:
        """Take a file; one that is slow does not keep out the next."""
        slot = _slot(request)
        incoming = session.incoming / secrets.token_hex(8)
        newest[slot] = incoming.name
        try:
            await _receive(request, incoming, session.largest)
            if newest[slot] == incoming.name:
                await session.idle()
            if newest[slot] != incoming.name:
                msg = "Another file came after this one."
                raise InvalidInputError(msg, "busy")
            session.take(slot, incoming, request.query_params.get("name", ""))
        finally:
            incoming.unlink(missing_ok=True)

    async def clear(request: Request) -> None:
        slot = _slot(request)
        await session.idle()
        session.clear(slot)

    async def settle(request: Request) -> None:
        slot = _slot(request)
        fields = await _order(request)
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
        status = path.stat()  # or a new result has just replaced it
        if request.query_params.get("show") and path.suffix in (".html", ".svg"):
            headers = {"content-security-policy": REPORT_POLICY}
            return FileResponse(path, headers=headers, stat_result=status)
        return FileResponse(
            path,
            filename=path.name,
            media_type="application/octet-stream",
            stat_result=status,
        )

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await session.end()

    answers: list[tuple[str, Handler, str]] = [
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
        routes=[Route(path, answer, methods=[verb]) for path, answer, verb in answers],
        exception_handlers={
            InvalidInputError: _refuse,
            ClientDisconnect: _nothing(400),
            FileNotFoundError: _nothing(404),
            Exception: _broken,
        },
        lifespan=lifespan,
    )


def _slot(request: Request) -> str:
    """Return the slot of a request's address; others are not found."""
    slot: str = request.path_params["slot"]
    if slot not in SLOTS:
        raise FileNotFoundError
    return slot


# -- bodies: files go straight to the disk, whole or not at all ------------------------


def _too_large(largest: int) -> InvalidInputError:
    """Return the error that more was sent than may be."""
    size = f"{largest / 2**20:,.0f} MiB"
    msg = (
        f"This page takes at most {size}, packed or unpacked. Use the command line, "
        "which knows no limit."
    )
    return InvalidInputError(msg, "too-large", largest=largest)


async def _pieces(request: Request, largest: int) -> AsyncIterator[bytes]:
    """Yield the body of a request, which must not be too large."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > largest:
        raise _too_large(largest)
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > largest:
            raise _too_large(largest)
        yield piece


async def _receive(request: Request, path: Path, largest: int) -> None:
    """Write the body of a request to a new file; who calls removes it if it fails."""
    with path.open("xb") as file:
        async for piece in _pieces(request, largest):
            await asyncio.to_thread(file.write, piece)
    if await asyncio.to_thread(_unpacked_size, path, largest) > largest:
        raise _too_large(largest)


def _unpacked_size(path: Path, largest: int) -> int:
    """Return how many bytes a packed file holds, or the first number beyond `largest`.

    Gzip is unpacked piece by piece, and nothing of it is kept. What is no whole archive
    is for the reader of tables to tell.
    """
    with path.open("rb") as opened:
        magic = opened.read(4)
    size = 0
    try:
        if magic.startswith(b"\x1f\x8b"):
            with gzip.open(path) as packed:
                while size <= largest and (piece := packed.read(UNPACKED_AT_A_TIME)):
                    size += len(piece)
        elif magic == b"PK\x03\x04":
            with zipfile.ZipFile(path) as archive:
                size = sum(entry.file_size for entry in archive.infolist())
    except (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile):
        pass
    return size


async def _order(request: Request) -> dict[str, Any]:
    """Return what the page has sent, which must be a small JSON object."""
    msg = "An order must be an object of JSON."
    if request.headers.get("content-type", "").split(";")[0] != "application/json":
        raise InvalidInputError(msg, "order")
    body = b"".join([piece async for piece in _pieces(request, LARGEST_ORDER)])
    try:
        order = json.loads(body)
        # what is no text, and no number, could not be shown again
        json.dumps(order, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as problem:
        raise InvalidInputError(msg, "order") from problem
    if not isinstance(order, dict):
        raise InvalidInputError(msg, "order")
    return order


# -- what goes wrong -------------------------------------------------------------------


async def _refuse(_: Request, problem: Exception) -> Response:
    """Answer with what is wrong, as data that the page words."""
    assert isinstance(problem, InvalidInputError)
    status = {"busy": 409, "too-large": 413}.get(problem.code, 400)
    headers = {"connection": "close"} if status == 413 else {}
    told = {"message": str(problem), "code": problem.code, "fields": problem.fields}
    return JSONResponse(told, status, headers)


def _nothing(status: int) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Return what answers with a status alone."""

    async def answer(_: Request, problem: Exception) -> Response:
        return Response(status_code=status)

    return answer


async def _broken(_: Request, problem: Exception) -> Response:
    """Answer a defect of ours; the terminal has the rest."""
    traceback.print_exception(problem)  # where the app was started
    msg = "This is a defect of the app; where it was started, it says more. Try again."
    return JSONResponse({"message": msg, "code": "defect", "fields": {}}, 500)
