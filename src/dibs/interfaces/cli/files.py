"""The verbs about files: sync, import, export, shellenv."""

from __future__ import annotations

import sys

from dibs.board import views
from dibs.board.locate import Place
from dibs.core import checks
from dibs.core import commands as c
from dibs.core.display import safe
from dibs.core.refusals import bad_argument, refused, several
from dibs.interfaces import payloads
from dibs.interfaces.cli.arguments import argument
from dibs.interfaces.cli.call import REASON, Answer, Call, CannotPrint, Verb
from dibs.interfaces.cli.progress import bar
from dibs.interfaces.cli.say import count
from dibs.opening import is_here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from io import BufferedReader
    from typing import IO

    from dibs.backlogs.backlog import Backlog
    from dibs.backlogs.item import Item, Problem
    from dibs.backlogs.report import Options, Report

SHOWN = 20
"""Problems that are shown; all of them with --report."""

OWN = "dibs"
"""The format in which a whole board is exported, with its ledger."""

LOOK = 0.5
"""Seconds between two looks of `sync --watch`."""


def sync(call: Call) -> Answer | Iterator[Answer | None]:
    if call["watch"] and (call["check"] or call["report"]):
        raise bad_argument("--watch goes on by itself: neither --check nor --report goes with it")
    if call["check"] and not is_here(call.place):
        return preview(call)
    backlog = backlog_of(call)
    return watch(call, backlog) if call["watch"] else once(call, backlog)


def preview(call: Call) -> Answer:
    """What a first sync would do, on a board that is thrown away."""
    import tempfile

    from dibs.backlogs.backlog import Backlog
    from dibs.backlogs.sync import Syncing
    from dibs.opening import create_at

    found = backlog_here(call)
    with tempfile.TemporaryDirectory(prefix="dibs-check-") as folder:
        board, _ = create_at(Place(folder))
        call.adopt(board)
        backlog = Backlog(found.root, folder, found.dialects)
        report = Syncing(backlog, board, None, options(call)).run()
        board.store.close()
    if call["report"]:
        write_report(call["report"], report)
    return told(report, check=True)


def backlog_of(call: Call) -> Backlog:
    """The backlog of the repository; the board is made, if it was not there."""
    from dibs.backlogs.backlog import Backlog

    found = backlog_here(call)
    if not call["check"]:
        make_board(call, found)
    backlog = call.board.backlog
    assert isinstance(backlog, Backlog), "found before"
    return backlog


def backlog_here(call: Call) -> Backlog:
    from dibs.opening import backlog_here as found_here

    found = found_here(call.place)
    if found is None:
        raise refused(
            "no_backlog",
            "there is no backlog here: no _kano/backlog, .claude/work-queue, .wg or backlog",
        )
    return found


def check_not_elsewhere(backlog: Backlog) -> None:
    """Live leases that item files tell of a board that is not here: it may be lost, or a clone's."""
    from dibs.backlogs.gone import boards_named
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
    """A board that was lost keeps its id, and gives out higher tokens than any before."""
    from dibs.opening import create_at, keep_uid, kept_uid

    lost = kept_uid(call.place) if call["board"] is None else checks.board_id(call["board"])
    if not lost and not is_here(call.place):
        check_not_elsewhere(found)
    board, made = create_at(call.place, uid=lost)
    call.adopt(board)
    if call["board"] is not None and not made:
        raise bad_argument("--board is for a board that is to be built anew; there is one here")
    if made and lost:
        board.execute(call.who(), c.Sync((), rebuilt=True))
    keep_uid(call.place, views.uid(board))


def once(call: Call, backlog: Backlog) -> Answer:
    from dibs.backlogs.sync import sync as run

    report = run(backlog, call.board, call.who(), options(call))
    if call["report"]:
        write_report(call["report"], report)
    return told(report, check=call["check"])


