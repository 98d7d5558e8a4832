"""A server on loopback that nobody should connect to: it counts who does."""

from __future__ import annotations

import contextlib
import socket
import threading


class Listener:
    """`with Listener() as server`: accepts every connection, and remembers the first bytes of each."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.connections: list[bytes] = []
        self._thread = threading.Thread(target=self._listen, daemon=True)

    @property
    def address(self) -> str:
        return f"postgresql://ana@127.0.0.1:{self.port}/team#web"

    def __enter__(self) -> Listener:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)

    def _listen(self) -> None:
        while True:
            try:
                line, _ = self._socket.accept()
            except OSError:
                return
            with line:
                line.settimeout(3)
                self.connections.append(b"")
                with contextlib.suppress(OSError):
                    self.connections[-1] = self._talk(line)

    def _talk(self, line: socket.socket) -> bytes:
        return line.recv(64)


class AsksForPassword(Listener):
    """A server that speaks just enough to ask for a password in the clear; what it gets is kept."""

    SSL, GSS = 80877103, 80877104

    def _talk(self, line: socket.socket) -> bytes:
        while True:
            length = int.from_bytes(line.recv(4))
            rest = line.recv(length - 4)
            if int.from_bytes(rest[:4]) not in (self.SSL, self.GSS):
                break
            line.sendall(b"N")
        line.sendall(b"R" + (8).to_bytes(4) + (3).to_bytes(4))
        return line.recv(200)
