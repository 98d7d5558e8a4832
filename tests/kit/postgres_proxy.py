"""A proxy in front of a PostgreSQL server: it counts round trips, and cuts at a chosen moment."""

from __future__ import annotations

import re
import socket
import struct
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from kit.postgres_ground import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMIT = r"COMMIT\b|END\b"

BEFORE = "before"
"""The server never hears of it."""

DURING = "during"
"""The server has been told; whether it did it, nobody knows."""

AFTER = "after"
"""The server has done it, and its answer is lost."""

ENCRYPTION_REQUESTS = (80877103, 80877104)
CANCEL_REQUEST = 80877102
RESET = struct.pack("ii", 1, 0)
"""A connection that lingers for no time is reset when it is closed."""


class Message(NamedTuple):
    kind: bytes
    body: bytes


class Trap(NamedTuple):
    pattern: str
    when: str


class Proxy:
    """Passes everything on to the server at `target` (the path of a socket), until told otherwise."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", free_port()))
        self.port: int = self.listener.getsockname()[1]
        self.lock = threading.RLock()
        self.lines: set[Line] = set()
        self.accepts = True
        self.flows = threading.Event()
        self.flows.set()
        self.trap: Trap | None = None
        self.sprung = threading.Event()
        self.reset()
        threading.Thread(target=self.listen, daemon=True).start()

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def reset(self) -> None:
        """Counts anew."""
        self.connections = 0
        self.round_trips = 0
        """How often a client sent something and had to wait for the answer."""
        self.statements: list[str] = []
        """What was executed, in this order."""

    def cut_at(self, when: str, pattern: str = COMMIT) -> None:
        """Cuts every connection, once: when a statement comes that begins with `pattern`."""
        self.sprung.clear()
        self.trap = Trap(pattern, when)

    def cut(self) -> None:
        """Cuts every connection, now."""
        with self.lock:
            for line in [*self.lines]:
                line.close()

    def refuse(self) -> None:
        """Cuts every connection, and lets no new one through: the network is gone."""
        self.accepts = False
        self.cut()

    def accept(self) -> None:
        self.accepts = True

    def freeze(self) -> None:
        """Nothing passes, and nobody is told."""
        self.flows.clear()

    def thaw(self) -> None:
        self.flows.set()

    def close(self) -> None:
        self.refuse()
        self.thaw()
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def listen(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.connect(client)

    def connect(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        try:
            assert self.accepts
            server.connect(self.target)
        except (AssertionError, OSError):
            hang_up(client, server)
            return
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line = Line(self, client, server)
        with self.lock:
            self.lines.add(line)
            self.connections += 1
        for pump in (line.from_client, line.from_server):
            threading.Thread(target=line.run, args=(pump,), daemon=True).start()

    def count(self, statements: list[str], *, waits: bool) -> None:
        with self.lock:
            self.statements += statements
            self.round_trips += waits

    def springs(self, statements: list[str]) -> str | None:
        """When to cut, if one of the statements is the one that is waited for."""
        with self.lock:
            trap = self.trap
            if trap and any(
                re.match(trap.pattern, text.strip(), re.IGNORECASE) for text in statements
            ):
                self.trap = None
                return trap.when
            return None

    def spring(self) -> None:
        self.cut()
        self.sprung.set()


class Line:
    """One connection of one client."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self.proxy, self.client, self.server = proxy, client, server
        self.prepared: dict[bytes, str] = {}
        self.queries, self.answered = 1, 0
        """Requests that are answered by "ready"; the first one is the start-up."""
        self.unasked = False
        """Requests were sent whose answers were not yet asked for."""
        self.holds = False

    def run(self, pump: object) -> None:
        assert callable(pump)
        with suppress(OSError):
            pump()
        self.close()

    def close(self) -> None:
        with self.proxy.lock:
            self.proxy.lines.discard(self)
        hang_up(self.client, self.server)

    def from_client(self) -> None:
        self.server.sendall(self.greeting())
        for raw, messages in batches(self.client):
            queries = sum(message.kind in b"QS" for message in messages)
            statements = [*self.statements(messages)]
            self.proxy.count(statements, waits=self.waits(messages))
            self.proxy.flows.wait()
            when = self.proxy.springs(statements)
            if when == BEFORE:
                self.proxy.spring()
                return
            self.queries += queries
            self.holds = self.holds or when == AFTER
            self.server.sendall(raw)
            if when == DURING:
                self.proxy.spring()
                return

    def from_server(self) -> None:
        for raw, messages in batches(self.server):
            self.answered += sum(message.kind == b"Z" for message in messages)
            self.proxy.flows.wait()
            if not self.holds:
                self.client.sendall(raw)
            elif self.answered == self.queries:
                self.proxy.spring()
                return

    def greeting(self) -> bytes:
        """The first message of a client; encryption is declined in the name of the server."""
        while True:
            head = exactly(self.client, 8)
            length, code = struct.unpack("!ii", head)
            if code not in ENCRYPTION_REQUESTS:
                return head + exactly(self.client, length - 8)
            self.client.sendall(b"N")

    def waits(self, messages: list[Message]) -> bool:
        """Whether the client wants an answer now: to a query, to a sync, or to what it flushes."""
        wants = False
        for kind, _ in messages:
            wants = wants or kind in b"QS" or (kind == b"H" and self.unasked)
            self.unasked = kind not in b"QSH"
        return wants

    def statements(self, messages: list[Message]) -> Iterator[str]:
        """The text of everything that the messages execute."""
        for kind, body in messages:
            if kind == b"Q":
                yield body[:-1].decode()
            elif kind == b"P":
                name, text, _ = body.split(b"\0", 2)
                self.prepared[name] = text.decode()
            elif kind == b"B":
                name = body.split(b"\0", 2)[1]
                yield self.prepared[name]


def batches(end: socket.socket) -> Iterator[tuple[bytes, list[Message]]]:
    """What arrives together, in whole messages: the bytes, and the messages in them."""
    rest = b""
    while chunk := end.recv(1 << 16):
        rest += chunk
        messages, start = [], 0
        while len(rest) >= start + 5:
            stop = start + 1 + int.from_bytes(rest[start + 1 : start + 5], "big")
            if len(rest) < stop:
                break
            messages.append(Message(rest[start : start + 1], rest[start + 5 : stop]))
            start = stop
        if messages:
            yield rest[:start], messages
        rest = rest[start:]


def exactly(end: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = end.recv(size - len(data))
        if not part:
            raise ConnectionError("the client has gone")
        data += part
    return data


def hang_up(client: socket.socket, server: socket.socket) -> None:
    """The client finds its connection reset; the server sees a client that has gone."""
    with suppress(OSError):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    for end in (client, server):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