def options(call: Call) -> Options:
    from dibs.backlogs.report import Options

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
        report = run(backlog, call.board, who, options(call))
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
    failed = 1 if report.unwritten else 0
    return Answer(payloads.answer(sync=payload), tuple(lines(report, check=check)), exit=failed)


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
        healed = several(report.healed)
        yield f"healed {count(len(report.healed), 'stale claim')}: {healed}"
    yield from problem_lines(report.problems, "dibs sync --report FILE lists them all")
    yield from (f"  {proposal}" for proposal in report.proposals)


def problem_lines(
    problems: Sequence[Problem], more: str = "--json lists them all"
) -> Iterator[str]:
    yield from (f"  {problem}" for problem in problems[:SHOWN])
    if len(problems) > SHOWN:
        yield f"  and {len(problems) - SHOWN} more: {more}"


def write_report(path: str, report: Report) -> None:
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(f"{line}\n" for line in (*report.problems, *report.proposals))
    except OSError as error:
        what = f"the files are in step, but the report cannot be written to {path}"
        raise refused("output_lost", f"{what}: {error.strerror}") from None


# Other tools' formats, and one's own.


def import_(call: Call) -> Answer:
    if call["format"] == OWN:
        return import_board(call)
    from dibs.backlogs.foreign import FORMATS
    from dibs.backlogs.importing import import_items
    from dibs.board.bounded import Unreadable

    if call["format"] not in FORMATS:
        known = ", ".join((OWN, *FORMATS))
        raise bad_argument(f"the format is {checks.quoted(call['format'])}; it is one of {known}")
    if call["reason"]:
        raise bad_argument(f"--reason goes with --format {OWN}")
    path = call["file"]
    try:
        items, problems = FORMATS[call["format"]](contents(path), path)
    except Unreadable as error:
        raise bad_argument(f"{path} cannot be read as {call['format']}: {error}") from None
    items = [known_by(item) for item in items]
    progress = bar("items", at_least=200)
    done = import_items(call.board, call.who(), items, progress, check=call["check"])
    problems = [*problems, *done.problems]
    would = "would be " if call["check"] else ""
    first = f"{count(done.items, 'item')}: {done.added} {would}taken in, {done.known} known already"
    payload = done.named() | {
        "problems": [one.named() for one in problems],
        "checked": call["check"],
    }
    return Answer(payloads.answer(imported=payload), (first, *problem_lines(problems)))


def known_by(item: Item) -> Item:
    """As a request of its channel is known everywhere: an import and a webhook make one task."""
    from dibs.channels.ask import RULES, Unacceptable, normalised_ref

    try:
        return (
            item.but(ref=normalised_ref(item.channel, item.ref)) if item.channel in RULES else item
        )
    except Unacceptable:
        return item


def import_board(call: Call) -> Answer:
    """A whole board, by the rule of a restore."""
    from dibs.board.carrying import import_board as run

    if call["check"]:
        raise bad_argument(f"--check does not go with --format {OWN}")
    name, stream = call["file"], None
    if name == "-":
        name, stream = "standard input", standard_input()
    if not is_own(name, stream):
        raise bad_argument(
            f"{name} is no export of dibs; say --format beads, github or taskwarrior"
        )
    place = call.board_or_none()
    done = run(place, name, call.who(), call.reason, bar("rows"), stream)
    line = (
        f"{done.target} is as it was in {done.source}; every lease has ended, and tokens begin "
        f"with {done.epoch}"
    )
    return Answer(payloads.answer(**done.named()), (line,))


def standard_input() -> BufferedReader:
    if sys.stdin is None:
        raise bad_argument("the standard input is closed")
    return sys.stdin.buffer  # type: ignore[return-value]  # what Python opens can peek


def is_own(path: str, stream: BufferedReader | None) -> bool:
    """What cannot be read is told about later."""
    mark, size = b'"format"', 200
    if stream is not None:
        return mark in stream.peek(size)[:size]
    try:
        with open(path, "rb") as file:
            return mark in file.read(size)
    except OSError:
        return True


