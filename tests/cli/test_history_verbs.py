"""`dibs log --head`, `dibs log --verify --against`, and `dibs export --events`, as real processes."""

from __future__ import annotations

import json
import subprocess

import pytest
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from dibs.domain import ledger
from dibs.domain.events.base import Ending, Stint
from dibs.domain.events.stints import STINT_EVENTS
from dibs.domain.model import Actor, Terms, Token
from dibs.output import payloads
from kit.repositories import DIBS


@pytest.fixture
def busy(repo):
    repo.add("Fix the l\u00f6gin")
    repo.add()
    repo.ok("claim", "T-1", "--agent", "codex", "--session", "s1")
    repo.ok("note", "T-1", "half way", "--agent", "codex", "--session", "s1")
    repo.ok("complete", "T-1", "--agent", "codex", "--session", "s1")
    return repo


# Heads.


def test_a_head_is_one_line_and_fits_the_ledger_from_which_it_came(busy):
    kept = busy.ok("log", "--head").out
    assert kept.count("\n") == 1
    reply = busy.json("log", "--head")
    assert (reply["head"], f"{reply['seq']}:{reply['digest']}") == (kept.strip(), kept.strip())
    assert reply["board"] == busy.json("status")["board"]
    busy.add()
    ran = busy.ok("log", "--verify", "--against", kept.strip())
    assert ran.out.strip().endswith("1 saved head matches")


def test_heads_are_read_from_a_file_that_was_appended_to(busy):
    file = busy.folder.parent / "heads"
    for _ in range(2):
        with file.open("a") as kept:
            kept.write(busy.ok("log", "--head").out)
        busy.add()
    reply = busy.json("log", "--verify", "--against", str(file))
    assert [one["ok"] for one in reply["against"]] == [True, True]
    with file.open() as kept:
        done = subprocess.run(
            [DIBS, "log", "--verify", "--against", "-"], cwd=busy.folder, stdin=kept,
            env=busy.environment(), capture_output=True, text=True, check=True,
        )  # fmt: skip
    assert done.stdout.strip().endswith("2 saved heads match")


def test_a_head_that_does_not_fit_ends_with_1_and_says_which(busy):
    seq, _, digest = busy.ok("log", "--head").out.strip().partition(":")
    longer, other = f"{int(seq) + 5}:{digest}", f"{seq}:{digest[::-1]}"
    ran = busy.fails(1, "log", "--verify", "--against", longer)
    assert (
        f"the ledger ends with event {seq}, and the kept head is of event {int(seq) + 5}" in ran.out
    )
    reply = busy.fails(1, "log", "--verify", "--against", other, "--json").json
    assert (reply["ok"], reply["against"][0]["head"], reply["against"][0]["ok"]) == (
        False,
        other,
        False,
    )
    assert reply["faults"] == [reply["against"][0]["fault"]]


# Notes.


def test_a_person_redacts_a_note_and_everybody_learns_who_and_why(busy):
    [note] = busy.json("show", "T-1")["notes"]
    assert (note["text"], note["redacted"], note["late"]) == ("half way", None, False)
    assert f", noted, event {note['event']}:\n    half way" in busy.ok("show", "T-1").out
    redact = ("note", "T-1", "--redact", str(note["event"]), "--reason", "a secret")
    busy.fails(1, *redact, "--agent", "codex", "--session", "s1")
    for _ in range(2):  # run again, it says the same: what could not be overwritten then is now
        ran = busy.ok(*redact, "--as", "ana")
        assert ran.out == f"T-1 no longer has the text of event {note['event']}\n"
    assert "    redacted by ana: a secret\n" in busy.ok("show", "T-1").out
    [gone] = busy.json("show", "T-1")["notes"]
    assert (gone["text"], gone["redacted"]["by"], gone["redacted"]["reason"]) == (
        None, "ana", "a secret",
    )  # fmt: skip
    assert f"the text of event {note['event']}; reason: a secret" in busy.ok("log", "T-1").out
    busy.ok("log", "--verify")


def test_a_late_note_is_pointed_out_until_somebody_else_writes_a_note(busy):
    late = ("complete", "T-2", "--note", "done:\nsee auth.py", "--as", "dora")
    busy.ok("claim", "T-2", "--as", "dora")
    busy.ok("takeover", "T-2", "--force", "--reason", "it burns", "--as", "ana")
    busy.fails(5, *late)
    [row] = [line for line in busy.ok("status").out.splitlines() if "dibs show T-2" in line]
    assert row.split()[:2] == ["T-2", "dora"]
    assert "done:" in row
    [reply] = busy.json("status")["late_notes"]
    assert (reply["key"], reply["actor"], reply["text"]) == ("T-2", "dora", "done:\nsee auth.py")
    assert "dora, late (refused: its lease had ended), event" in busy.ok("show", "T-2").out
    busy.ok("note", "T-2", "seen", "--as", "ana")
    assert busy.json("status")["late_notes"] == []


# Events.


def exported(repo, *options: str) -> list[dict]:
    return [json.loads(line) for line in repo.ok("export", "--events", *options).out.splitlines()]


