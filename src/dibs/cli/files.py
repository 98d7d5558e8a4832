"""The file verbs: sync, import, export, shellenv."""

from __future__ import annotations

import sys

from dibs.board import queries
from dibs.board.locate import Place
from dibs.cli.call import REASON, Call, OutputFailed, Verb, VerbResult, argument
from dibs.cli.text import count, progress_bar
from dibs.domain import checks
from dibs.domain import commands as c
from dibs.domain.refusals import bad_argument, refused, several
from dibs.domain.values import safe
from dibs.opening import has_database
from dibs.output import payloads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from io import BufferedReader
    from typing import IO

    from dibs.backlogs.backlog import Backlog
    from dibs.backlogs.item import Item, Problem
    from dibs.backlogs.report import Options, Report

SHOWN = 20
"""Limit on printed problems; --report lists all of them."""

OWN = "dibs"
"""Name of our own export format: a whole board with its ledger."""

POLL_SECONDS = 0.5
"""Polling interval of `sync --watch`, in seconds."""


def sync(call: Call) -> VerbResult | Iterator[VerbResult | None]:
    if call["watch"] and (call["check"] or call["report"]):
        raise bad_argument("--watch does not combine with --check or --report")
    if call["check"] and not has_database(call.place):
        return preview(call)
    backlog = backlog_of(call)
    return watch(call, backlog) if call["watch"] else once(call, backlog)


def preview(call: Call) -> VerbResult:
    """Prints what a first sync would do, by running it on a temporary board."""
    import tempfile

    from dibs.backlogs.backlog import Backlog
    from dibs.backlogs.sync import SyncPass
    from dibs.opening import create_at

    found = backlog_here(call)
    with tempfile.TemporaryDirectory(prefix="dibs-check-") as folder:
        board, _ = create_at(Place(folder))
        call.adopt(board)
        backlog = Backlog(found.root, folder, found.dialects)
        report = SyncPass(backlog, board, None, options(call)).run()
        board.store.close()
    if call["report"]:
        write_report(call["report"], report)
    return sync_result(report, check=True)


def backlog_of(call: Call) -> Backlog:
    """The backlog of the repository; creates the board if there is none."""
    from dibs.backlogs.backlog import Backlog

    found = backlog_here(call)
    if not call["check"]:
        make_board(call, found)
    backlog = call.board.backlog
    assert isinstance(backlog, Backlog), "found before"
    return backlog


def backlog_here(call: Call) -> Backlog:
    from dibs.board.locate import BACKLOG_SIGNS
    from dibs.opening import backlog_here as found_here

    found = found_here(call.place)
    if found is None:
        raise refused(
            "no_backlog",
            f"there is no backlog here: none of {', '.join(BACKLOG_SIGNS)}",
        )
    return found


def check_not_elsewhere(backlog: Backlog) -> None:
    """Refuses if item files name live leases of a board that is not here (lost, or in another clone)."""
    from dibs.backlogs.missing import boards_named
    from dibs.machine import wall_clock

    for named in boards_named(backlog, wall_clock()):
        if named.holders:
            raise refused(
                "board_elsewhere",
                f"{count(named.files, 'item')} here {'names' if named.files == 1 else 'name'} the board "
                f"{named.board}, which is not here, with live leases of {', '.join(named.holders)}",
                board=named.board,
            )


def make_board(call: Call, found: Backlog) -> None:
    """Creates the board. A lost one is rebuilt under its old id, with tokens higher than any before."""
    from dibs.opening import create_at, keep_uid, kept_uid

    lost = kept_uid(call.place) if call["board"] is None else checks.board_id(call["board"])
    if not lost and not has_database(call.place):
        check_not_elsewhere(found)
    board, made = create_at(call.place, uid=lost)
    call.adopt(board)
    if call["board"] is not None and not made:
        raise bad_argument("--board rebuilds a lost board, but there is one here")
    if made and lost:
        board.execute(call.who(), c.Sync((), rebuilt=True))
    keep_uid(call.place, queries.uid(board))


