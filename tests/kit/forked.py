"""`dibs` as a process of its own, without the price of a start.

Most of what a short command costs is the start of Python and of a database's driver. So one process
loads everything, opens nothing, and forks for each command: a process with its own pid, folder,
environment and files, which ends as `dibs` does.

What belongs to a start is not tested by this: which modules are loaded, what Python itself reads in
the environment, what others read in `/proc` of it. `Repo.start` starts the program.
"""

from __future__ import annotations

import functools
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DIBS = str(Path(sys.executable).parent / "dibs")

PATIENCE = 60
"""Seconds: longer than any command takes."""

AT_START = ("PYTHON", "LC_", "LANG", "LD_", "DYLD_")
"""What an interpreter reads when it starts, and never again."""

STARTS_OTHERS = ("run", "dispatch", "demo")
"""Verbs whose processes are told apart by what `/proc` says of them."""

USUAL = (
    "argparse", "apsw", "csv", "datetime", "difflib", "fnmatch", "getpass", "glob", "hashlib", "hmac",
    "http.client", "io", "json", "psycopg", "psycopg_pool", "queue", "random", "re", "secrets",
    "select", "shlex", "shutil", "socket", "string", "subprocess", "tempfile", "textwrap",
    "threading", "tomllib", "traceback", "unicodedata", "urllib.parse", "uuid", "zoneinfo",
)  # fmt: skip
"""What the verbs load when they need it."""


# The client, in a test.


def can_be_forked(words: list[str], environment: dict[str, str]) -> bool:
    """Whether a forked process is as good as one that is started."""
    return not set(STARTS_OTHERS) & {*words} and at_start(environment) == at_start(os.environ)


def at_start(environment) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(AT_START)}


def run(
    words: list[str], folder: Path, environment: dict[str, str], fed: str = ""
) -> tuple[int, str, str]:
    """The exit code of a command that has ended, or the signal that ended it, and what it said."""
    orders = {"words": words, "folder": str(folder), "environment": environment}
    with (
        fed_from(fed) as given,
        socket.socket(socket.AF_UNIX) as line,
        Heard() as out,
        Heard() as err,
    ):
        line.connect(parent())
        socket.send_fds(line, [b"+"], [given.fileno(), out.write, err.write])
        line.sendall(json.dumps(orders).encode())
        line.shutdown(socket.SHUT_WR)
        code = listen(line, out, err)
        return code, out.text(), err.text()


def fed_from(text: str):
    """A file to read the text from."""
    if not text:
        return open(os.devnull, "rb")
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(text.encode())
    file.seek(0)
    return file


class Heard:
    """One end of a pipe for the process, and what came out of the other."""

    def __init__(self) -> None:
        self.read, self.write = os.pipe()
        self.said: list[bytes] = []

    def __enter__(self) -> Heard:
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up()
        os.close(self.read)

    def hang_up(self) -> None:
        """Only the process writes from now on."""
        if self.write >= 0:
            os.close(self.write)
        self.write = -1

    def text(self) -> str:
        return b"".join(self.said).decode().replace("\r\n", "\n").replace("\r", "\n")


def listen(line: socket.socket, out: Heard, err: Heard) -> int:
    """Reads until nobody says anything any more, and the process has ended."""
    deadline = time.monotonic() + PATIENCE
    told: list[bytes] = []
    out.hang_up()
    err.hang_up()
    with selectors.DefaultSelector() as waiting:
        for file, heard in ((line.fileno(), told), (out.read, out.said), (err.read, err.said)):
            waiting.register(file, selectors.EVENT_READ, heard)
        while waiting.get_map():
            if time.monotonic() > deadline:
                os.kill(int(b"".join(told).split()[0]), signal.SIGKILL)
                raise TimeoutError(f"not within {PATIENCE} s")
            for key, _ in waiting.select(1):
                data = os.read(key.fd, 1 << 16)
                key.data.append(data)
                if not data:
                    waiting.unregister(key.fd)
    _, status = b"".join(told).split()
    return int(status)


@functools.cache
def parent() -> str:
    """Where the process listens that forks; it ends with this one."""
    from kit.postgres_ground import at_end, until
    from kit.repositories import clean_environment

    folder = Path(tempfile.mkdtemp(prefix="dibs-fork-"))
    address = str(folder / "s")
    process = subprocess.Popen(
        [sys.executable, __file__, address], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        env=clean_environment(), cwd="/",
    )  # fmt: skip

    def end() -> None:
        process.stdin.close()
        process.wait(PATIENCE)
        shutil.rmtree(folder)

    at_end(end)
    until(lambda: process.poll() is None and (folder / "ready").exists(), "a process that forks")
    return address


# The process that forks.


def serve(address: str) -> None:
    """Forks for whoever calls, tells each its child's pid and how it ended; ends with its input."""
    load()
    heard, wake = os.pipe()
    for end in (heard, wake):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    door = socket.socket(socket.AF_UNIX)
    door.bind(address)
    door.listen(64)
    (Path(address).parent / "ready").touch()
    callers: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as waiting:
        for file in (0, door.fileno(), heard):
            waiting.register(file, selectors.EVENT_READ)
        while True:
            ready = {key.fd for key, _ in waiting.select()}
            if door.fileno() in ready:
                begin(door, callers)
            if heard in ready:
                os.read(heard, 1 << 16)
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
    line.sendall(f"{pid} ".encode())


def tell_ends(callers: dict[int, socket.socket]) -> None:
    while callers:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with callers.pop(pid) as line:
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
