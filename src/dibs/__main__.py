"""The way in from the shell: `dibs`, or `python -m dibs`."""

from __future__ import annotations

import gc
import os
import sys

# A command ends before there is anything to collect, and its process with it.
gc.disable()

from dibs.interfaces.cli.main import main  # noqa: E402 - after the line above


def start() -> None:
    """Runs one command, and leaves without taking the interpreter apart piece by piece."""
    code = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            code = code or 1
    os._exit(code)


if __name__ == "__main__":
    start()