def once(call: Call, backlog: Backlog) -> VerbResult:
    from dibs.backlogs.sync import sync as run

    report = run(backlog, call.board, call.who(), options(call))
    if call["report"]:
        write_report(call["report"], report)
    return sync_result(report, check=call["check"])


def options(call: Call) -> Options:
    from dibs.backlogs.report import Options

    everything = call["check"] or bool(call["report"])
    return Options(call["check"], everything, call["strict"], progress_bar("items", at_least=200))


def watch(call: Call, backlog: Backlog) -> Iterator[VerbResult | None]:
    """Syncs in a loop; yields a result only after changes."""
    import time

    from dibs.backlogs.sync import sync as run
    from dibs.board import watch as watching

    who, first = call.who(), True
    while True:
        counter = watching.change_counter(call.board)
        report = run(backlog, call.board, who, options(call))
        worth = report.added or report.changed or report.written or report.brought_back
        if first or worth:
            yield sync_result(report, check=False)
        else:
            yield None
        first = False
        watching.wait_for_change(call.board, counter, POLL_SECONDS)
        time.sleep(POLL_SECONDS)


def sync_result(report: Report, *, check: bool) -> VerbResult:
    payload = report.but(skipped=(), finished=()).named() | {
        "problems": [problem.named() for problem in report.problems],
        "checked": check,
    }
    del payload["skipped"], payload["finished"]  # the report file has them
    failed = 1 if report.unwritten else 0
    return VerbResult(payloads.answer(sync=payload), tuple(lines(report, check=check)), exit=failed)


def lines(report: Report, *, check: bool) -> Iterator[str]:
    would = "would be " if check else ""
    yield (
        f"{count(report.items, 'item')} in {count(report.files, 'file')}: "
        f"{report.added} {would}imported, {report.changed} {would}changed, "
        f"{count(report.written, 'file')} {would}written"
    )
    if report.brought_back:
        yield f"{count(report.brought_back, 'lease')} restored from the files, with new tokens"
    for claims, noun, done in (
        (report.adopted, "claim", "adopted"),
        (report.healed, "stale claim", "healed"),
    ):
        if claims:
            yield f"{count(len(claims), noun)} {would}{done}: {several(claims)}"
    yield from problem_lines(report.problems, "dibs sync --report FILE lists them all")
    yield from (f"  {proposal}" for proposal in report.proposals)


def problem_lines(
    problems: Sequence[Problem], more: str = "--json lists them all"
) -> Iterator[str]:
    yield from (f"  {problem}" for problem in problems[:SHOWN])
    if len(problems) > SHOWN:
        yield f"  and {len(problems) - SHOWN} more: {more}"


def report_lines(report: Report) -> Iterator[str]:
    """What was odd, what was skipped, and, apart, what is finished."""
    yield from map(str, (*report.problems, *report.skipped, *report.proposals))
    if report.finished:
        yield f"\nfinished: {count(len(report.finished), 'item')}"
        yield from (f"  {line}" for line in report.finished)


def write_report(path: str, report: Report) -> None:
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(f"{line}\n" for line in report_lines(report))
    except OSError as error:
        what = f"the files are synced, but the report cannot be written to {path}"
        raise refused("output_lost", f"{what}: {error.strerror}") from None


# Import and export.


