"""A wall clock that a test can step, for real processes: a small library that is loaded first."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Seconds to add to a clock, read anew at each call. No other clock is touched. */
static long offset(const char *variable) {
    char text[32] = {0};
    const char *path = getenv(variable);
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return 0;
    if (read(file, text, sizeof text - 1) < 0) text[0] = 0;
    close(file);
    return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += offset("STEPPED_CLOCK");
    if (!failed && clock == CLOCK_BOOTTIME)
        now->tv_sec += offset("SLEPT");
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    int failed = clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *there) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (there) *there = now.tv_sec;
    return now.tv_sec;
}
"""


class Shim(NamedTuple):
    """The environment in which a process has a clock that can be stepped, and by how much.

    `slept`: how long the machine was asleep, which the clock since boot counts.
    """

    environment: dict[str, str]
    offset: Path
    slept: Path


def shim(folder: Path) -> Shim | None:
    """Compiled here; None where there is no C compiler, or where nothing can be loaded first."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not os.path.exists("/proc/self/exe"):
        return None
    source, library = folder / "clock.c", folder / "clock.so"
    offset, slept = folder / "offset", folder / "slept"
    source.write_text(SOURCE)
    build = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    if subprocess.run(build, capture_output=True, check=False).returncode:
        return None
    for file in (offset, slept):
        step(file, 0)
    loaded = {"LD_PRELOAD": str(library), "STEPPED_CLOCK": str(offset), "SLEPT": str(slept)}
    return Shim(loaded, offset, slept)


def step(offset: Path, seconds: int) -> None:
    """From now on the clock is so far from the true one. At once, never half."""
    fresh = offset.with_suffix(".new")
    fresh.write_text(str(seconds))
    fresh.rename(offset)
