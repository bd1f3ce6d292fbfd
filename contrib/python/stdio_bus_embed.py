"""The bus of libstdio_bus in a Python program: ctypes alone, one file, to be copied.

    import asyncio, stdio_bus_embed

    async def main():
        config = {"pools": [{"id": "echo", "command": "./echo_worker.py"}]}
        async with stdio_bus_embed.Bus(config) as bus:
            print(await bus.request("echo", {"n": 1}))

    asyncio.run(main())

The library is that of the environment variable STDIO_BUS_LIBRARY, or libstdio_bus.so.0.
libstdio_bus(3) describes what the functions do.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
from typing import Any, Callable, Dict, Optional, Union

OK, EAGAIN, EFULL = 0, -2, -4
ERR_STATE = -15
STATES = ("created", "starting", "running", "stopping", "stopped")
RETRY_SECONDS = 0.05

_message_cb = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t, ctypes.c_void_p
)
_text_cb = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p
)


class _Listener(ctypes.Structure):
    _fields_ = [
        ("mode", ctypes.c_int),
        ("tcp_host", ctypes.c_char_p),
        ("tcp_port", ctypes.c_uint16),
        ("unix_path", ctypes.c_char_p),
    ]


class _Options(ctypes.Structure):
    _fields_ = [
        ("config_path", ctypes.c_char_p),
        ("config_json", ctypes.c_char_p),
        ("listener", _Listener),
        ("on_message", _message_cb),
        ("on_error", _text_cb),
        ("on_log", _text_cb),
        ("on_worker", _text_cb),
        ("on_client_connect", _text_cb),
        ("on_client_disconnect", _text_cb),
        ("user_data", ctypes.c_void_p),
        ("log_level", ctypes.c_int),
    ]


class Stats(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "messages_in",
            "messages_out",
            "bytes_in",
            "bytes_out",
            "worker_restarts",
            "routing_errors",
            "client_connects",
            "client_disconnects",
        )
    ]


class BusError(Exception):
    """A code of stdio_bus_embed.h that is no success."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{text} ({code})")
        self.code = code


class RequestError(Exception):
    """The error that a request was answered with."""

    def __init__(self, error: Dict[str, Any]) -> None:
        super().__init__(error.get("message", "error"))
        self.code = error.get("code")
        self.data = error.get("data")


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(os.environ.get("STDIO_BUS_LIBRARY", "libstdio_bus.so.0"))
    pointer, number = ctypes.c_void_p, ctypes.c_int
    library.stdio_bus_create.restype = pointer
    library.stdio_bus_create.argtypes = [ctypes.POINTER(_Options)]
    library.stdio_bus_destroy.restype = None
    library.stdio_bus_destroy.argtypes = [pointer]
    library.stdio_bus_ingest.argtypes = [pointer, ctypes.c_char_p, ctypes.c_size_t]
    for name in ("start", "get_state", "worker_count", "session_count", "pending_count",
                 "client_count", "get_poll_fd"):
        getattr(library, "stdio_bus_" + name).argtypes = [pointer]
    for name in ("step", "stop"):
        getattr(library, "stdio_bus_" + name).argtypes = [pointer, number]
    library.stdio_bus_get_stats.restype = None
    library.stdio_bus_get_stats.argtypes = [pointer, ctypes.POINTER(Stats)]
    return library


