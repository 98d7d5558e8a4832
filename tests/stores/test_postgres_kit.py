"""The ground on which the PostgreSQL store is tested holds: every helper does what it says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import psycopg
import pytest

from kit import postgres
from kit.postgres import PASSWORD, QUICK, Node, server, until

FORK_AND_HANG = """
import time
from kit.postgres import QUICK, Node
node = Node(QUICK).init().start()
print(node.ground.keeper.pid, node.pid, node.ground.folder, flush=True)
time.sleep(600)
"""


def value(url, question, **options):
    with psycopg.connect(url, **options) as connection:
        return connection.execute(question).fetchone()[0]


def is_gone(pid):
    return not psutil.pid_exists(pid) or postgres.is_zombie(pid)


def own_server():
    if server().node is None:
        pytest.skip("the server that DIBS_TEST_PG_URL names is not ours to arrange")
    return server()


# server()


def test_a_new_database_is_empty_and_of_its_own():
    one, two = server().new_database(), server().new_database()
    with psycopg.connect(one) as connection:
        connection.execute("CREATE TABLE t (a int)")
    assert value(one, "SELECT to_regclass('t') IS NOT NULL")
    assert value(two, "SELECT to_regclass('t') IS NULL")


def test_a_database_is_made_from_a_template_that_is_filled_once():
    filled = []

    def fill(url):
        filled.append(url)
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE t AS SELECT 7 AS a")

    for _ in range(2):
        url = server().new_database(server().template("the test of templates", fill))
        assert value(url, "SELECT a FROM t") == 7
    assert len(filled) == 1


def test_a_client_on_tcp_is_asked_for_the_password_and_one_on_the_socket_is_not():
    ours = own_server()
    with_password = ours.new_database(tcp=True)
    assert value(with_password, "SELECT 1") == 1
    without = psycopg.conninfo.make_conninfo(with_password, password="wrong")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(without)
    assert value(ours.url, "SELECT 1") == 1


def test_the_password_can_come_from_a_passfile(tmp_path):
    ours = own_server()
    role = ours.new_role("kit_passfile")
    passfile = tmp_path / "passfile"
    passfile.write_text(f"*:*:*:{role}:{PASSWORD}\n")
    passfile.chmod(0o600)
    url = f"postgresql://{role}@127.0.0.1:{ours.node.port}/postgres?passfile={passfile}"
    assert value(url, "SELECT current_user") == role


def test_a_server_that_was_named_is_used_in_place_of_ours(monkeypatch):
    ours = own_server()
    monkeypatch.setenv("DIBS_TEST_PG_URL", ours.url)
    named = server.__wrapped__()
    url = named.new_database()
    assert named.node is None
    assert value(url, "SELECT 1") == 1
    named.drop_databases()
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(url)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "terminated"])
def test_nothing_is_left_when_the_tests_are_ended(end):
    tests = subprocess.Popen(
        [sys.executable, "-c", FORK_AND_HANG],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(postgres.__file__).parents[1])},
    )
    keeper, node, folder = tests.stdout.readline().split()
    children = psutil.Process(int(node)).children()
    assert children
    tests.send_signal(end)
    tests.communicate()
    until(lambda: is_gone(int(keeper)), "the end of the keeper")
    assert is_gone(int(node)) and all(is_gone(child.pid) for child in children)
    assert not Path(folder).exists()


# A node of one's own


@pytest.fixture
def node():
    node = Node(QUICK).init().start()
    yield node
    node.remove()


def test_a_node_that_was_killed_starts_again_with_what_was_committed(node):
    with node.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 7 AS a")
    family = psutil.Process(node.pid).children()
    node.kill()
    assert all(is_gone(child.pid) for child in family)
    with pytest.raises(psycopg.OperationalError):
        node.connect()
    node.start()
    assert node.ask("SELECT a FROM t") == 7


def test_a_setting_holds_when_it_was_changed(node):
    node.configure({"deadlock_timeout": "77ms"})
    assert node.ask("SHOW deadlock_timeout") == "77ms"


def test_every_node_has_a_system_identifier_of_its_own(node):
    question = "SELECT system_identifier FROM pg_control_system()"
    assert node.ask(question) != value(server().url, question)
