"""A server on this machine, for as long as someone wants it, with a private folder."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from .._support.files import claimed, remove_leftover
from ..exceptions import InvalidInputError
from .guard import Guard
from .session import Session
from .site import make_site

FOLDER_PREFIX = "sigmascale-app-"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
EVERYWHERE = ("", "0.0.0.0", "::", "[::]", "*")
MOST_SILENT = 50  # lines that have not asked for anything yet


class Line(H11Protocol):
    """A line to a browser; of those on which no request arrives, the oldest is cut.

    Strangers who send no more than the beginning of a request keep nobody out.
    """

    def connection_made(self, transport: Any) -> None:
        """Take a line, and cut another if there are too many that are silent."""
        super().connection_made(transport)
        self.since = self.loop.time()
        lines: set[Any] = self.connections
        silent = [line for line in lines if line.cycle is None]
        if len(silent) > MOST_SILENT:
            oldest = min(silent, key=lambda line: line.since)
            lines.discard(oldest)  # its end is told later
            oldest.transport.abort()


def serve(
    file: Path | None, *, host: str, port: int, largest: int, open_browser: bool
) -> None:
    """Answer until someone presses Ctrl-C.

    Parameters
    ----------
    file : Path or None
        A table to begin with.
    host, port : str and int
        Where to listen; port 0 is any that is free.
    largest : int
        Bytes that a file may have.
    open_browser : bool
        Whether to open the page.
    """
    if file is not None and not file.is_file():
        msg = f"{file}: there is no such file."
        raise InvalidInputError(msg)
    if host in EVERYWHERE:
        msg = (
            f"--host {host}: stands for all addresses. Name the one by which the page "
            "will be called: requests under any other name are refused."
        )
        raise InvalidInputError(msg)
    with _listening(host, port) as listener, private_folder() as folder:
        session = Session(folder, largest)
        if file is not None:
            session.link("table", file.resolve())

        # the address, which has a token that nobody can guess
        port = listener.getsockname()[1]
        token = secrets.token_urlsafe(24)
        address = f"http://{host}:{port}/{token}/"
        is_private = host in LOOPBACK
        print(address, flush=True)
        if is_private:
            words = "Only this machine can open it, and nothing leaves it."
        else:
            words = "Whoever knows this address can use it."
        print(f"{words} Ctrl-C ends it.", flush=True)

        # the site behind its guard, which knows by what names it is called
        names = LOOPBACK if is_private else (host,)
        hosts = {f"{name}:{port}".lower() for name in names}
        config = uvicorn.Config(
            Guard(make_site(session), hosts, token),
            http=Line,
            ws="none",
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=1,
            limit_concurrency=200,
        )
        server = uvicorn.Server(config)
        if open_browser:
            webbrowser.open(_doorway(folder, address).as_uri())
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listener])


def _doorway(folder: Path, address: str) -> Path:
    """Write a page that leads to the address, and that only this user can read.

    The words that a program is started with, and so an address in them, can be read by
    every user of a machine.
    """
    page = folder / "open.html"
    link = escape(address)
    page.write_text(
        f'<!doctype html><meta charset="utf-8"><title>sigmascale</title>'
        f'<meta http-equiv="refresh" content="0; url={link}">'
        f'<a href="{link}">sigmascale</a>',
        encoding="utf-8",
    )
    return page


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens; refuse an address that is not to be had."""
    name = host.strip("[]")
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((name, port))
    except OSError as problem:
        listener.close()
        msg = f"Cannot listen on {host}, port {port} ({problem.strerror}). "
        msg += "Choose another with --port; 0 is any that is free."
        raise InvalidInputError(msg) from problem
    listener.listen(128)
    return listener


@contextmanager
def private_folder() -> Iterator[Path]:
    """Yield a folder that only this user can look into, and remove it at the end.

    Folders that killed servers have left are removed first.
    """
    parent = Path(tempfile.gettempdir())
    for leftover in parent.glob(f"{FOLDER_PREFIX}*"):
        remove_leftover(leftover)
    new = Path(tempfile.mkdtemp(prefix="sigmascale-new-"))
    claim = claimed(new)
    # only now may others ask whether it is a leftover
    folder = new.rename(
        new.with_name(new.name.replace("sigmascale-new-", FOLDER_PREFIX))
    )
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if claim is not None:
            os.close(claim)
