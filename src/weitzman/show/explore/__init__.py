"""The explorer: a page to build, solve and try out boxes, for one user on this machine.

``workbench`` answers its questions; the server here lets nobody else ask. It listens on 127.0.0.1
only. The address holds a random token, which every request needs. Requests under another host name
(a name server may have been made to point here) or from another origin (a page elsewhere) are
rejected, so that no other page in the same browser can use it. Script and style are files of their
own, so that the policy of the page allows no inline script. A request has a deadline and
connections are counted, so that nobody can keep the server busy.
"""

from __future__ import annotations

import hmac
import io
import json
import os
import secrets
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

from ...errors import InvalidArgument
from ..page import Markup, escape, linked, policy, script, style, worded
from .workbench import Workbench

_MOST = 2**26  # bytes of a request
_DIGITS = 12  # digits of its length; longer numbers are rejected
_CONNECTIONS = 64  # at a time; a browser opens six
_PATIENCE = 60.0  # seconds until a request must have arrived, and an answer must have been taken
_SCRIPTS = (
    "ask.js", "fields.js", "edit.js", "outline.js", "editor.js", "headline.js", "what_if.js",
    "files.js", "settings.js", "questions.js", "explore.js",
)  # fmt: skip
_RULES = policy("'self'", "'self'", "'self'") + "; frame-ancestors 'none'"
_HEADERS = {
    "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
}  # fmt: skip


