"""Intake: one door for new work. The same origin is the same task, and every delivery has a receipt."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import time

import pytest

from dibs.cli.intake import Signals
from dibs.domain import commands as c
from dibs.domain.model import Terms
from kit.repositories import DIBS, Repo


def request(ref: str = "org/repo#7", title: str = "Login fails", **more) -> c.Add:
    return c.Add(Terms(title), channel="github", origin_ask_ref=ref, **more)


def receipts(bench, key: str = "T-1") -> list[tuple[str, str]]:
    with bench.store.read() as tx:
        found = tx.receipts_of(tx.task(key).id)
        return [(entry.event.digest, entry.event.delivery) for entry in found]


def test_a_repeated_delivery_gives_the_same_task_and_a_receipt_each(bench):
    ana = bench.person("ana")
    first = ana.do(request(digest="d1", delivery="1"))
    again = ana.do(request(digest="d1", delivery="2"))
    assert first.task.key == again.task.key == "T-1"
    assert receipts(bench) == [("d1", "1"), ("d1", "2")]
    assert bench.verbs() == ["added", "received"]
    assert bench.faults() == ()


@pytest.mark.parametrize("end", [c.Complete("T-1"), c.Drop("T-1", reason="no")])
def test_a_delivery_after_the_end_reopens_nothing(bench, end):
    codex = bench.agent()
    bench.person("ana").do(request(digest="d1"))
    codex.claim("T-1")
    codex.do(end)
    again = bench.person("ana").do(request(digest="d1", delivery="late"))
    assert again.task.state in ("complete", "dropped")
    assert receipts(bench)[-1] == ("d1", "late")


def test_another_payload_is_reported_and_overwrites_nothing(bench):
    ana = bench.person("ana")
    ana.do(request(digest="d1"))
    other = ana.do(request(digest="d2", title="Something else"))
    assert other.events[0].differs
    assert bench.task().terms.title == "Login fails"
    assert not ana.do(request(digest="d1")).events[0].differs


def test_a_request_that_was_moved_is_known_by_its_former_ref(bench):
    ana = bench.person("ana")
    ana.do(request("old/repo#1"))
    moved = ana.do(request("new/repo#9", formerly="old/repo#1"))
    assert moved.task.key == "T-1"


def test_many_at_once_follow_the_same_rule(bench):
    ana = bench.person("ana")
    ana.do(request("a#1", digest="x"))
    bench.add("another")
    batch = c.Intake(
        (
            request("a#1", digest="y"),
            request("b#1"),
            request("b#1", delivery="again"),
            request("c#1"),
        )
    )
    outcome = ana.do(batch)
    assert [event.verb for event in outcome.events] == ["received", "added", "received", "added"]
    assert outcome.events[0].differs
    with bench.store.read() as tx:
        assert tx.task_of_origin("github", "b#1").key == "T-3"
        assert tx.task_of_origin("github", "c#1").key == "T-4"
    assert bench.add("one more") == "T-5"
    assert bench.faults() == ()


def test_a_key_that_somebody_took_is_passed_over(bench):
    ana = bench.person("ana")
    ana.do(c.Add(Terms("mine"), key="T-2"))
    ana.do(c.Intake((request("a#1"), request("b#1"))))
    with bench.store.read() as tx:
        keys = {tx.task_of_origin("github", ref).key for ref in ("a#1", "b#1")}
    assert keys == {"T-1", "T-3"}


# The command line.


def github(title: str = "Login fails", number: int = 7, body: str = "secret-body-text") -> bytes:
    return json.dumps(
        {
            "action": "opened",
            "issue": {
                "number": number, "title": title, "body": body, "state": "open",
                "html_url": f"https://github.com/Org/Repo/issues/{number}",
                "url": f"https://api.github.com/repos/Org/Repo/issues/{number}",
            },
            "repository": {
                "full_name": "Org/Repo", "html_url": "https://github.com/Org/Repo",
                "url": "https://api.github.com/repos/Org/Repo",
            },
            "sender": {"login": "ana"},
        }
    ).encode()  # fmt: skip


def fed(repo: Repo, data: bytes, *arguments: str):
    """`dibs` with something on its standard input."""
    from kit.repositories import Ran

    done = subprocess.run(
        [DIBS, *arguments], cwd=repo.folder, env=repo.environment(), input=data, check=False,
        capture_output=True,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_a_webhook_of_github_is_taken_in_and_no_byte_of_its_body_is_kept(repo):
    ran = fed(repo, github(), "intake", "--github", "--event", "issues", "--as", "ana", "--json")
    assert ran.code == 0, ran.err
    task = ran.json["task"]
    assert (task["title"], task["origin_ask_ref"]) == ("Login fails", "org/repo#7")
    assert ran.json["created"] is True
    again = fed(repo, github(), "intake", "--github", "--event", "issues", "--as", "ana", "--json")
    assert again.json["task"]["key"] == task["key"]
    assert again.json["created"] is False
    shown = repo.json("show", task["key"])
    assert len(shown["receipts"]) == 2
    assert shown["receipts"][0]["url"] == "https://github.com/Org/Repo/issues/7"
    assert shown["task"]["url"] == "https://github.com/Org/Repo/issues/7"
    kept = b"".join(
        path.read_bytes() for path in (repo.folder / ".git").rglob("*") if path.is_file()
    )
    assert b"secret-body-text" not in kept


def test_a_wrong_signature_is_refused_and_either_secret_of_two_is_right(repo):
    import hashlib
    import hmac

    secrets = repo.folder / "secrets"
    secrets.write_text("new\nold\n")
    body = github()
    for secret in ("new", "old"):
        right = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        signed = ("--signature", right, "--secret-file", str(secrets))
        ran = fed(repo, body, "intake", "--github", "--event", "issues", "--as", "ana", *signed)
        assert ran.code == 0, ran.err
    wrong = ("--signature", "sha256=" + "0" * 64, "--secret-file", str(secrets))
    ran = fed(
        repo, github(number=8), "intake", "--github", "--event", "issues", "--as", "ana", "--json", *wrong
    )  # fmt: skip
    assert (ran.code, ran.error["code"]) == (1, "not_signed")
    assert len(repo.json("list")["tasks"]) == 1


def test_a_message_is_known_by_its_message_id(repo):
    mail = b"Message-ID: <x1@example.org>\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n\r\nhidden\r\n"
    ran = fed(repo, mail, "intake", "--email", "--as", "ana", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["task"]["title"] == "Grüße"
    assert ran.json["task"]["origin_ask_ref"] == "x1@example.org"
    assert repo.json("show", "T-1")["task"]["url"] is None


def test_any_json_is_taken_in_with_a_map(repo):
    data = json.dumps({"data": {"id": 42, "subject": "From a form"}}).encode()
    pairs = ("--map", "ref=data.id", "--map", "title=data.subject")
    ran = fed(repo, data, "intake", "--channel", "form", *pairs, "--as", "ana", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["task"]["title"] == "From a form"
    assert ran.json["task"]["origin_ask_ref"] == "42"


def test_many_lines_are_taken_in_and_a_bad_one_is_reported(repo):
    lines = [json.dumps({"channel": "form", "ref": str(n)}) for n in range(1200)]
    lines[600] = "{broken"
    path = repo.folder / "asks.jsonl"
    path.write_text("\n".join(lines))
    ran = repo.run("intake", "--from", str(path), "--as", "ana", "--json")
    assert ran.code == 1
    reply = ran.json["intake"]
    assert (reply["requests"], reply["added"], reply["known"], reply["complete"]) == (
        1199,
        1199,
        0,
        True,
    )
    assert [problem["line"] for problem in reply["problems"]] == [601]
    again = repo.run("intake", "--from", str(path), "--as", "ana", "--json").json["intake"]
    assert (again["added"], again["known"]) == (0, 1199)


BAD = {
    "intake --as ana": "required: --channel, --ref",
    "intake --channel x --as ana": "required: --ref",
    "intake --github --email --as ana": "do not combine",
    "intake --email --event issues --as ana": "--event is for --github",
    "intake --map ref=a --as ana": "--map requires --channel",
    "intake --channel x --map ref --as ana": "write it like ref=data.id",
    "intake --github --signature x --as ana": "--signature requires --secret-file",
    "intake --from nowhere --as ana": "cannot be read",
    "intake --from asks --title x --as ana": "not for --from",
    "intake --channel x --ref y --url javascript:x --as ana": "this request is invalid",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_arguments_are_refused(repo, line):
    ran = fed(repo, b"{}", *line.split())
    assert ran.code == 2, ran.out
    assert BAD[line] in ran.err
    assert repo.json("list")["tasks"] == []


RACER = """
import sys
from dibs import open_board
with open_board(person=sys.argv[1]) as board:
    keys = {board.intake("slack", "C1/p7", "Do it", delivery=f"{sys.argv[1]}-{n}").task.key
            for n in range(int(sys.argv[2]))}
    print(" ".join(sorted(keys)))