def import_(call: Call) -> VerbResult:
    if call["format"] == OWN:
        return import_board(call)
    from dibs.backlogs.importers.formats import FORMATS
    from dibs.backlogs.importers.importing import import_items
    from dibs.safe_files import Unreadable

    if call["format"] not in FORMATS:
        known = ", ".join((OWN, *FORMATS))
        raise bad_argument(f"the format is {checks.quoted(call['format'])}; it is one of {known}")
    if call["reason"]:
        raise bad_argument(f"--reason requires --format {OWN}")
    path = call["file"]
    try:
        items, problems = FORMATS[call["format"]](contents(path), path)
    except Unreadable as error:
        raise bad_argument(f"{path} cannot be read as {call['format']}: {error}") from None
    items = [known_by(item) for item in items]
    progress = progress_bar("items", at_least=200)
    done = import_items(
        call.board, call.who(), items, progress, check=call["check"], update=call["update"]
    )
    problems = [*problems, *done.problems]
    would = "would be " if call["check"] else ""
    first = f"{count(done.items, 'item')}: {done.added} {would}imported, {done.known} already known"
    payload = done.named() | {
        "problems": [one.named() for one in problems],
        "checked": call["check"],
    }
    return VerbResult(payloads.answer(imported=payload), (first, *problem_lines(problems)))


def known_by(item: Item) -> Item:
    """The item with its channel's normalised reference: an import and a webhook make the same task."""
    from dibs.intake.request import RULES, BadPayload, normalised_ref

    try:
        return (
            item.but(ref=normalised_ref(item.channel, item.ref)) if item.channel in RULES else item
        )
    except BadPayload:
        return item


def import_board(call: Call) -> VerbResult:
    """Imports a whole board, by the rules of a restore."""
    from dibs.board.transfer.export import import_board as run

    for option in ("check", "update"):
        if call[option]:
            raise bad_argument(f"--{option} does not combine with --format {OWN}")
    name, stream = call["file"], None
    if name == "-":
        name, stream = "standard input", standard_input()
    if not is_own(name, stream):
        raise bad_argument(
            f"{name} is not an export of dibs; use --format beads, github or taskwarrior"
        )
    place = call.board_or_none()
    done = run(place, name, call.who(), call.reason, progress_bar("rows"), stream)
    line = (
        f"{done.target} is as it was in {done.source}; every lease has ended, and tokens begin "
        f"with {done.epoch}"
    )
    return VerbResult(payloads.answer(**done.named()), (line,))


def standard_input() -> BufferedReader:
    if sys.stdin is None:
        raise bad_argument("the standard input is closed")
    return sys.stdin.buffer  # type: ignore[return-value]  # what Python opens can peek


def is_own(path: str, stream: BufferedReader | None) -> bool:
    """Whether it is an export of dibs. An unreadable file passes: the import reports it."""
    mark, size = b'"format"', 200
    if stream is not None:
        return mark in stream.peek(size)[:size]
    try:
        with open(path, "rb") as file:
            return mark in file.read(size)
    except OSError:
        return True


def export(call: Call) -> VerbResult | Iterator[VerbResult | None]:
    from dibs.board.transfer.export import export as run

    if call["events"]:
        return export_events(call)
    if call["since"] is not None or call["task"] is not None:
        raise bad_argument("--since and --task require --events")
    if call["file"] is None:
        raise bad_argument("the following arguments are required: FILE")
    if call["file"] == "-":
        return export_here(call)
    done = run(call.board, call["file"], progress_bar("rows"))
    line = f"{count(done.tasks, 'task')} and {count(done.events, 'event')} written to {done.target}"
    return VerbResult(payloads.answer(file=done.target, **done.named()), (line,))


def export_here(call: Call) -> VerbResult:
    """Exports to stdout, and prints nothing else there."""
    from dibs.board.transfer.export import export_to

    if call["json"]:
        raise bad_argument("--json does not combine with -, which prints the export")
    sys.stdout.flush()
    done = export_to(call.board, StdoutWriter())  # type: ignore[arg-type]  # it only writes
    return VerbResult(payloads.answer(**done.named()))


