"""Notifications: LISTEN/NOTIFY wakes clients that wait for a change of a board.

A notification can be lost, and nothing depends on it: clients poll in any case. It is sent after a change,
in a separate transaction, and only if a client listens (docs/decisions/0013-waiting-for-changes.md).
"""

from __future__ import annotations

import time
from contextlib import suppress

import psycopg

from dibs.storage.postgres.pipeline import Pipeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.storage.postgres.pipeline import Server, ServerConnection

APART = 0.5
"""Minimum seconds between two notifications that a client sends, and between two that one handles: on a busy
board, clients read no more often than by polling.
"""

SILENCE = 1.0
"""Timeout in seconds: the change is committed, and does not wait longer for a slow server."""


def wait(store: Server, session: ServerConnection, seconds: float) -> None:
    """Waits for a notification, at most `seconds`; after subscribing returns at once, to read first."""
    if not session.listens:
        session.listens = subscribe(store, session)
        time.sleep(0 if session.listens else seconds)
        return
    end = time.monotonic() + seconds
    time.sleep(max(0, min(end, session.last_notified + APART) - time.monotonic()))
    if not session.pgconn.notifies():
        if not session.poll.poll(max(0, end - time.monotonic()) * 1000):
            return
        session.pgconn.consume_input()
    while session.pgconn.notifies():
        pass
    session.last_notified = time.monotonic()


def subscribe(store: Server, session: ServerConnection) -> bool:
    """Subscribes, unless a change is in progress: it sends no notification, and the next poll sees it."""
    known = {"board": store.number}
    [(begun,)] = Pipeline(session, store.wait).end(store.queries["begin_to_listen"], known)
    if begun:
        Pipeline(session, store.wait).end(f"LISTEN dibs_{store.number}")
    return bool(begun)


def end(store: Server, session: ServerConnection) -> None:
    """Unsubscribes: unread notifications would pile up on the server."""
    session.listens = False
    pipeline = Pipeline(session, store.wait)
    pipeline.queue("UNLISTEN *")
    pipeline.end(store.queries["unlisten"], {"board": store.number})


def notify_listeners(store: Server, session: ServerConnection) -> None:
    """Notifies the listeners, rate-limited. Failures are ignored: clients poll anyway."""
    now = time.monotonic()
    if now < store.last_notify + APART:
        return
    store.last_notify = now
    with suppress(psycopg.Error):
        Pipeline(session, 0, SILENCE).end(store.queries["notify"], {"board": store.number})