def export(call: Call) -> Answer | Iterator[Answer | None]:
    from dibs.board.carrying import export as run

    if call["events"]:
        return export_events(call)
    if call["since"] is not None or call["task"] is not None:
        raise bad_argument("--since and --task go with --events")
    if call["file"] is None:
        raise bad_argument("the following arguments are required: FILE")
    if call["file"] == "-":
        return export_here(call)
    done = run(call.board, call["file"], bar("rows"))
    line = f"{count(done.tasks, 'task')} and {count(done.events, 'event')} written to {done.target}"
    return Answer(payloads.answer(file=done.target, **done.named()), (line,))


def export_here(call: Call) -> Answer:
    """To standard output: nothing else is printed there."""
    from dibs.board.carrying import export_to

    if call["json"]:
        raise bad_argument("--json prints an answer, and - the export: to which of them?")
    sys.stdout.flush()
    done = export_to(call.board, Printed())  # type: ignore[arg-type]  # it only writes
    return Answer(payloads.answer(**done.named()))


class Printed:
    """Standard output, whose failures are not those of the board's disk.

    On a terminal all that it could obey is escaped: it is the same JSON. Elsewhere the bytes stay.
    """

    def __init__(self) -> None:
        self._on_screen = sys.stdout.isatty()

    def write(self, data: bytes) -> int:
        shown = json_escaped(data.decode()).encode() if self._on_screen else data
        try:
            sys.stdout.buffer.write(shown)
        except OSError as error:
            raise CannotPrint(error) from None
        return len(data)


def json_escaped(text: str) -> str:
    from json import dumps

    return "".join(one if one == "\n" or safe(one) == one else dumps(one)[1:-1] for one in text)


def export_events(call: Call) -> Answer | Iterator[Answer | None]:
    """Events alone, as CloudEvents: to a file, or to standard output."""
    from dibs.interfaces import cloudevents

    task = None if call["task"] is None else checks.task_key(call["task"])
    most = 10**checks.NUMBER_DIGITS - 1
    since = 0 if call["since"] is None else checks.whole(call["since"], "--since", 0, most)
    if task is not None:
        views.task_by_key(call.board, task)
    pages = cloudevents.pages(call.board, views.uid(call.board), since, task)
    if call["file"] in (None, "-"):
        if call["json"]:
            raise bad_argument("--json prints an answer, and - the events: to which of them?")
        return (Answer({}, file=text) for text, _ in pages)
    from dibs.board.passing import new_file

    path = call["file"]
    with new_file(path, "an export") as file:
        number = written(pages, file)
    line = f"{count(number, 'event')} written to {path}"
    return Answer(payloads.answer(file=path, events=number), (line,))


def written(pages: Iterator[tuple[str, int]], file: IO[bytes]) -> int:
    """How many events they were."""
    number = 0
    for text, some in pages:
        file.write(text.encode())
        number += some
    return number


def contents(path: str) -> bytes:
    from dibs.backlogs.foreign import SIZE_MAX

    try:
        if path == "-":
            return standard_input().read(SIZE_MAX + 1)
        with open(path, "rb") as file:
            return file.read(SIZE_MAX + 1)
    except OSError as error:
        raise bad_argument(f"{path} cannot be read: {error.strerror}") from None


def shellenv(_: Call) -> Answer:
    """The text of the shell library. It needs no board: a login script may ask for it anywhere."""
    from os.path import dirname, join

    from dibs import backlogs

    with open(join(dirname(backlogs.__file__), "shellenv.sh"), encoding="utf-8") as file:
        text = file.read()
    return Answer(payloads.answer(shellenv=text), tuple(text.splitlines()))


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
    "import": Verb(
        import_,
        (
            argument("file", metavar="FILE", help="what was exported; - for standard input"),
            argument(
                "--format", metavar="NAME", default=OWN, help="dibs, beads, github or taskwarrior"
            ),
            argument("--check", action="store_true", help="only say what would be done"),
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
                help="a file that is not there; - for standard output",
            ),
            argument(
                "--events", action="store_true", help="only the ledger, as CloudEvents; FILE or -"
            ),
            argument(
                "--since", metavar="SEQ", help="with --events: after the event of this number"
            ),
            argument("--task", metavar="KEY", help="with --events: of one task"),
        ),
    ),
    "shellenv": Verb(shellenv),
}
