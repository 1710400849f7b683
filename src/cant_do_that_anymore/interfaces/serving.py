"""Pages over HTTP, for a browser on another machine: to this machine alone, and of one folder."""

import socket
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, urlsplit

import click

from ..errors import Problem
from ..evaluation.finding import FACTS
from ..report.experiment_page import INDEX

HOST = "127.0.0.1"
SERVED = {".html", ".json", ".jsonl", ".csv", ".png", ".svg", ".toml"}
"""How the names of pages and data end; nothing else is given away."""


def serve(page: Path, port: int) -> None:
    """Serve a page and what belongs to it, until Ctrl-C.

    Raises:
        Problem: if the port cannot be had.
    """
    with server_of(page, port) as server:
        port = server.server_port
        click.echo(f"http://{HOST}:{port}/ (Ctrl-C ends it)")
        click.echo(f"from elsewhere, first: ssh -L {port}:{HOST}:{port} {socket.gethostname()}")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo()


def server_of(page: Path, port: int) -> ThreadingHTTPServer:
    """A server for a page and what belongs to it, ready to be started."""
    try:
        return _Server((HOST, port), partial(_Handler, page.resolve()))
    except OSError as problem:
        raise Problem(f"cannot serve at port {port} ({problem.strerror}); try another") from None


class _Server(ThreadingHTTPServer):
    """Says nothing of a browser that has gone away."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Go on."""


class _Handler(SimpleHTTPRequestHandler):
    """Gives a page and the data beside it, and lists nothing."""

    def __init__(self, page: Path, *of_request: Any) -> None:
        self._page = page
        super().__init__(*of_request, directory=str(page.parent))

    def send_head(self) -> BytesIO | BinaryIO | None:
        """Give nothing that is not served, whatever the address or a link says."""
        if self.path == "/":
            self.path += quote(self._page.name)
        if self._is_asked_for_here() and self._is_served(self.translate_path(self.path)):
            return super().send_head()
        self.send_error(HTTPStatus.NOT_FOUND)
        return None

    def _is_asked_for_here(self) -> bool:
        """Not under the name of a web site, which could then read what it is given."""
        return urlsplit(f"//{self.headers['Host']}").hostname in (HOST, "localhost")

    def _is_served(self, named: str) -> bool:
        """Below an index everything, beside the page of a run its files, else the page alone."""
        if "\0" in named:
            return False
        path = Path(named).resolve()
        if path == self._page or not path.is_file() or path.suffix not in SERVED:
            return path == self._page
        folder = self._page.parent
        if self._page.name == INDEX:
            return path.is_relative_to(folder)
        return path.parent == folder and (folder / FACTS).exists()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the terminal is for the user."""