def test_every_event_is_a_cloudevent_with_the_facts_of_the_log(busy):
    log = busy.json("log")["events"]
    lines = busy.ok("export", "--events", "-").out.splitlines()
    assert len(lines) == len(log)
    board = busy.json("status")["board"]
    for line, entry in zip(lines, log, strict=True):
        event = JSONFormat().read(CloudEvent, line)  # refuses what the specification does not allow
        assert event.get_specversion() == "1.0"
        assert (event.get_source(), event.get_id()) == (f"urn:uuid:{board}", str(entry["seq"]))
        assert event.get_type() == f"dibs.{entry['verb']}"
        assert event.get_subject() == entry["task"]
        assert event.get_time().isoformat().replace("+00:00", "Z") == entry["at"]
        assert event.get_datacontenttype() == "application/json"
        assert event.get_data() == entry
        assert set(json.loads(line)) <= {
            "specversion", "id", "source", "type", "subject", "time", "datacontenttype", "data",
        }  # fmt: skip


def test_facts_are_reported_like_everything_else(repo):
    """As `show` prints the same: no microseconds, no numbers of actors; and the ledger is as it was."""
    repo.add("work", "--not-before", "2020-01-01")
    repo.ok("claim", "T-1", "--agent", "codex", "--session", "s1", "--ttl", "90s")
    kept = repo.ok("log", "--head").out.strip()
    repo.ok("takeover", "T-1", "--force", "--reason", "r", "--as", "ana")
    repo.ok("complete", "T-1", "--as", "ana")
    number = str(repo.json("stint", "list", "--actor", "codex")["stints"][0]["number"])
    repo.ok("stint", "usage", number, "--cost", "0.25", "--as", "ana")
    happened = {one["verb"]: one["facts"] for one in repo.json("log")["events"]}
    [codex, _] = repo.json("show", "T-1")["ended_leases"]
    assert happened["added"]["terms"]["not_before"].startswith("20")
    assert (happened["claimed"]["actor"], happened["claimed"]["ttl"]) == ("codex", "90s")
    ending = happened["forced"]["ending"]
    assert (ending["actor"], ending["token"]) == ("codex", "1.1")
    for name in ("acquired", "renewed", "expires"):
        assert ending[name] == codex[f"{name}_at"]
    assert ending["stint"]["started"] == codex["acquired_at"]
    assert happened["usage_reported"]["cost"] == "0.25"
    assert repo.json("log", "--verify", "--against", kept)["ok"] is True


AT, SPAN, WHO = 1_794_752_999_000_001, 90_000_000, 777
SAMPLES = {
    "Instant": AT, "Duration": SPAN, "ActorId": WHO, "Token": Token(1, 2), "Stint": Stint(AT, AT + 1),
    "Ending": Ending(Token(1, 2), WHO, "s", AT, AT, AT, 0, False, Stint(AT, AT)),
    "Terms": Terms("t", not_before=AT), "Mirrored": None, "bool": True, "int": 5,
}  # fmt: skip


@pytest.mark.parametrize("kind", [*ledger.EVENTS, *STINT_EVENTS], ids=lambda kind: kind.verb)
def test_no_event_has_an_instant_a_duration_or_an_actor_as_a_number(kind):
    """For every event there is, also for one that is yet to be written."""
    types = payloads.types_of(kind)
    assert {*kind.fields} <= {*types}
    event = kind(**{field: SAMPLES.get(types[field], ()) for field in kind.fields})
    text = json.dumps(payloads.facts_payload(event, {WHO: Actor(WHO, "ana", "human")}))
    assert not any(str(number) in text for number in (AT, SPAN, WHO))
    shown = {"Instant": "2026-11-15T", "Duration": "90s", "ActorId": "ana", "Ending": "2026-11-15T"}
    assert all(shown.get(types[field], "") in text for field in kind.fields)


def test_events_can_be_asked_for_after_a_number_and_of_a_task(busy):
    everything = exported(busy)
    assert exported(busy, "--since", "3") == everything[3:]
    assert exported(busy, "--since", "3", "--task", "t-1") == [
        event for event in everything[3:] if event.get("subject") == "T-1"
    ]
    assert exported(busy, "--since", "99999") == []


def test_events_are_written_to_a_new_file_or_to_none(busy):
    file = busy.folder.parent / "events.jsonl"
    reply = busy.json("export", "--events", str(file))
    assert reply["events"] == len(file.read_text().splitlines()) == len(exported(busy))
    assert file.stat().st_mode & 0o777 == 0o600
    busy.fails(2, "export", "--events", str(file))


def test_a_ledger_of_many_pages_is_exported_whole_and_once(tmp_path, kind):
    from dibs.board.watch import PAGE, all_after
    from dibs.domain import commands as c
    from dibs.domain.model import TaskKey
    from kit.boards import Bench

    bench = Bench(tmp_path / "dibs", kind=kind)
    bench.add()
    command = c.Intake(tuple(
        c.Add(bench.terms(f"t{number}"), channel="mail", origin_ask_ref=str(number))
        for number in range(2 * PAGE)
    ))  # fmt: skip
    bench.person().do(command)
    seen = [line.entry.seq for page in all_after(bench.board, 0, None) for line in page]
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) > 2 * PAGE
    assert [len(page) for page in all_after(bench.board, 0, TaskKey("T-1"))] == [1]
    bench.close()


def test_who_reads_only_the_first_lines_gets_no_complaint(busy):
    done = subprocess.run(
        f"{DIBS} export --events | head -1", shell=True, cwd=busy.folder, env=busy.environment(),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (done.stdout.count("\n"), done.stderr) == (1, "")
