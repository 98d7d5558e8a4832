"""Hints: a server tells who waits for a board that there may be something to look at.

A hint can be lost, and nothing depends on it: who waits looks again in any case. It is given after a
change, in a transaction of its own, and only if somebody listens (docs/decisions/0013-waiting-for-changes.md).
"""

from __future__ import annotations

import time
from contextlib import suppress

import psycopg

from dibs.stores.postgres_line import Line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.stores.postgres import PostgresStore
    from dibs.stores.postgres_line import Session

APART = 0.5
"""Seconds between two hints that one client gives, and between two that one heeds: on a busy board, where
something happens all the time, nobody looks more often than without hints."""

SILENCE = 1.0
"""Seconds that a change, which is done, waits for a server that does not take its hint."""


def wait(store: PostgresStore, session: Session, seconds: float) -> None:
    """Until a hint comes, and no longer than this. Who has just begun to listen looks first."""
    if not session.listens:
        session.listens = begin(store, session)
        time.sleep(0 if session.listens else seconds)
        return
    end = time.monotonic() + seconds
    time.sleep(max(0, min(end, session.heard + APART) - time.monotonic()))
    if not session.pgconn.notifies():
        if not session.poll.poll(max(0, end - time.monotonic()) * 1000):
            return
        session.pgconn.consume_input()
    while session.pgconn.notifies():
        pass
    session.heard = time.monotonic()


def begin(store: PostgresStore, session: Session) -> bool:
    """Not while somebody changes the board: that change gives no hint, and is seen at the next look."""
    known = {"board": store.number}
    [(begun,)] = Line(session, store.wait).end(store.queries["begin_to_listen"], known)
    if begun:
        Line(session, store.wait).end(f"LISTEN dibs_{store.number}")
    return bool(begun)


def end(store: PostgresStore, session: Session) -> None:
    """Hints that nobody reads would pile up at the server."""
    session.listens = False
    line = Line(session, store.wait)
    line.say("UNLISTEN *")
    line.end(store.queries["listen_no_more"], {"board": store.number})


def give(store: PostgresStore, session: Session) -> None:
    """To whoever listens. If it cannot be given, nothing is lost."""
    now = time.monotonic()
    if now < store.hinted + APART:
        return
    store.hinted = now
    with suppress(psycopg.Error):
        Line(session, 0, SILENCE).end(store.queries["hint"], {"board": store.number})
