"""The process that forks: it has loaded everything, and opens nothing. See `forked`.

It is a program of its own, and knows nothing of the tests.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
import time
from pathlib import Path

DIBS = str(Path(sys.executable).parent / "dibs")

USUAL = (
    "argparse", "apsw", "csv", "datetime", "difflib", "fnmatch", "getpass", "glob", "hashlib", "hmac",
    "http.client", "io", "json", "psycopg", "psycopg_pool", "queue", "random", "re", "secrets",
    "select", "shlex", "shutil", "socket", "string", "subprocess", "tempfile", "textwrap",
    "threading", "tomllib", "traceback", "unicodedata", "urllib.parse", "uuid", "zoneinfo",
)  # fmt: skip
"""What the verbs load when they need it."""


def serve(address: str) -> None:
    """Forks for whoever calls, tells each its child's pid and how it ended; ends with its input."""
    load()
    reading, wake = os.pipe()
    for end in (reading, wake):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    door = socket.socket(socket.AF_UNIX)
    door.bind(address)
    door.listen(64)
    (Path(address).parent / "ready").touch()
    callers: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as waiting:
        for file in (0, door.fileno(), reading):
            waiting.register(file, selectors.EVENT_READ)
        while True:
            ready = {key.fd for key, _ in waiting.select()}
            if door.fileno() in ready:
                begin(door, callers)
            if reading in ready:
                os.read(reading, 1 << 16)
                tell_ends(callers)
            if 0 in ready:
                return


def begin(door: socket.socket, callers: dict[int, socket.socket]) -> None:
    line, _ = door.accept()
    _, files, _, _ = socket.recv_fds(line, 1, 3)
    parts = []
    while part := line.recv(1 << 16):
        parts.append(part)
    pid = os.fork()
    if pid == 0:
        be_dibs(json.loads(b"".join(parts)), files)
    for file in files:
        os.close(file)
    callers[pid] = line
    line.sendall(f"{pid}\n".encode())


def tell_ends(callers: dict[int, socket.socket]) -> None:
    while callers:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with callers.pop(pid) as line, contextlib.suppress(OSError):  # it may have gone
            line.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def be_dibs(orders: dict, files: list[int]) -> None:
    """Never returns."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.closerange(3, 256)
        os.chdir(orders["folder"])
        os.environ.clear()
        os.environ.update(orders["environment"])
        time.tzset()
        sys.argv = [DIBS, *orders["words"]]
        sys.stdin, sys.stdout, sys.stderr = map(anew, (sys.stdin, sys.stdout, sys.stderr))
        from dibs.__main__ import start

        if orders["stands_still"]:
            stand_still()
        start()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def stand_still() -> None:
    """Until somebody says otherwise; anybody of this account may trace it."""
    import ctypes

    anybody = ctypes.c_ulong(-1)
    ctypes.CDLL(None).prctl(0x59616D61, anybody)  # PR_SET_PTRACER
    os.kill(os.getpid(), signal.SIGSTOP)


def anew(stream):
    """What the interpreter found out about the file when it started is not true of the new one."""
    how = {"encoding": stream.encoding, "errors": stream.errors, "closefd": False}
    return open(stream.fileno(), stream.mode, **how)


def load() -> None:
    """Everything that a command may need."""
    import importlib
    import pkgutil

    import dibs

    sys.path[0] = str(Path(DIBS).parent)
    for name in USUAL:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(dibs.__path__, "dibs."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    import gc

    import dibs.__main__

    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    serve(sys.argv[1])
