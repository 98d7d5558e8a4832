"""Runs every measurement and writes `RESULTS.md`, with the machine and the spread. `--quick`: a look."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import apsw
import cycles
import files
import graphs
import guards
import hooks
import peer
import postgres
import scopes
import size
import start
import timesheet
import writers
from measure import Report, scratch, show

import intake
from dibs import __version__
from dibs.machine import this_machine

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"

FULL = (
    start.measure,
    guards.measure,
    hooks.measure,
    cycles.measure,
    size.measure,
    graphs.measure,
    scopes.measure,
    timesheet.measure,
    files.measure,
    intake.measure,
    writers.measure,
    peer.measure,
    postgres.measure,
)
QUICK = (
    lambda: start.measure(10, 1),
    lambda: guards.measure(5, repeats=1),
    lambda: hooks.measure(10, 1),
    lambda: cycles.measure(5),
    lambda: size.measure((1_000, 100_000), 3),
    lambda: graphs.measure((1_000, 100_000), 3),
    lambda: scopes.measure(200, 5, 1),
    lambda: timesheet.measure(100_000, 2),
    lambda: files.measure(1_000, 5_000, 2),
    lambda: intake.measure(5_000, 200, 1),
    lambda: writers.measure((2, 8), 2.0, 1),
    lambda: peer.measure(4),
    lambda: postgres.measure((1, 8), 0.5, 1),
)

HEAD = """\
# Results of `make bench`

Written by `bench/run.py`; not edited. Each ratio is of things measured in the same run, in turns, on
the same disk. Best-of or minima count, because other work on the machine only adds; the spread is
that of the repeats: lowest / median / highest.
"""


def main() -> None:
    quick = "--quick" in sys.argv[1:]
    about = machine()
    reports = []
    for measure in QUICK if quick else FULL:
        report = measure()
        show(report)
        reports.append(report)
    if quick:
        print("a quick look: RESULTS.md is left as it is")
        return
    RESULTS.write_text(page(about, reports), encoding="utf-8")
    short = [figure.name for report in reports for figure in report.figures if figure.met is False]
    print(
        f"{RESULTS} is written; {'falls short: ' + '; '.join(short) if short else 'all goals met'}"
    )


def machine() -> dict[str, str]:
    """What the figures were taken on, and how busy it was with other things."""
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "dibs": f"{__version__}, commit {commit()}",
        "processor": f"{os.cpu_count()} cores, {processor()}",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "SQLite": f"{apsw.sqlite_lib_version()} (apsw {apsw.apsw_version()})",
        "file system": this_machine().file_system(str(HERE)) or "unknown",
        "sync of 4 KiB": sync(),
        "load when begun": " ".join(f"{load:.2f}" for load in os.getloadavg()),
    }


def commit() -> str:
    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=HERE, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    changed = " and changes" if git("status", "--porcelain", "--", "../src") else ""
    return (git("rev-parse", "--short", "HEAD") or "unknown") + changed


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def sync() -> str:
    """What the disk's part of a commit costs: blocks that are there already, written and synced."""
    times = []
    with scratch() as folder:
        descriptor = os.open(f"{folder}/sync", os.O_RDWR | os.O_CREAT)
        os.pwrite(descriptor, bytes(2**20), 0)
        os.fsync(descriptor)
        for turn in range(200):
            os.pwrite(descriptor, bytes([turn % 256]) * 4096, turn * 4096)
            began = time.perf_counter()
            getattr(os, "fdatasync", os.fsync)(descriptor)
            times.append(time.perf_counter() - began)
        os.close(descriptor)
    low, high = min(times) * 1000, sorted(times)[-2] * 1000
    return f"{low:.2f} / {statistics.median(times) * 1000:.2f} / {high:.2f} ms"


def page(about: dict[str, str], reports: list[Report]) -> str:
    figures = [figure for report in reports for figure in report.figures]
    rows = [f"| {figure.name} | {figure.value} | {figure.goal} | {figure.verdict} | {figure.spread} |" for figure in figures]  # fmt: skip
    parts = [
        HEAD,
        "## The machine\n",
        "\n".join(f"- {name}: {value}" for name, value in about.items()) + "\n",
        "## The figures\n",
        "| figure | value | goal | | spread |\n|---|---|---|---|---|\n" + "\n".join(rows) + "\n",
    ]
    for report in reports:
        text = "\n".join(line.rstrip() for line in report.lines)
        parts.append(f"## {report.title}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    main()