class Bus:
    """A bus in the running loop of asyncio. `on_message` gets what answers no request of `request`,
    parsed; `on_worker` a worker's number and event; `on_log` a level and a line."""

    def __init__(
        self,
        config: Union[str, Dict[str, Any]],
        on_message: Optional[Callable[[Any], None]] = None,
        on_worker: Optional[Callable[[int, str], None]] = None,
        on_log: Optional[Callable[[int, str], None]] = None,
        log_level: int = 2,
    ) -> None:
        self._library = _load()
        self._errors: list[str] = []
        self._pending: Dict[int, asyncio.Future[Any]] = {}
        self._last_id = 0
        self._stopped: Optional[asyncio.Future[None]] = None
        self._options = _Options()
        text = config if isinstance(config, str) else json.dumps(config)
        self._options.config_json = text.encode()
        self._options.on_message = _message_cb(
            lambda _bus, data, size, _user: self._got(ctypes.string_at(data, size))
        )
        self._options.on_error = _text_cb(
            lambda _bus, code, message, _user: self._errors.append(message.decode())
        )
        if on_worker is not None:
            self._options.on_worker = _text_cb(
                lambda _bus, number, event, _user: on_worker(number, event.decode())
            )
        if on_log is not None:
            self._options.on_log = _text_cb(
                lambda _bus, level, line, _user: on_log(level, line.decode(errors="replace"))
            )
        self._options.log_level = log_level
        self._on_message = on_message
        self._bus = self._library.stdio_bus_create(ctypes.byref(self._options))
        if not self._bus:
            raise BusError(-10, "; ".join(self._errors) or "no bus")
        self._fd = -1

    # --- from start to stop ---

    def start(self) -> None:
        code = self._library.stdio_bus_start(self._bus)
        if code != OK:
            raise BusError(code, "; ".join(self._errors) or "cannot start")
        self._fd = self._library.stdio_bus_get_poll_fd(self._bus)
        if self._fd < 0:
            raise BusError(-1, "this system has no descriptor to wait for")
        asyncio.get_running_loop().add_reader(self._fd, self._step)

    async def stop(self, timeout_seconds: int = -1) -> None:
        """Ends the workers. Requests in flight get their answers, or errors."""
        if self._fd >= 0:
            loop = asyncio.get_running_loop()
            self._stopped = loop.create_future()
            self._library.stdio_bus_stop(self._bus, timeout_seconds)
            loop.call_soon(self._step)
            await self._stopped
        self._library.stdio_bus_destroy(self._bus)
        self._bus = None

    async def __aenter__(self) -> "Bus":
        self.start()
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.stop()

    # --- messages ---

    def ingest(self, message: bytes) -> int:
        """Offers a message. Returns a code: EFULL and EAGAIN are to be tried again."""
        return self._library.stdio_bus_ingest(self._bus, message, len(message))

    async def send(self, message: Dict[str, Any]) -> None:
        """Sends a message as soon as a worker takes it."""
        data = json.dumps(message).encode()
        while (code := self.ingest(data)) in (EFULL, EAGAIN):
            await asyncio.sleep(RETRY_SECONDS)
        if code != OK:
            raise BusError(code, "the message was refused")

    async def request(self, method: str, params: Any = None, **members: Any) -> Any:
        """The result of a request; sessionId="..." and pool="..." are members of it."""
        self._last_id = number = self._last_id + 1
        future = asyncio.get_running_loop().create_future()
        self._pending[number] = future
        message = {"jsonrpc": "2.0", "id": number, "method": method, **members}
        if params is not None:
            message["params"] = params
        try:
            await self.send(message)
            return await future
        finally:
            self._pending.pop(number, None)

    @property
    def state(self) -> str:
        return STATES[self._library.stdio_bus_get_state(self._bus)]

    @property
    def workers(self) -> int:
        return self._library.stdio_bus_worker_count(self._bus)

    @property
    def stats(self) -> Stats:
        stats = Stats()
        self._library.stdio_bus_get_stats(self._bus, ctypes.byref(stats))
        return stats

    # --- the loop ---

    def _step(self) -> None:
        self._library.stdio_bus_step(self._bus, 0)
        if self.state != "stopped" or self._fd < 0:
            return
        asyncio.get_running_loop().remove_reader(self._fd)
        self._fd = -1
        if self._stopped is not None and not self._stopped.done():
            self._stopped.set_result(None)

    def _got(self, data: bytes) -> None:
        message = json.loads(data)
        answers = "method" not in message and isinstance(message.get("id"), int)
        future = self._pending.get(message["id"]) if answers else None
        if future is None or future.done():
            if self._on_message is not None:
                self._on_message(message)
        elif "error" in message:
            future.set_exception(RequestError(message["error"]))
        else:
            future.set_result(message.get("result"))
