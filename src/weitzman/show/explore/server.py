"""A server for one page and one user on this machine.

Only 127.0.0.1 is listened on. The address holds a random token; without it nothing is answered.
Requests under another host name (a name server may have been made to point here) or from another
origin (a page elsewhere) are refused, so that no other page in the same browser can use it.
"""

from __future__ import annotations

import hmac
import json
import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

from ...errors import InvalidArgument
from ..page import page, policy, script, style
from ..page.html import Markup
from .workbench import Workbench

_MOST = 2**26  # bytes of a request
_SCRIPTS = (
    "ask.js", "edit.js", "fields.js", "outline.js", "editor.js", "headline.js", "explore.js",
)  # fmt: skip
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Server(ThreadingHTTPServer):
    """The server of one workbench; ``serve_forever`` runs it.

    Parameters
    ----------
    workbench : Workbench
    port : int
        0 takes any free one.
    """

    daemon_threads = True

    def __init__(self, workbench: Workbench, port: int = 0) -> None:
        self.workbench = workbench
        self.token = secrets.token_urlsafe(24)
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

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hangs up is no reason to print a traceback."""

    def page(self, nonce: str) -> str:
        """The explorer as one HTML page."""
        body = files(__package__).joinpath("explore.html").read_text("utf-8")
        return page(
            "weitzman explore",
            Markup(body),
            style=style(__package__, "explore.css"),
            script=script(__package__, *_SCRIPTS),
            data=self.workbench.start(),
            nonce=nonce,
        )


class _Refused(Exception):
    """A request that is not answered, with the status and the reason."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def _bug(error: Exception) -> str:
    return f"{type(error).__name__}: {error}. This is a bug: please report it."


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "weitzman", ""
    timeout = 60
    wbufsize, disable_nagle_algorithm = -1, True  # an answer is sent at once, in one piece

    def do_GET(self) -> None:
        """The page."""
        nonce = secrets.token_urlsafe(16)
        own = f"'nonce-{nonce}'"
        rules = policy(own, own, "'self'") + "; frame-ancestors 'none'"
        try:
            if self._asked() != "":
                raise _Refused(HTTPStatus.NOT_FOUND, "there is no such page.")
            content = self.server.page(nonce).encode("utf-8", "xmlcharrefreplace")
        except _Refused as refused:
            self._refuse(refused)
            return
        except Exception as error:
            self._refuse(_Refused(HTTPStatus.INTERNAL_SERVER_ERROR, _bug(error)))
            return
        self._send(HTTPStatus.OK, "text/html; charset=utf-8", content, rules)

    def do_POST(self) -> None:
        """A question of the page."""
        try:
            what = self._asked()
            if not self.server.workbench.knows(what):
                raise _Refused(HTTPStatus.NOT_FOUND, "there is no such question.")
            body = self._body()
        except _Refused as refused:
            self._refuse(refused)
            return
        name = unquote(self.headers.get("X-File-Name", ""))
        status = HTTPStatus.OK
        try:
            answer = self.server.workbench.answer(what, body, name)
        except Exception as error:
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            answer = {"ok": False, "message": _bug(error)}
        self._send(status, "application/json", json.dumps(answer).encode(), "")

    def _asked(self) -> str:
        """The part of the address after the token, if the request may be answered."""
        if self.headers.get("Host", "") not in self.server.hosts:
            raise _Refused(HTTPStatus.FORBIDDEN, "this host name is not served.")
        origin = self.headers.get("Origin")
        if origin is not None and origin.removeprefix("http://") not in self.server.hosts:
            raise _Refused(HTTPStatus.FORBIDDEN, "other origins are not served.")
        if self.headers.get("Sec-Fetch-Site") not in (None, "same-origin", "none"):
            raise _Refused(HTTPStatus.FORBIDDEN, "other sites are not served.")
        _, token, *rest = [*self.path.split("/"), ""][: 2**10]
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            raise _Refused(
                HTTPStatus.FORBIDDEN, "the address must hold the token that weitzman printed."
            )
        return "/".join(rest).rstrip("/")

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "a length is needed.")
        if int(length) > _MOST:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "that is too much.")
        return self.rfile.read(int(length))

    def _refuse(self, refused: _Refused) -> None:
        self.close_connection = True  # what follows may be a body that nobody reads
        self._send(refused.status, "text/plain; charset=utf-8", f"{refused}\n".encode(), "")

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
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing is written for each request."""
