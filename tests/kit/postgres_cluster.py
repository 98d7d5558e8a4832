"""A primary and its standby, for what happens when servers die, part, and come back."""

from __future__ import annotations

import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

from kit.postgres import DURABLE, TRUST, Node
from kit.postgres_ground import programs, until
from kit.postgres_proxy import Proxy

if TYPE_CHECKING:
    from pathlib import Path

NO_STANDBY = {"synchronous_standby_names": ""}
ONE_STANDBY = {"synchronous_standby_names": "FIRST 1 (standby)"}

TIMELINE = "SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int"
"""`pg_control_checkpoint()` tells it too, but only after the next checkpoint."""

SYSTEM = "SELECT system_identifier FROM pg_control_system()"


class Cluster:
    """`primary` and `standby` are roles: a promotion exchanges them."""

    def __init__(self, *, synchronous: bool, place: str | None = None) -> None:
        self.synchronous = synchronous
        self.primary = Node(DURABLE, TRUST, place).init().start()
        self.standby = Node(DURABLE, TRUST, place)
        self.nodes = (self.primary, self.standby)
        self.link = Proxy(self.primary.socket)
        self.rebuild_standby()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.link.close()
        for node in self.nodes:
            node.remove()

    def url(self, database: str = "postgres") -> str:
        """Both nodes; a client finds the one that takes writes."""
        hosts = ",".join(f"{node.host}:{node.port}" for node in self.nodes)
        return f"postgresql://postgres@{hosts}/{database}?target_session_attrs=read-write"

    def rebuild_standby(self) -> None:
        """The standby as a new copy of the primary: at the beginning, and after a promotion."""
        self.standby.end_with(signal.SIGQUIT)
        self.link.target = self.primary.socket
        self.link.accept()
        copy_data(self.primary, self.standby.data)
        address = f"host=127.0.0.1 port={self.link.port} user=postgres application_name=standby"
        self.standby.settings |= {"primary_conninfo": address, **NO_STANDBY}
        sign(self.standby, "standby.signal")
        self.standby.start()
        self.await_streaming()
        self.primary.configure(ONE_STANDBY if self.synchronous else NO_STANDBY)
        self.await_streaming()

    def await_streaming(self) -> None:
        """Waits until the standby has everything that the primary has."""
        wanted = "sync" if self.primary.settings.get("synchronous_standby_names") else "async"
        question = (
            "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
            f" AND sync_state = '{wanted}' AND replay_lsn >= pg_current_wal_flush_lsn()"
        )
        until(lambda: self.primary.query(question), "a standby that follows")

    def cut(self) -> None:
        """The two no longer reach each other. A synchronous primary then commits nothing."""
        self.link.refuse()

    def join(self) -> None:
        self.link.accept()
        self.await_streaming()

    def promote(self) -> None:
        """The standby takes writes from now on, on a new timeline, and waits for nobody.

        The former primary is not told: whoever wants it dead kills it first.
        """
        assert self.standby.query("SELECT pg_promote(true, 30)")
        self.primary, self.standby = self.standby, self.primary

    def backup(self) -> Path:
        """A copy of the primary as it is now."""
        folder = self.primary.ground.new_folder() / "data"
        copy_data(self.primary, folder)
        return folder

    def restore(self, backup: Path, *, new_timeline: bool = True) -> None:
        """The primary as it was at the backup; the standby is ended.

        By the book this begins a new timeline. Whoever forgets the signal file gets the old
        timeline again, with another history on it.
        """
        for node in self.nodes:
            node.end_with(signal.SIGQUIT)
        self.primary.configure({"restore_command": "false", **NO_STANDBY})
        shutil.rmtree(self.primary.data)
        self.primary.ground.run(["cp", "-a", backup, self.primary.data])
        if new_timeline:
            sign(self.primary, "recovery.signal")
        self.primary.start()
        until(lambda: not self.primary.query("SELECT pg_is_in_recovery()"), "the end of recovery")


def copy_data(source: Node, data: Path) -> None:
    """Everything, by pg_basebackup."""
    shutil.rmtree(data, ignore_errors=True)
    address = ["-h", source.folder, "-p", source.port, "-U", "postgres"]
    options = ["--checkpoint=fast", "--wal-method=stream", "--no-sync", "--no-manifest"]
    source.ground.run([programs() / "pg_basebackup", "-D", data, *address, *options])


def sign(node: Node, name: str) -> None:
    node.ground.run(["touch", node.data / name])


def copy_database(source: str, target: str) -> None:
    """What a dump holds of one database, into another that is empty: by URL."""
    dump = subprocess.run(
        [programs() / "pg_dump", "--no-owner", source], check=True, capture_output=True
    )
    options = ["--quiet", "--set=ON_ERROR_STOP=1", "--no-psqlrc"]
    subprocess.run(
        [programs() / "psql", *options, target], check=True, capture_output=True, input=dump.stdout
    )
