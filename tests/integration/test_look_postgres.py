"""Each known way to commit below the mark on Postgres: nothing is lost, or the guarantee says that it may be."""

from __future__ import annotations

import threading
from urllib.parse import urlsplit

import psycopg
import pytest
from tests.lab import Lab, ok
from tests.late import BY_ID, BY_TIME, NEW, add, filled_by_database, meanwhile, session, shows, until_all_is_in
from tests.services import PostgresServer, wait_for

SLOW_SCRIPT = (
    "BEGIN; INSERT INTO orders (val) VALUES ('first'); SELECT pg_sleep(1.2); COMMIT; "
    "BEGIN; INSERT INTO orders (val) VALUES ('second'); SELECT pg_sleep(1.2); COMMIT"
)


@pytest.fixture
def world(pg_lab: Lab) -> Lab:
    return filled_by_database(pg_lab)


@pytest.mark.parametrize("change", [BY_TIME, BY_ID])
@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_a_transaction_that_commits_late(world: Lab, change: str, mode: str) -> None:
    project = world.project(mode=mode, change=change)
    add(world, "early")
    with session(world) as late:
        late.execute("BEGIN")
        late.execute(NEW.format("late").encode())
        add(world, "newer")
        result = ok(project.run("orders"))
        assert result.guarantee == "fenced"
        if mode == "upsert":
            assert shows(world, "newer"), "a long transaction never stops fresh data in an idempotent mode"
        else:
            assert result.rows_waiting == 2, "append counts the rows that wait"
        late.execute("COMMIT")
    until_all_is_in(project, world)


@pytest.mark.parametrize("change", [BY_TIME, BY_ID])
def test_a_prepared_transaction(world: Lab, change: str) -> None:
    """Prepared before one look, or between two: it has no session and no virtual id any more."""
    project = world.project(mode="append", change=change)
    with session(world) as late, session(world) as other:
        for connection, name in ((late, "before"), (other, "between")):
            connection.execute("BEGIN")
            connection.execute(NEW.format(name).encode())
        late.execute("PREPARE TRANSACTION 'before'")
        add(world, "newer")
        assert ok(project.run("orders")).rows_waiting == 1
        other.execute("PREPARE TRANSACTION 'between'")
        late.execute("COMMIT PREPARED 'before'")
        assert ok(project.run("orders")).rows_waiting == 2
        other.execute("COMMIT PREPARED 'between'")
    until_all_is_in(project, world)


def test_a_prepared_transaction_outlives_a_restart(tmp_path_factory: pytest.TempPathFactory, spark: object) -> None:
    with PostgresServer() as server:
        lab = filled_by_database(Lab(tmp_path_factory.mktemp("p"), "postgres", server.create_database(), spark))  # type: ignore[arg-type]
        project = lab.project(mode="append", change=BY_TIME)
        with session(lab) as late:
            late.execute("BEGIN")
            late.execute(NEW.format("late").encode())
            late.execute("PREPARE TRANSACTION 'late'")
        add(lab, "newer")
        assert ok(project.run("orders")).rows_waiting == 1
        server.restart()
        assert ok(project.run("orders")).rows_waiting == 1
        with session(lab) as again:
            again.execute("COMMIT PREPARED 'late'")
        until_all_is_in(project, lab)


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_several_transactions_in_one_message(world: Lab, mode: str) -> None:
    """now() is the message's arrival for all of them, so the second begins with a time that was over long ago."""
    project = world.project(mode=mode, change=BY_TIME)
    add(world, "early")
    done = threading.Event()

    def script() -> None:
        try:
            with psycopg.connect(world.url, autocommit=True) as connection:
                connection.execute(SLOW_SCRIPT.encode())
        finally:
            done.set()

    with meanwhile(script):
        while not done.is_set():
            add(world, "newer")
            ok(project.run("orders"))
    until_all_is_in(project, world)


def test_a_column_that_rounds_up(pg_lab: Lab) -> None:
    world = filled_by_database(
        pg_lab,
        "CREATE TABLE orders (id bigserial PRIMARY KEY, val text, updated_at timestamptz(0) NOT NULL DEFAULT now())",
    )
    project = world.project(mode="append", change=BY_TIME)
    for round_ in range(3):
        with session(world) as late:
            late.execute("BEGIN")
            late.execute(NEW.format(f"late {round_}").encode())
            add(world, "newer")
            ok(project.run("orders"))
            late.execute("COMMIT")
            ok(project.run("orders"))
    until_all_is_in(project, world)


def test_sessions_that_publish_nothing_weaken_the_guarantee(world: Lab) -> None:
    project = world.project(mode="append", change=BY_TIME)
    add(world, "early")
    with session(world) as silent:
        silent.execute("SET track_activities = off")
        guarantee = project.plan("orders").guarantee
        assert guarantee.name == "delayed"
        assert "track_activities" in guarantee.reason
        assert ok(project.run("orders")).rows_waiting == 1
    wait_for(lambda: project.plan("orders").guarantee.name == "fenced")