"""


def test_sixteen_processes_deliver_one_ask_fifty_times_each(repo):
    """One task, all callers get its key, every delivery has a receipt; also while it completes."""
    codex = ("--agent", "codex", "--session", "s1")
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, f"ana{number}", "50"], cwd=repo.folder,
            env=repo.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(16)
    ]  # fmt: skip
    deadline = time.monotonic() + 120
    while repo.run("show", "T-1").code and time.monotonic() < deadline:
        time.sleep(0.1)
    finished = [repo.run("claim", "T-1", *codex).code, repo.run("complete", "T-1", *codex).code]
    for racer in racers:
        out, err = racer.communicate(timeout=300)
        assert (racer.returncode, out) == (0, "T-1\n"), err
    assert finished == [0, 0]
    shown = repo.json("show", "T-1")
    assert shown["task"]["state"] == "complete"
    assert len(shown["receipts"]) == 800
    assert len({one["delivery"] for one in shown["receipts"]}) == 800
    assert len(repo.json("list", "--all")["tasks"]) == 1
    assert repo.run("log", "--verify").code == 0


def test_many_requests_say_which_came_with_another_payload(repo, tmp_path):
    path = tmp_path / "asks.jsonl"
    lines = [{"channel": "mail", "ref": "r-1", "title": title} for title in ("a", "b")]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    reply = repo.ok("intake", "--from", str(path), "--as", "ana", "--json").json["intake"]
    assert (reply["added"], reply["known"], reply["differing"]) == (1, 1, ["T-1"])
    output = repo.ok("intake", "--from", str(path), "--as", "ana").out
    assert "differ from their earlier payload: T-1" in output
    wrong = ("intake", "--from", str(path), "--request-id", "r", "--as", "ana", "--json")
    assert repo.run(*wrong).error["code"] == "bad_argument"


def test_a_delivery_with_another_title_says_so(repo):
    command = ("intake", "--github", "--event", "issues", "--as", "ana", "--json")
    assert fed(repo, github(), *command).json["created"] is True
    assert fed(repo, github(title="Login is slow"), *command).json["differences"] == ["title"]
    assert fed(repo, github(body="more"), *command).json["differences"] == ["payload"]
    output = fed(repo, github(title="Login is slow"), *command[:-1]).out
    assert output == "T-1 already has this origin; it differs in: title\n"
    assert repo.json("show", "T-1")["task"]["title"] == "Login fails"


def test_a_request_that_names_no_title_does_not_differ_in_it(repo):
    command = ("intake", "--channel", "mail", "--ref", "r-1", "--as", "ana")
    repo.ok(*command, "--title", "Fix login")
    reply = repo.json(*command, "--url", "https://example.org/1")
    assert reply["differences"] == ["payload"]


LONG = "x" * 201


def test_a_title_from_elsewhere_that_is_too_long_is_cut_and_that_is_reported(repo, tmp_path):
    """A request is not lost for its title. Who types one is asked for a shorter one."""
    command = ("intake", "--github", "--event", "issues", "--as", "ana")
    ran = fed(repo, github(title=LONG), *command, "--json")
    assert ran.json["task"]["title"] == "x" * 199 + "…"
    assert ran.json["warnings"] == ["the title is longer than 200 characters and was cut"]
    assert "was cut" in fed(repo, github(number=8, title=LONG), *command).err
    assert "was cut" not in fed(repo, github(number=9, title="y" * 200), *command).err
    path = tmp_path / "asks.jsonl"
    lines = [{"channel": "mail", "ref": str(n), "title": "x" * (199 + n)} for n in range(3)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    many = ("intake", "--from", str(path), "--as", "ana")
    assert repo.json(*many)["intake"]["cut"] == 1
    assert "longer than 200 characters, and cut: 1 title" in repo.ok(*many).out
    assert repo.fails(
        2, "intake", "--channel", "mail", "--ref", "r", "--title", LONG, "--as", "ana"
    )


# Many, and not all of them.


def numbered(first: int, last: int) -> bytes:
    lines = [json.dumps({"channel": "form", "ref": str(n)}) for n in range(first, last)]
    return "".join(line + "\n" for line in lines).encode()


@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("form", ["text", "json"])
def test_who_stops_a_long_intake_learns_what_was_taken_in(repo, how, code, form):
    """Two batches and a part of a third come through a pipe, and then nothing more."""
    words = ("intake", "--from", "-", "--as", "ana", *(("--json",) if form == "json" else ()))
    with subprocess.Popen(
        [DIBS, *words], cwd=repo.folder, env=repo.environment(), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        process.stdin.write(numbered(0, 600) + b"{broken\n" + numbered(600, 1010))
        process.stdin.flush()
        while len(repo.json("list", "--limit", "2000")["tasks"]) < 1000:
            assert process.poll() is None
        process.send_signal(how)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (code, b"")
    if form == "text":
        assert out.decode().splitlines()[0] == "1000 requests: 1000 new, 0 already known"
        assert "line 601: " in out.decode()
        assert "stopped early: the rest was not read" in out.decode()
    else:
        reply = json.loads(out)["intake"]
        assert (reply["requests"], reply["added"], reply["complete"]) == (1000, 1000, False)
    assert len(repo.json("list", "--limit", "2000")["tasks"]) == 1000


def test_a_refusal_in_the_middle_comes_after_what_was_taken_in(tmp_path):
    """The disk is full after the first batch: exit 74, and 500 requests are there."""
    repo = Repo.create(tmp_path / "shop")
    repo.ok("init")
    words = ("intake", "--from", "-", "--as", "ana", "--json")
    with subprocess.Popen(
        [DIBS, *words], cwd=repo.folder, env=repo.environment(), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        process.stdin.write(numbered(0, 500))
        process.stdin.flush()
        while len(repo.json("list", "--limit", "2000")["tasks"]) < 500:
            assert process.poll() is None
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, 0))
        out, err = process.communicate(numbered(500, 1000), timeout=60)
    reply = json.loads(out)["intake"]
    assert (reply["requests"], reply["added"], reply["complete"]) == (500, 500, False)
    assert process.returncode == 74
    assert json.loads(err)["error"]["code"] in ("disk_full", "storage_failed")
    assert len(repo.json("list", "--limit", "2000")["tasks"]) == 500


def test_a_signal_waits_for_the_batch_and_a_second_one_does_not():
    """What is written is counted: a batch is not left between the two."""
    done = []

    def act(name, times):
        for _ in range(times):
            signal.raise_signal(signal.SIGTERM)
        done.append(name)

    before = signal.getsignal(signal.SIGTERM)
    for times in (1, 2):
        with pytest.raises(SystemExit) as end, Signals() as signals:
            signals.after(act, f"batch {times}", times)
        assert end.value.code == 143
    assert done == ["batch 1"]
    assert signal.getsignal(signal.SIGTERM) == before
