"""A progress bar on stderr."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

BAR = 30


def bar(what: str, at_least: int = 0) -> Callable[[int, int], None] | None:
    """A function that draws the bar if the total is at least `at_least`; `None` without a terminal."""
    stream = sys.stderr
    if stream is None or not stream.isatty():
        return None

    def show(done: int, total: int) -> None:
        if total < at_least:
            return
        filled = BAR * done // max(1, total)
        stream.write(f"\r[{'#' * filled}{'.' * (BAR - filled)}] {done} of {total} {what}")
        stream.flush()
        if done >= total:
            stream.write("\r\033[K")

    return show