def test_sessions_that_may_not_be_seen_weaken_it_until_the_right_is_granted(world: Lab) -> None:
    url = urlsplit(world.url)
    role = f"plain_{url.path[1:]}"
    world.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'plain'; GRANT SELECT ON orders TO {role}")
    try:
        with session(world) as app:
            app.execute("SELECT 1")
            world.url, own = f"postgresql://{role}:plain@{url.hostname}:{url.port}{url.path}", world.url
            project = world.project(mode="append", change=BY_TIME)
            guarantee = project.plan("orders").guarantee
            assert (str(guarantee), guarantee.fix) == ("delayed 5m", f"GRANT pg_read_all_stats TO {role};")
            app.execute(guarantee.fix.encode())
            project.close()
            assert str(world.load().plan("orders").guarantee) == "fenced"
            by_id = world.project(mode="append", change=BY_ID)
            app.execute(f"REVOKE pg_read_all_stats FROM {role}".encode())
            assert str(by_id.plan("orders").guarantee) == "fenced", "locks are there for all to see"
    finally:
        world.url = own
        world.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


@pytest.mark.parametrize("change", [BY_TIME, BY_ID])
def test_rows_straight_into_a_partition_and_through_the_parent_of_one(pg_lab: Lab, change: str) -> None:
    pg_lab.execute(
        "DROP TABLE orders; "
        "CREATE TABLE family (id bigserial, val text, updated_at timestamptz NOT NULL DEFAULT now()) "
        "PARTITION BY RANGE (id); "
        "CREATE TABLE orders PARTITION OF family FOR VALUES FROM (1) TO (1000) PARTITION BY RANGE (id); "
        "CREATE TABLE leaf PARTITION OF orders FOR VALUES FROM (1) TO (500)"
    )
    project = pg_lab.project(mode="append", change=change)
    with session(pg_lab) as straight, session(pg_lab) as through:
        for connection, table in ((straight, "leaf"), (through, "family")):
            connection.execute("BEGIN")
            connection.execute(f"INSERT INTO {table} (val) VALUES ('{table}')".encode())
        add(pg_lab, "newer")
        assert ok(project.run("orders")).rows_waiting == 1
        straight.execute("COMMIT")
        assert ok(project.run("orders")).rows_waiting == 2
        through.execute("COMMIT")
    until_all_is_in(project, pg_lab)


@pytest.mark.parametrize(
    "source", ["{connection: shop, table: shown}", "{connection: shop, query: 'select * from shown where id > 0'}"]
)
def test_a_view_and_a_query_are_fenced_by_the_tables_behind_them(world: Lab, source: str) -> None:
    world.execute("CREATE VIEW inner_view AS SELECT * FROM orders")
    world.execute("CREATE VIEW shown AS SELECT id, val, updated_at FROM inner_view WHERE val <> 'hidden'")
    project = world.project(mode="append", change=BY_ID, source=source)
    with session(world) as late:
        late.execute("BEGIN")
        late.execute(NEW.format("late").encode())
        add(world, "newer")
        result = ok(project.run("orders"))
        assert (result.guarantee, result.rows_waiting) == ("fenced", 1)
        late.execute("COMMIT")
    until_all_is_in(project, world)


def test_a_number_drawn_before_the_insert_needs_the_fence_of_all_transactions(world: Lab) -> None:
    declared = BY_ID.replace("wait", "fence: transactions, wait")
    project = world.project(mode="append", change=declared)
    with session(world) as late:
        late.execute("BEGIN")
        drawn = late.execute("SELECT nextval('orders_id_seq')").fetchone()
        add(world, "newer")
        assert ok(project.run("orders")).rows_waiting == 1
        late.execute("INSERT INTO orders VALUES (%s, 'late', now())", drawn)
        late.execute("COMMIT")
    until_all_is_in(project, world)


