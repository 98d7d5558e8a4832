"""Real processes that run the real command at the same moment, many rounds of it.

Each racer is a process of its own, with its own work tree, environment and connections; only the
start of the interpreter is saved. A barrier lets all of them go at once.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os

from kit.repositories import Repo, clean_environment


def run_here(arguments: list[str]):
    """The command in this process: its exit code, what it said, and what it was refused with."""
    from dibs.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*arguments, "--json"])
    output = out.getvalue() or err.getvalue().splitlines()[-1]
    return code, json.loads(output)


def racer(repo, number, racers, rounds, barrier, answers) -> None:
    os.environ.clear()
    os.environ.update(clean_environment(**repo.around))
    os.chdir(repo.folder)
    for arguments in rounds:
        filled = [part.format(n=number, next=(number + 1) % racers) for part in arguments]
        barrier.wait(60)
        answers.put((number, arguments, *run_here(filled)))


def race(repos: list[Repo], rounds: list[list[str]]):
    """Every racer runs every round's command. The answers of each round.

    `{n}` is its number, `{next}` that of the racer after it; the last one's is the first.
    """
    context = multiprocessing.get_context("fork")
    barrier, answers = context.Barrier(len(repos)), context.Queue()
    racers = [
        context.Process(
            target=racer, args=(repo, n, len(repos), rounds, barrier, answers), daemon=True
        )
        for n, repo in enumerate(repos)
    ]
    for process in racers:
        process.start()
    collected = [answers.get(timeout=120) for _ in range(len(repos) * len(rounds))]
    for process in racers:
        process.join(60)
    return [
        [
            (number, code, answer)
            for number, arguments, code, answer in collected
            if arguments == wanted
        ]
        for wanted in rounds
    ]