class StdoutWriter:
    """Stdout as a byte stream; a failed write raises `CannotPrint`, not a storage error of the board.

    On a terminal control characters are escaped, which is still the same JSON; elsewhere bytes pass
    unchanged.
    """

    def __init__(self) -> None:
        self._on_screen = sys.stdout.isatty()

    def write(self, data: bytes) -> int:
        shown = json_escaped(data.decode()).encode() if self._on_screen else data
        try:
            sys.stdout.buffer.write(shown)
        except OSError as error:
            raise OutputFailed(error) from None
        return len(data)


def json_escaped(text: str) -> str:
    from json import dumps

    return "".join(one if one == "\n" or safe(one) == one else dumps(one)[1:-1] for one in text)


def export_events(call: Call) -> VerbResult | Iterator[VerbResult | None]:
    """Exports only the events, as CloudEvents, to a file or stdout."""
    from dibs.output import cloudevents

    task = None if call["task"] is None else checks.task_key(call["task"])
    most = 10**checks.NUMBER_DIGITS - 1
    since = 0 if call["since"] is None else checks.whole(call["since"], "--since", 0, most)
    if task is not None:
        queries.task_by_key(call.board, task)
    pages = cloudevents.pages(call.board, queries.uid(call.board), since, task)
    if call["file"] in (None, "-"):
        if call["json"]:
            raise bad_argument("--json does not combine with -, which prints the events")
        return (VerbResult({}, file=text) for text, _ in pages)
    from dibs.board.transfer.scratch import new_file

    path = call["file"]
    with new_file(path, "an export") as file:
        number = written(pages, file)
    line = f"{count(number, 'event')} written to {path}"
    return VerbResult(payloads.answer(file=path, events=number), (line,))


def written(pages: Iterator[tuple[str, int]], file: IO[bytes]) -> int:
    """Writes the pages; returns the number of events."""
    number = 0
    for text, some in pages:
        file.write(text.encode())
        number += some
    return number


def contents(path: str) -> bytes:
    from dibs.backlogs.importers.formats import SIZE_MAX

    try:
        if path == "-":
            return standard_input().read(SIZE_MAX + 1)
        with open(path, "rb") as file:
            return file.read(SIZE_MAX + 1)
    except OSError as error:
        raise bad_argument(f"{path} cannot be read: {error.strerror}") from None


def shellenv(_: Call) -> VerbResult:
    """Prints the shell library. Needs no board: login scripts run it anywhere."""
    from os.path import dirname, join

    from dibs import backlogs

    with open(join(dirname(backlogs.__file__), "shellenv.sh"), encoding="utf-8") as file:
        text = file.read()
    return VerbResult(payloads.answer(shellenv=text), tuple(text.splitlines()))


VERBS = {
    "sync": Verb(
        sync,
        (
            argument("--watch", action="store_true", help="keep syncing until interrupted"),
            argument("--check", action="store_true", help="only show what would be done"),
            argument("--report", metavar="FILE", help="write all problems to a file"),
            argument(
                "--board", metavar="ID", help="rebuild the lost board that the files refer to"
            ),
            argument("--strict", action="store_true", help="stop at a file that cannot be read"),
        ),
    ),
    "import": Verb(
        import_,
        (
            argument("file", metavar="FILE", help="the exported file; - for standard input"),
            argument(
                "--format", metavar="NAME", default=OWN, help="dibs, beads, github or taskwarrior"
            ),
            argument("--check", action="store_true", help="only show what would be done"),
            argument(
                "--update",
                action="store_true",
                help="change known tasks as the other tool has them",
            ),
            REASON,
        ),
    ),
    "export": Verb(
        export,
        (
            argument(
                "file",
                nargs="?",
                metavar="FILE",
                help="a new file; - for standard output",
            ),
            argument(
                "--events", action="store_true", help="only the ledger, as CloudEvents; FILE or -"
            ),
            argument("--since", metavar="SEQ", help="with --events: only events after this number"),
            argument("--task", metavar="KEY", help="with --events: only events of this task"),
        ),
    ),
    "shellenv": Verb(shellenv),
}
