"""Checks of a server for `doctor`: durability of commits, standbys, clock, pooler, encryption."""

from __future__ import annotations

from dibs.domain.values import Duration, rough_duration
from dibs.storage.store import Finding, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import psycopg

    from dibs.machine import Machine

CLOCK_TOLERANCE = Duration(5 * 1_000_000)
DURABLE = ("fsync", "full_page_writes")


def examine(connection: psycopg.Connection[Any], machine: Machine) -> tuple[Finding, ...]:
    def one(question: str) -> Any:
        row = connection.execute(question.encode()).fetchone()
        return row[0] if row else None

    settings = {name: one(f"SELECT current_setting('{name}')") for name in (*DURABLE, SYNC, NAMES)}
    return (
        Finding("server", f"PostgreSQL {one('SHOW server_version')}"),
        Finding("schema", str(one("SELECT max(number) FROM dibs.migration"))),
        *(check(name, settings[name], fine=settings[name] == "on") for name in DURABLE),
        *replication(connection, settings),
        clock(one, machine),
        encryption(connection),
        pooler(connection),
    )


SYNC, NAMES = "synchronous_commit", "synchronous_standby_names"


def replication(
    connection: psycopg.Connection[Any], settings: dict[str, str]
) -> tuple[Finding, ...]:
    """An acknowledged claim survives the loss of the server only with a synchronous standby."""
    standbys = connection.execute(
        "SELECT coalesce(application_name, ''), state, sync_state FROM pg_stat_replication "
        "ORDER BY application_name"
    ).fetchall()
    return (
        check(SYNC, settings[SYNC], fine=settings[SYNC] in ("on", "remote_apply"), level="wrong"),
        standbys_found(standbys, settings[NAMES], settings[SYNC]),
    )


def standbys_found(standbys: list[Any], names: str, commit: str) -> Finding:
    """The state of the standbys; `names` and `commit` say which ones a commit waits for, and whether."""
    listed = ", ".join(
        f"{name} {state or 'hidden'} {sync or ''}".strip() for name, state, sync in standbys
    )
    waited = sum(sync in ("sync", "quorum") for _, _, sync in standbys)
    # Hidden from roles without the right to see it.
    if any(state is None for _, state, _ in standbys):
        return check("standbys", listed, fine=bool(waited), level="note")
    if names and commit not in ("off", "local") and waited < wanted(names):
        hangs = f"every change hangs until '{names}' connects ({NAMES})"
        return Finding("standbys", f"{listed or 'none'}: {hangs}", "wrong")
    return check(
        "standbys",
        listed or "none: a claim survives a power failure, but not the loss of this server",
        fine=bool(waited),
        level="wrong" if names else "note",
    )


def wanted(names: str) -> int:
    """How many standbys a commit waits for: `FIRST 2 (a, b)`, `ANY 1 (a, b)`, `2 (a, b)`, `a, b`."""
    import re

    number = re.match(r"\s*(?:FIRST\s|ANY\s)?\s*(\d+)\s*\(", names, re.IGNORECASE)
    return int(number[1]) if number else 1


def clock(one: Any, machine: Machine) -> Finding:
    before = machine.wall()
    server = one("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
    after = machine.wall()
    off = Duration((before + after) // 2 - server)
    return check(
        "server's clock",
        f"this machine's is {rough_duration(off)} {'ahead' if off >= 0 else 'behind'}",
        fine=abs(off) <= CLOCK_TOLERANCE,
        level="note",
    )


def encryption(connection: psycopg.Connection[Any]) -> Finding:
    """The effective sslmode: over a network, only verify-full authenticates the server."""
    options = {option.keyword: option.val for option in connection.pgconn.info}
    mode = (options.get(b"sslmode") or b"").decode()
    secured = "encrypted" if connection.pgconn.ssl_in_use else "not encrypted"
    if is_local(connection.info.host, connection.info.hostaddr):
        return Finding("sslmode", f"{mode}; {secured}, on this machine")
    return tls(mode, secured)


def tls(mode: str, secured: str) -> Finding:
    if mode == "verify-full":
        return Finding("sslmode", f"{mode}; {secured}")
    why = "a machine in the middle could pose as the server: use sslmode=verify-full"
    return Finding("sslmode", f"{mode}; {secured}; {why}", "note")


def is_local(host: str, address: str) -> bool:
    """Whether the connection uses a local socket or loopback."""
    if not address:
        return host.startswith(("/", "@"))
    from ipaddress import ip_address

    return ip_address(address).is_loopback


def pooler(connection: psycopg.Connection[Any]) -> Finding:
    """Detects a transaction pooler: the backend's pid is not the one that the driver knows."""
    mine = connection.info.backend_pid
    seen = {connection.execute("SELECT pg_backend_pid()").fetchone()[0] for _ in range(3)}  # type: ignore[index]
    return Finding("pooler", "none" if seen == {mine} else "there is one; dibs needs no session")
