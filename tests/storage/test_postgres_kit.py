"""The ground on which the PostgreSQL store is tested holds: every helper does what it says."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import psycopg
import pytest

from kit.netns import two_hosts
from kit.postgres import PASSWORD, QUICK, Node, Server, pooler, server
from kit.postgres_cluster import SYSTEM, TIMELINE, Cluster, copy_database
from kit.postgres_ground import is_zombie, until
from kit.postgres_proxy import AFTER, BEFORE, DURING, Proxy

FORK_AND_HANG = """
import time
from kit.postgres import QUICK, Node
node = Node(QUICK).init().start()
print(node.ground.keeper.pid, node.pid, node.ground.folder, flush=True)
time.sleep(600)
"""

ASK_BY_TCP = """
import sys, psycopg
print(psycopg.connect(sys.argv[1], connect_timeout=2).execute("SELECT 7").fetchone()[0])
"""


def value(url, question, **options):
    with psycopg.connect(url, **options) as connection:
        return connection.execute(question).fetchone()[0]


def execute(url, statement):
    with psycopg.connect(url) as connection:
        connection.execute(statement)


def is_gone(pid):
    return not psutil.pid_exists(pid) or is_zombie(pid)


def own_server():
    if server().node is None:
        pytest.skip("the server that DIBS_TEST_PG_URL names is not ours to arrange")
    return server()


# server()


def test_a_new_database_is_empty_and_of_its_own():
    one, two = server().new_database(), server().new_database()
    execute(one, "CREATE TABLE t (a int)")
    assert value(one, "SELECT to_regclass('t') IS NOT NULL")
    assert value(two, "SELECT to_regclass('t') IS NULL")


def test_a_database_is_made_from_a_template_that_is_filled_once():
    filled = []

    def fill(url):
        filled.append(url)
        execute(url, "CREATE TABLE t AS SELECT 7 AS a")

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
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
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


@pytest.fixture(scope="module")
def node():
    """Every test leaves it running."""
    node = Node(QUICK).init().start()
    yield node
    node.remove()


def test_a_node_that_was_killed_starts_again_with_what_was_committed(node):
    execute(node.url(), "CREATE TABLE t AS SELECT 7 AS a")
    family = psutil.Process(node.pid).children()
    client = node.connect()
    node.kill()
    assert all(is_gone(child.pid) for child in family)
    with pytest.raises(psycopg.OperationalError) as lost:
        client.execute("SELECT 1")
    assert lost.value.sqlstate is None, "nobody was left to take leave"
    with pytest.raises(psycopg.OperationalError):
        node.connect()
    node.start()
    assert node.query("SELECT a FROM t") == 7


def test_a_setting_holds_when_it_was_changed(node):
    node.configure({"deadlock_timeout": "77ms"})
    assert node.query("SHOW deadlock_timeout") == "77ms"


def test_a_dump_carries_a_database_to_a_server_with_another_identifier(node):
    source = server().new_database()
    execute(source, "CREATE TABLE t AS SELECT 7 AS a")
    target = Server(node.url(), node).new_database()
    copy_database(source, target)
    assert value(target, "SELECT a FROM t") == 7
    assert node.query(SYSTEM) != value(server().url, SYSTEM)


# Proxy


@pytest.fixture
def proxy(node):
    with Proxy(node.socket) as proxy:
        yield proxy


@pytest.fixture
def behind(node, proxy):
    """The URL of a database with one empty table, through the proxy; and without it."""
    url = Server(node.url(), node).new_database()
    execute(url, "CREATE TABLE t (a int)")
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    return proxy.url(name), url


def test_the_proxy_counts_round_trips_and_says_what_was_executed(proxy, behind):
    with psycopg.connect(behind[0]) as connection:
        proxy.reset()
        connection.execute("INSERT INTO t VALUES (%(a)s)", {"a": 1})
        connection.commit()
        assert (proxy.round_trips, proxy.statements) == (
            3,
            ["BEGIN", "INSERT INTO t VALUES ($1)", "COMMIT"],
        )


def test_the_proxy_counts_a_pipeline_as_one_round_trip(proxy, behind):
    with psycopg.connect(behind[0], autocommit=True) as connection:
        proxy.reset()
        with connection.pipeline():
            for statement in ("BEGIN", "INSERT INTO t VALUES (1)", "COMMIT"):
                connection.execute(statement)
        assert len(proxy.statements) == 3
        assert proxy.round_trips == 1


def test_the_proxy_counts_an_answer_that_is_read_within_a_pipeline(proxy, behind):
    with psycopg.connect(behind[0], autocommit=True) as connection:
        proxy.reset()
        with connection.pipeline():
            connection.execute("BEGIN")
            connection.execute("INSERT INTO t VALUES (1) RETURNING a").fetchone()
            connection.execute("COMMIT")
        assert proxy.round_trips == 2


@pytest.mark.parametrize(("when", "committed"), [(BEFORE, {0}), (DURING, {0, 1}), (AFTER, {1})])
def test_the_proxy_cuts_a_commit(proxy, behind, when, committed):
    connection = psycopg.connect(behind[0])
    connection.execute("INSERT INTO t VALUES (1)")
    backend = connection.info.backend_pid
    proxy.cut_at(when)
    try:
        connection.commit()
    except psycopg.OperationalError:
        assert connection.broken
    else:
        assert when == DURING, "only then the answer may come just before the cut"
    assert proxy.sprung.wait(60)
    until(lambda: is_gone(backend), "the end of the session on the server")
    assert value(behind[1], "SELECT count(*) FROM t") in committed
    execute(behind[0], "INSERT INTO t VALUES (2)")
    connection.close()


def test_the_proxy_cuts_every_connection_and_lets_none_through_until_told_so(proxy, behind):
    connections = [psycopg.connect(behind[0]) for _ in range(3)]
    proxy.refuse()
    for connection in connections:
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(behind[0])
    proxy.accept()
    assert value(behind[0], "SELECT 1") == 1


def test_a_frozen_proxy_tells_nobody(proxy, behind):
    answers = queue.SimpleQueue()
    with psycopg.connect(behind[0], autocommit=True) as connection:
        proxy.freeze()
        asking = threading.Thread(
            target=lambda: answers.put(connection.execute("SELECT 1").fetchone())
        )
        asking.start()
        with pytest.raises(queue.Empty):
            answers.get(timeout=0.2)
        proxy.thaw()
        assert answers.get(timeout=60) == (1,)
        asking.join()


# Cluster


def test_what_a_synchronous_standby_acknowledged_survives_the_death_of_the_primary():
    with Cluster(synchronous=True) as cluster:
        execute(cluster.url(), "CREATE TABLE t AS SELECT 7 AS a")
        before = [cluster.primary.query(question) for question in (SYSTEM, TIMELINE)]
        cluster.primary.kill()
        cluster.promote()
        assert value(cluster.url(), "SELECT a FROM t") == 7
        after = [cluster.primary.query(question) for question in (SYSTEM, TIMELINE)]
        assert after == [before[0], before[1] + 1]
        cluster.rebuild_standby()
        assert cluster.standby.query("SELECT a FROM t") == 7


def test_a_synchronous_primary_commits_nothing_while_the_link_is_cut():
    with Cluster(synchronous=True) as cluster:
        execute(cluster.url(), "CREATE TABLE t (a int)")
        cluster.cut()
        notices = []
        with psycopg.connect(cluster.url()) as connection:
            connection.add_notice_handler(lambda notice: notices.append(notice.sqlstate))
            connection.execute("INSERT INTO t VALUES (1)")
            commit = threading.Thread(target=connection.commit)
            commit.start()
            waits = f"SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = {connection.info.backend_pid}"
            until(lambda: cluster.primary.query(waits), "a commit that waits for the standby")
            assert cluster.primary.query("SELECT count(*) FROM t") == 0
            cluster.primary.query(f"SELECT pg_cancel_backend({connection.info.backend_pid})")
            commit.join()
        assert notices == ["01000"]
        cluster.join()
        assert cluster.standby.query("SELECT count(*) FROM t") == 1


def test_what_an_asynchronous_primary_said_after_the_cut_is_lost_by_a_promotion():
    with Cluster(synchronous=False) as cluster:
        execute(cluster.url(), "CREATE TABLE t (a int)")
        cluster.await_streaming()
        cluster.cut()
        execute(cluster.url(), "INSERT INTO t VALUES (1)")
        cluster.primary.kill()
        cluster.promote()
        assert value(cluster.url(), "SELECT count(*) FROM t") == 0


@pytest.mark.parametrize(("new_timeline", "later"), [(True, 1), (False, 0)])
def test_a_restore_brings_back_what_was_at_the_backup(new_timeline, later):
    with Cluster(synchronous=False) as cluster:
        execute(cluster.url(), "CREATE TABLE t AS SELECT 1 AS a")
        backup, timeline = cluster.backup(), cluster.primary.query(TIMELINE)
        execute(cluster.url(), "INSERT INTO t VALUES (2)")
        cluster.restore(backup, new_timeline=new_timeline)
        assert value(cluster.url(), "SELECT count(*) FROM t") == 1
        assert cluster.primary.query(TIMELINE) == timeline + later


# pooler()


def test_two_clients_of_a_pooler_take_turns_in_one_session(node):
    with pooler(node, size=1) as address:
        url = f"{address}/postgres"
        one, two = (psycopg.connect(url, prepare_threshold=None) for _ in range(2))
        with one, two:
            pids = set()
            for connection in (one, two):
                pids.add(connection.execute("SELECT pg_backend_pid()").fetchone()[0])
                connection.commit()
            assert len(pids) == 1


# two_hosts()


def test_two_hosts_lose_each_other_when_the_link_is_down_and_find_each_other_when_it_is_up():
    connect = [sys.executable, "-c", ASK_BY_TCP]
    with two_hosts() as hosts:
        command = [*connect, hosts.url()]
        assert hosts.client.run(command, capture_output=True).stdout == "7\n"
        hosts.down()
        with pytest.raises(subprocess.CalledProcessError):
            hosts.client.run(command, capture_output=True)
        assert hosts.node.query("SELECT 7") == 7, "a test still reaches the server by its socket"
        hosts.up()
        until(lambda: answers(hosts, command), "an answer over the link")


def answers(hosts, command):
    client = hosts.client.popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return client.communicate()[0] == "7\n"
