"""A PostgreSQL server for the tests of one file, and a proxy in front of it."""

from __future__ import annotations

import pytest

from kit.postgres import QUICK, Node
from kit.postgres_proxy import Proxy


@pytest.fixture(scope="module")
def node():
    node = Node(QUICK).init().start()
    yield node
    node.remove()


@pytest.fixture
def proxy(node):
    with Proxy(node.socket) as proxy:
        yield proxy
