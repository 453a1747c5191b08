"""A connection with time and size limits for headers, for the rest of a refused body and for slow clients.

The app limits bodies and their time. Only the connection sees what happens before the headers are complete and after
the answer is written.

Guarantee: against clients that send nothing, half a request, endless headers or the rest of a refused body. The server
    disconnects them after 10 seconds, 64 KiB of headers or 8 MiB of such a rest. It also disconnects clients that read
    less than 64 KiB of a waiting answer in 15 seconds.
Not covered: as many connections as the server accepts, each just fast enough; an unfinished TLS handshake, which ends
    after a minute. A proxy that limits connections per address covers both.
Cost: one timer per connection, and another one while an answer waits for its client.
"""

from __future__ import annotations

import asyncio
from asyncio import TimerHandle

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MAX_HEADERS = 64 << 10
_MAX_UNREAD = 8 << 20
_MIN_PROGRESS = 64 << 10


class Connection(HttpToolsProtocol):
    """uvicorn's protocol with time and size limits."""

    header_timeout = 10.0
    """Seconds that a client may take to send the headers, or the rest of a body after its answer."""
    read_timeout = 15.0
    """Seconds in which a client must read 64 KiB of a waiting answer."""
    _timer: TimerHandle | None = None
    _stall_timer: TimerHandle | None = None
    _byte_count = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer before the first byte."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel all timers."""
        self._cancel_timer()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Start the timer for bytes outside a request, and limit their number."""
        if self._timer is None and (self.cycle is None or self.cycle.response_complete):
            self._start_timer()
        super().data_received(data)
        if self._timer is not None:
            self._byte_count += len(data)
            rest = self.cycle is not None and self.cycle.more_body
            if self._byte_count > (_MAX_UNREAD if rest else _MAX_HEADERS):
                self._abort()

    def on_headers_complete(self) -> None:
        """Cancel the timer: from here on the app limits the request."""
        self._cancel_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Cancel the timer: the body is complete."""
        late = self._timer is not None
        self._cancel_timer()
        super().on_message_complete()
        if self.cycle is not None and self.cycle.response_complete:
            self.cycle.more_body = False
        if late and self.timeout_keep_alive_task is None and not self.transport.is_closing():
            wait = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)
            self.timeout_keep_alive_task = wait

    def on_response_complete(self) -> None:
        """Start the timer if the client has not sent its whole body yet."""
        super().on_response_complete()
        unread = self.cycle is not None and self.cycle.response_complete and self.cycle.more_body
        if unread and self._timer is None:
            self._start_timer()

    def timeout_keep_alive_handler(self) -> None:
        """Disconnect an idle client, with anything it has not read."""
        self.transport.abort()

    def pause_writing(self) -> None:
        """Start to measure how fast the client reads."""
        super().pause_writing()
        self._start_stall_timer(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Stop measuring: the client has caught up."""
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
        if self.flow is not None:
            super().resume_writing()

    def _start_stall_timer(self, waiting: int) -> None:
        self._stall_timer = self.loop.call_later(self.read_timeout, self._check_progress, waiting)

    def _check_progress(self, before: int) -> None:
        waiting = self.transport.get_write_buffer_size()
        if waiting > before - _MIN_PROGRESS:
            self._abort()
        else:
            self._start_stall_timer(waiting)

    def _start_timer(self) -> None:
        self._byte_count = 0
        self._timer = self.loop.call_later(self.header_timeout, self._abort)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()