class Server(ThreadingHTTPServer):
    """The server of one workbench; ``serve_forever`` runs it.

    Parameters
    ----------
    workbench : Workbench
    port : int
        0 takes any free one.
    """

    daemon_threads = True
    request_queue_size = 2 * _CONNECTIONS  # a connection beyond the usual five waits a second
    patience = _PATIENCE

    def __init__(self, workbench: Workbench, port: int = 0) -> None:
        self.workbench = workbench
        self.token = secrets.token_urlsafe(24)
        self._known: dict[socket.socket, bool] = {}  # connections; True once the token was shown
        self._door_lock = threading.Lock()
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise InvalidArgument(
                f"port {port} cannot be used: {error.strerror}. Choose another with --port, or "
                f"leave it out to take a free one."
            ) from error
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"

    @contextmanager
    def door(self) -> Iterator[str]:
        """The address of a file that leads to the page, for as long as it is needed.

        The token itself must not be an argument of the browser: all users of a machine see the
        arguments of all programs. Nobody else can read the file.
        """
        with tempfile.TemporaryDirectory(prefix="weitzman-") as folder:
            path = os.path.join(folder, "explore.html")
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(
                    f'<!DOCTYPE html><meta charset="utf-8"><meta name="referrer" '
                    f'content="no-referrer"><title>weitzman explore</title><meta '
                    f'http-equiv="refresh" content="0; url={escape(self.address)}">'
                )
            yield "file://" + path if os.sep == "/" else path

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for a connection. If there are too many, a stranger has to make room."""
        with self._door_lock:
            full = len(self._known) >= _CONNECTIONS
            stranger = next((s for s, known in self._known.items() if not known), None)
            if full and stranger is not None:  # the one that has been silent for longest
                del self._known[stranger]
                with suppress(OSError):
                    stranger.shutdown(socket.SHUT_RDWR)  # ends the thread that waits for it
            if not full or stranger is not None:
                self._known[request] = False
                return super().process_request(request, client_address)
        with suppress(OSError):
            request.sendall(b"HTTP/1.1 503 Too many connections\r\nConnection: close\r\n\r\n")
        return self.shutdown_request(request)

    def trust(self, connection: socket.socket) -> None:
        """Remember that a connection has shown the token."""
        with self._door_lock:
            if connection in self._known:
                self._known[connection] = True

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """The life of a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._door_lock:
                self._known.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hangs up is no reason to print a traceback."""

    def content(self, name: str) -> tuple[str, str] | None:
        """What is served under a name, with its type; None if nothing is."""
        if name == "":
            body = Markup(files(__package__).joinpath("explore.html").read_text("utf-8"))
            links, data = {"style": "explore.css", "script": "explore.js"}, self.workbench.start()
            body = worded(body, data["words"], ("Open…",))  # a file
            return "text/html", linked("weitzman explore", body, **links, data=data)
        if name == "explore.js":
            return "text/javascript", script(__package__, *_SCRIPTS)
        if name == "explore.css":
            return "text/css", style(__package__, "explore.css")
        return None


class _Refused(Exception):
    """A request that is not answered: the status and the reason."""


class _Hurried(io.RawIOBase):
    """What a client sends before a deadline: one byte per minute is too slow."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self.until = connection, 0.0

    def readable(self) -> bool:
        """Say that the stream can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Some bytes before the deadline."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long")
        self.connection.settimeout(left)
        return self.connection.recv_into(buffer)


def _bug(error: Exception) -> str:
    return f"{type(error).__name__}: {error}. This is a bug: please report it."


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "weitzman", ""
    wbufsize, disable_nagle_algorithm = -1, True  # an answer is sent at once, in one piece

    def setup(self) -> None:
        """Give every read a deadline."""
        super().setup()
        self.hurried = _Hurried(self.connection)
        self.rfile = io.BufferedReader(self.hurried)

    def handle_one_request(self) -> None:
        """A request from its first to its last byte."""
        self.hurried.until = time.monotonic() + self.server.patience
        super().handle_one_request()

    def do_GET(self) -> None:
        """The page, its script or its style."""
        try:
            found = self.server.content(self._asked())
            if found is None:
                raise _Refused(HTTPStatus.NOT_FOUND, "there is no such page.")
        except _Refused as refused:
            return self._refuse(*refused.args)
        except Exception as error:
            return self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, _bug(error))
        kind, text = found
        content = text.encode("utf-8", "xmlcharrefreplace")
        rules = _RULES if kind == "text/html" else ""
        return self._send(HTTPStatus.OK, f"{kind}; charset=utf-8", content, rules)

    def do_POST(self) -> None:
        """A question of the page."""
        try:
            what = self._asked()
            if not self.server.workbench.knows(what):
                raise _Refused(HTTPStatus.NOT_FOUND, "there is no such question.")
            body = self._body()
        except _Refused as refused:
            return self._refuse(*refused.args)
        name, status = unquote(self.headers.get("X-File-Name", "")), HTTPStatus.OK
        try:
            answer = self.server.workbench.answer(what, body, name)
        except Exception as error:
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            answer = {"ok": False, "message": _bug(error)}
        return self._send(status, "application/json", json.dumps(answer).encode(), "")

    def _asked(self) -> str:
        """The part of the address after the token, if the request may be answered."""
        origin = self.headers.get("Origin")
        # a window that opens the page itself, as through `Server.door`: whoever made the link knew
        # the token, and other pages cannot reach into a new window
        sent = [self.headers.get(f"Sec-Fetch-{key}") for key in ("Mode", "Dest")]
        link = self.command == "GET" and sent == ["navigate", "document"]
        _, token, *rest = [*self.path.split("/"), ""][: 2**10]
        reasons = {
            "this host name is not served.": self.headers.get("Host", "") not in self.server.hosts,
            "other origins are not served.": origin is not None
            and origin.removeprefix("http://") not in self.server.hosts,
            "other sites are not served.": not link
            and self.headers.get("Sec-Fetch-Site") not in (None, "same-origin", "none"),
            "the address must hold the token that weitzman printed.": not hmac.compare_digest(
                token.encode(), self.server.token.encode()
            ),
        }
        for reason, refused in reasons.items():
            if refused:
                raise _Refused(HTTPStatus.FORBIDDEN, reason)
        self.server.trust(self.connection)
        return "/".join(rest).rstrip("/")

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "the request must give its length.")
        if len(length) > _DIGITS or int(length) > _MOST:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too large.")
        return self.rfile.read(int(length))

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        self.close_connection = True  # what follows may be a body that nobody reads
        self._send(status, "text/plain; charset=utf-8", f"{reason}\n".encode(), "")

    def _send(self, status: HTTPStatus, kind: str, content: bytes, rules: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for key, value in _HEADERS.items():
            self.send_header(key, value)
        if rules:
            self.send_header("Content-Security-Policy", rules)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.connection.settimeout(self.server.patience)
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Keep no log of requests."""
