"""The entry point of the command line: `dibs`, or `python -m dibs`."""

from __future__ import annotations

import gc
import os
import sys

# A command is short: its process exits before garbage collection would pay off.
gc.disable()

from dibs.cli.main import main  # noqa: E402 - after gc.disable()


def start() -> None:
    """Runs one command and exits without the cost of interpreter shutdown."""
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
