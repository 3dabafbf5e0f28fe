"""Serves the page of the demo to browsers on this machine: only on loopback, and only reading.

A browser that names another host is refused: so no page of elsewhere reads this one through a name of its own.
"""

import importlib.util
import json
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from ottla.pipelines.frame.telling import PipelineError

USUAL_PORT: Final = 8090
_PAGE: Final = Path(__file__).with_name("page.html")
_LIBRARY: Final = "package_data/plotly.min.js"
_OWN_NAMES: Final = {"localhost", "127.0.0.1"}


class PlotlyMissing(PipelineError):
    """What draws the charts is not installed."""

    def __init__(self) -> None:
        super().__init__('the page draws with Plotly, which is not installed: pip install "ottla[page]"')


def library() -> Path | None:
    """What draws, as it comes with the package `plotly`; None where that is not installed, or not yet."""
    found = importlib.util.find_spec("plotly")
    path = None if found is None or found.origin is None else Path(found.origin).parent / _LIBRARY
    return path if path is not None and path.exists() else None


def require_library() -> None:
    """Raises PlotlyMissing."""
    if library() is None:
        raise PlotlyMissing


class PageServer:
    """At `url` while the block lasts. `show` takes what is to be seen from now on."""

    def __init__(self, port: int | None = None) -> None:
        """Without a port it is the usual one, or any that is free."""
        self._data = b"{}"
        self._server = _bound(USUAL_PORT if port is None else port, is_any=port is None)
        self._server.page = self
        self._thread = threading.Thread(target=self._server.serve_forever, name="page", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://localhost:{self._server.server_address[1]}"

    @property
    def data(self) -> bytes:
        return self._data

    def show(self, snapshot: dict[str, Any]) -> None:
        self._data = json.dumps(snapshot, separators=(",", ":")).encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    page: PageServer


class _Request(BaseHTTPRequestHandler):
    server: _Server
    # A connection that says nothing is closed.
    timeout = 30.0

    def do_GET(self) -> None:
        """Asked by `BaseHTTPRequestHandler`, which wants this name."""
        if self.headers.get("Host", "").rpartition(":")[0] not in _OWN_NAMES:
            self.send_error(HTTPStatus.FORBIDDEN, "this page is for browsers on its own machine")
            return
        path = self.path.partition("?")[0]
        if path == "/":
            self._answer("text/html; charset=utf-8", _PAGE.read_bytes())
        elif path == "/data":
            self._answer("application/json", self.server.page.data)
        elif path == "/plotly.js":
            found = library()
            if found is None:
                self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, "Plotly is not installed yet")
            else:
                self._answer("text/javascript; charset=utf-8", found.read_bytes(), "max-age=3600")
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _answer(self, kind: str, content: bytes, cache: str = "no-store") -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", cache)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Requests are not logged: there is one every two seconds."""


def _bound(port: int, *, is_any: bool) -> _Server:
    try:
        return _Server(("127.0.0.1", port), _Request)
    except OSError:
        if not is_any:
            raise
        return _Server(("127.0.0.1", 0), _Request)