def test_a_number_drawn_before_the_insert_is_lost_with_the_fence_of_the_table(world: Lab) -> None:
    """Why the option is there, and why the docs name it."""
    project = world.project(mode="append", change=BY_ID)
    with session(world) as late:
        late.execute("BEGIN")
        drawn = late.execute("SELECT nextval('orders_id_seq')").fetchone()
        add(world, "newer")
        assert ok(project.run("orders")).rows.inserted == 1
        late.execute("INSERT INTO orders VALUES (%s, 'late', now())", drawn)
        late.execute("COMMIT")
    assert ok(project.run("orders")).nothing_new
    assert not shows(world, "late")


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("ALTER SEQUENCE orders_id_seq CACHE 20", "hands out values in blocks"),
        ("ALTER SEQUENCE orders_id_seq CYCLE", "does not only grow"),
        ("ALTER TABLE orders ALTER id DROP DEFAULT", "has no sequence as its default"),
        ("ALTER TABLE orders RENAME TO base; CREATE MATERIALIZED VIEW orders AS SELECT * FROM base", "materialized"),
    ],
)
def test_values_that_need_not_come_in_order_weaken_the_guarantee(world: Lab, statement: str, reason: str) -> None:
    project = world.project(mode="append", change=BY_ID)
    assert project.plan("orders").guarantee.name == "fenced"
    world.execute(statement)
    guarantee = project.plan("orders").guarantee
    assert guarantee.name == "delayed"
    assert reason in guarantee.reason


def test_plan_and_status_say_why_it_is_weaker_and_what_to_change(world: Lab) -> None:
    world.execute("ALTER SEQUENCE orders_id_seq CACHE 20")
    project = world.project(mode="append", change=BY_ID)
    add(world, "one")
    caveat = project.plan("orders").guarantee.caveat
    assert "ALTER SEQUENCE orders_id_seq CACHE 1;" in caveat
    ok(project.run("orders"))
    status = project.status("orders")
    assert (status.guarantee, status.notes[0]) == ("delayed 5m", f"delayed 5m: {caveat}")
    assert status.notes[1].startswith("1 row waits to be loaded (rows have been waiting since 20")


def test_an_identity_column_is_as_good_as_a_default(pg_lab: Lab) -> None:
    create = "CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY, val text, updated_at timestamptz)"
    project = filled_by_database(pg_lab, create).project(mode="append", change=BY_ID)
    assert project.plan("orders").guarantee.name == "fenced"


def test_a_table_fed_by_logical_replication_is_never_fenced(world: Lab, postgres: PostgresServer) -> None:
    origin = postgres.create_database()
    slot = f"slot_{urlsplit(origin).path[1:]}"
    with psycopg.connect(origin, autocommit=True) as there, session(world) as here:
        there.execute("CREATE TABLE orders (id bigserial PRIMARY KEY, val text, updated_at timestamptz DEFAULT now())")
        there.execute("CREATE PUBLICATION all_of_it FOR TABLE orders")
        there.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [slot])
        link = f"CREATE SUBSCRIPTION {slot} CONNECTION '{origin}' PUBLICATION all_of_it WITH (create_slot = false)"
        here.execute(link.encode())
        try:
            there.execute(NEW.format("from elsewhere").encode())
            wait_for(lambda: here.execute("SELECT count(*) FROM orders").fetchall() == [(1,)])
            guarantee = world.project(mode="append", change=BY_TIME).plan("orders").guarantee
            assert guarantee.name == "delayed"
            assert "fed by logical replication" in guarantee.reason
            world.url = origin
            plan = world.project(mode="append", change=BY_TIME).plan("orders")
            assert plan.guarantee.name == "fenced"
            assert plan.pending is None, "who sends the log is at one query for ever, and writes nothing"
        finally:
            here.execute(f"DROP SUBSCRIPTION {slot}".encode())
    postgres.drop_database(origin)


def test_a_column_without_a_zone_is_fenced_only_when_its_zone_is_declared(pg_lab: Lab) -> None:
    """Two writers in different zones: one writes hours below the other, which only a lookback finds."""
    create = "CREATE TABLE orders (id bigserial PRIMARY KEY, val text, updated_at timestamp NOT NULL DEFAULT now())"
    world = filled_by_database(pg_lab, create)
    project = world.project(mode="append", change=BY_TIME)
    guarantee = project.plan("orders").guarantee
    assert guarantee.name == "delayed"
    assert "has no time zone" in guarantee.reason
    assert "timezone" in guarantee.fix
    declared = BY_TIME.replace("wait", "timezone: UTC, wait")
    assert world.project(mode="append", change=declared).plan("orders").guarantee.name == "fenced"
    back = world.project(mode="upsert", change=declared.replace("wait", "lookback: 26h, wait"))
    for zone in ("Pacific/Kiritimati", "UTC", "America/Adak"):
        with session(world) as writer:
            writer.execute(f"SET timezone = '{zone}'".encode())
            writer.execute(NEW.format(zone).encode())
        ok(back.run("orders"))
    world.assert_equal()


def test_our_own_readers_are_no_writers(world: Lab) -> None:
    from floodmark.sources.postgres.fence import MARK_READER

    project = world.project(mode="append", change=BY_TIME)
    add(world, "early")
    until_all_is_in(project, world)
    with session(world) as reader:
        reader.execute("BEGIN READ ONLY")
        reader.execute(MARK_READER.encode())
        add(world, "newer")
        until_all_is_in(project, world)
