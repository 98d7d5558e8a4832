"""Two hosts on one machine: network namespaces with a link that goes down and up."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from kit.postgres import QUICK, TRUST, Node

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WIRE = "wire"
"""The name of the link, on both hosts."""

TOOLS = ("ip", "unshare", "nsenter")


class Host:
    """A network of its own. It lives as long as this process: a pipe holds it."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.holder.stdout
        if not self.holder.stdout.readline():
            self.close()
            pytest.skip("no network namespaces: not allowed here")

    def inside(self, command: Sequence[Any]) -> list[str]:
        """The command that runs `command` on this host; it is the same process."""
        return ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", "--", *map(str, command)]

    def run(self, command: Sequence[Any], **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.inside(command), text=True, check=True, **options)

    def popen(self, command: Sequence[Any], **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(self.inside(command), text=True, **options)

    def ip(self, *arguments: str) -> None:
        self.run(["ip", *arguments], capture_output=True)

    def close(self) -> None:
        assert self.holder.stdin and self.holder.stdout
        self.holder.stdin.close()
        self.holder.wait()
        self.holder.stdout.close()


class TwoHosts:
    """`server` has a PostgreSQL; `client` reaches it over the link, and by nothing else on TCP.

    The socket of the server is a file, which a test reaches whatever the link does.
    """

    def __init__(self, server: Host, client: Host) -> None:
        self.server, self.client = server, client
        self.node = Node({**QUICK, "listen_addresses": server.address}, TRUST)
        self.node.host = server.address
        uid, gid = self.node.ground.account
        own = ["--setuid", str(uid), "--setgid", str(gid)]
        nsenter, network, *rest = server.inside([])
        self.node.enter = (nsenter, network, *own, *rest)

    def url(self, database: str = "postgres") -> str:
        """As the client names the server."""
        return f"postgresql://postgres@{self.node.host}:{self.node.port}/{database}"

    def down(self) -> None:
        """Nothing passes; the client gets no error, and waits."""
        self.server.ip("link", "set", WIRE, "down")

    def up(self) -> None:
        self.server.ip("link", "set", WIRE, "up")


@contextmanager
def two_hosts() -> Iterator[TwoHosts]:
    """Two hosts with a link that is up, and a server on one of them."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"two hosts need root and {', '.join(missing or TOOLS)}")
    hosts = [Host("10.99.0.1"), Host("10.99.0.2")]
    try:
        connect(*hosts)
        two = TwoHosts(*hosts)
        try:
            two.node.init().start()
            yield two
        finally:
            two.node.remove()
    finally:
        for host in hosts:
            host.close()


def connect(one: Host, two: Host) -> None:
    pids = [str(host.holder.pid) for host in (one, two)]
    ends = [WIRE, "netns", pids[0], "type", "veth", "peer", "name", WIRE, "netns", pids[1]]
    try:
        subprocess.run(["ip", "link", "add", *ends], check=True, capture_output=True)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no link between network namespaces: {error.stderr.decode().strip()}")
    for host in (one, two):
        host.ip("address", "add", f"{host.address}/24", "dev", WIRE)
        host.ip("link", "set", WIRE, "up")
        host.ip("link", "set", "lo", "up")
