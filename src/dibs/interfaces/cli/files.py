"""The verbs about files: sync, import, export, shellenv."""

from __future__ import annotations

from dibs.board import views
from dibs.core import checks
from dibs.core import commands as c
from dibs.core.refusals import bad_argument, refused
from dibs.interfaces import payloads
from dibs.interfaces.cli.arguments import argument
from dibs.interfaces.cli.call import Answer, Call, Verb
from dibs.interfaces.cli.progress import bar
from dibs.interfaces.cli.say import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from dibs.backlogs.backlog import Backlog
    from dibs.backlogs.sync import Options, Report

SHOWN = 20
"""Problems that are shown; all of them with --report."""

LOOK = 0.5
"""Seconds between two looks of `sync --watch`."""


def sync(call: Call) -> Answer | Iterator[Answer | None]:
    backlog = backlog_of(call)
    return watch(call, backlog) if call["watch"] else once(call, backlog)


def backlog_of(call: Call) -> Backlog:
    """The backlog of the repository; the board is made, if it was not there."""
    from dibs.backlogs.backlog import Backlog

    if not call["check"]:
        make_board(call)
    backlog = call.board.backlog
    if not isinstance(backlog, Backlog):
        raise refused(
            "no_backlog",
            "there is no backlog here: no _kano/backlog, .claude/work-queue, .wg or backlog",
        )
    return backlog


def make_board(call: Call) -> None:
    """A board that was lost keeps its id, and gives out higher tokens than any before."""
    from dibs.opening import create_at, keep_uid, kept_uid

    lost = kept_uid(call.place) if call["board"] is None else checks.board_id(call["board"])
    board, made = create_at(call.place, uid=lost)
    call.adopt(board)
    if call["board"] is not None and not made:
        raise bad_argument("--board is for a board that is to be built anew; there is one here")
    if made and lost:
        board.execute(call.who(), c.Sync((), lost=1))
    keep_uid(call.place, views.uid(board))


def once(call: Call, backlog: Backlog) -> Answer:
    from dibs.backlogs.sync import sync as run

    report = run(backlog, call.board, call.who(), options(call))
    if call["report"]:
        write_report(call["report"], report)
    return told(report, check=call["check"])


def options(call: Call) -> Options:
    from dibs.backlogs.sync import Options

    everything = call["check"] or bool(call["report"])
    return Options(call["check"], everything, call["strict"], bar("items", at_least=200))


def watch(call: Call, backlog: Backlog) -> Iterator[Answer | None]:
    """Again and again: what changed is told, and nothing else."""
    import time

    from dibs.backlogs.sync import sync as run
    from dibs.board import watching

    who, first = call.who(), True
    while True:
        felt = watching.pulse(call.board)
        report = run(backlog, call.board, who)
        worth = report.added or report.changed or report.written or report.brought_back
        if first or worth:
            yield told(report, check=False)
        else:
            yield None
        first = False
        watching.wait_for_change(call.board, felt, LOOK)
        time.sleep(LOOK)


def told(report: Report, *, check: bool) -> Answer:
    payload = report.named() | {
        "problems": [problem.named() for problem in report.problems],
        "checked": check,
    }
    return Answer(payloads.answer(sync=payload), tuple(lines(report, check=check)))


def lines(report: Report, *, check: bool) -> Iterator[str]:
    would = "would be " if check else ""
    yield (
        f"{count(report.items, 'item')} in {count(report.files, 'file')}: "
        f"{report.added} {would}taken in, {report.changed} {would}changed, "
        f"{count(report.written, 'file')} {would}written"
    )
    if report.brought_back:
        yield f"{count(report.brought_back, 'lease')} brought back from the files, under new tokens"
    if report.healed:
        first = ", ".join(report.healed[:5])
        more = f" and {len(report.healed) - 5} more" if len(report.healed) > 5 else ""
        yield f"healed {count(len(report.healed), 'stale claim')}: {first}{more}"
    for problem in report.problems[:SHOWN]:
        yield f"  {problem}"
    if len(report.problems) > SHOWN:
        yield f"  and {len(report.problems) - SHOWN} more: dibs sync --report FILE lists them all"
    yield from (f"  {proposal}" for proposal in report.proposals)


def write_report(path: str, report: Report) -> None:
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(f"{line}\n" for line in (*report.problems, *report.proposals))
    except OSError as error:
        raise refused("output_failed", f"{path} cannot be written: {error.strerror}") from None


VERBS = {
    "sync": Verb(
        sync,
        (
            argument("--watch", action="store_true", help="go on until interrupted"),
            argument("--check", action="store_true", help="only say what would be done"),
            argument("--report", metavar="FILE", help="write all that was odd to a file"),
            argument(
                "--board", metavar="ID", help="the lost board that the files name: build it anew"
            ),
            argument("--strict", action="store_true", help="stop at a file that cannot be read"),
        ),
    ),
}
