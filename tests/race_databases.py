"""What only Postgres, or only MariaDB, lets a writer do: prepared transactions, copies, scripts, partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pymysql
from tests.race_writers import Action, Writer

TABLES = {
    # Writers of one partition each, so that any of them can write straight into its own.
    "postgres": [
        "CREATE TABLE orders (id bigserial, val text, writer int NOT NULL, "
        "updated_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (id, writer)) PARTITION BY LIST (writer)",
        "CREATE TABLE orders_0 PARTITION OF orders FOR VALUES IN (0, 3, 6, 9)",
        "CREATE TABLE orders_1 PARTITION OF orders FOR VALUES IN (1, 4, 7, 10)",
        "CREATE TABLE orders_2 PARTITION OF orders FOR VALUES IN (2, 5, 8, 11)",
        "CREATE INDEX ON orders (updated_at)",
    ],
    "mariadb": [
        "CREATE TABLE orders (id bigint AUTO_INCREMENT PRIMARY KEY, val text, writer int NOT NULL, "
        "updated_at timestamp(6) NOT NULL DEFAULT current_timestamp(6), KEY (updated_at))",
    ],
}


class PostgresWriter(Writer):
    db: psycopg.Connection[tuple[Any, ...]]
    sleep = "pg_sleep({:.3f})"

    def connect(self) -> None:
        # Never prepared: a script of several statements can't be.
        self.db = psycopg.connect(self.url, autocommit=True, prepare_threshold=None, application_name=self.name)

    def close(self) -> None:
        self.db.close()

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        done = self.db.execute(statement.encode())
        return done.fetchall() if done.description else []

    def is_conflict(self, error: Exception) -> bool:
        return isinstance(error, psycopg.errors.DeadlockDetected)

    @property
    def own_actions(self) -> Mapping[str, Action]:
        usual: dict[str, Action] = {
            "prepared": self.prepared,
            "copy": self.copy,
            "partition": self.partition,
            "script": self.script,
            "slow statement": self.slow_statement,
        }
        return {**usual, "id taken early": self.id_taken_early} if self.stage.early_ids else usual

    def prepared(self) -> None:
        """Belongs to no session any more; the server shows when it was prepared, not when its `now()` was."""
        self.begin()
        self.insert()
        self.pause()
        name = f"{self.stage.seed}/{self.value()}"
        self.sql(f"PREPARE TRANSACTION '{name}'")
        self.pause()
        kept = self.rng.random() < self.stage.kept
        self.sql(f"{'COMMIT' if kept else 'ROLLBACK'} PREPARED '{name}'")
        if not kept:
            self._open = 0
        self.committed()

    def copy(self) -> None:
        rows = self.rng.randint(1, 40)
        with self.db.cursor() as cursor, cursor.copy("COPY orders (val, writer) FROM STDIN") as copy:
            for row in range(rows):
                copy.write(f"{self.value()}\t{self.number}\n")
                if row == rows // 2:
                    self.db.pgconn.flush()  # or the server would hear of the first row when all are there
                    self.pause()
        self.wrote(rows)
        self.committed()

    def partition(self) -> None:
        self.begin()
        self.insert(2, into=f"orders_{self.number % 3}")
        self.pause()
        self.commit()

    def script(self) -> None:
        """One message: `now()` is when it arrived, for the second transaction too, which begins seconds later."""
        insert = "INSERT INTO orders (val, writer) VALUES ('{}', {})"
        first, second = (insert.format(self.value(), self.number) for _ in range(2))
        held, between = self.stall(), self.stall()
        self.sql(f"BEGIN; {first}; SELECT {held}; COMMIT; SELECT {between}; BEGIN; {second}; COMMIT")
        self.wrote(2)
        self.committed()

    def id_taken_early(self) -> None:
        """As many ORMs do: a `nextval` seldom needs a transaction id, so nothing shows that this one will write."""
        self.begin()
        taken = self.sql("SELECT nextval('orders_id_seq')")[0][0]
        self.pause()
        self.sql(f"INSERT INTO orders (id, val, writer) VALUES ({taken}, '{self.value()}', {self.number})")
        self.wrote(1)
        self.commit()

    def slow_statement(self) -> None:
        """Its time is taken when it starts, its id before it sleeps, and only then does it write."""
        slept = f"'{self.value()}/' || {self.stall()}::text"
        self.sql(f"INSERT INTO orders (val, writer) VALUES ({slept}, {self.number})")
        self.wrote(1)
        self.committed()


class MariadbWriter(Writer):
    db: pymysql.Connection[Any]
    now = "current_timestamp(6)"
    sleep = "sleep({:.3f})"

    def connect(self) -> None:
        url = urlsplit(self.url)
        self.db = pymysql.connect(
            host=url.hostname,
            port=url.port or 3306,
            user=url.username,
            password=url.password or "",
            database=url.path.lstrip("/"),
            charset="utf8mb4",
            autocommit=True,
        )

    def close(self) -> None:
        if self.db.open:
            self.db.close()

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        with self.db.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def is_conflict(self, error: Exception) -> bool:
        return isinstance(error, pymysql.err.OperationalError) and error.args[0] in (1205, 1213)

    @property
    def own_actions(self) -> Mapping[str, Action]:
        return {
            "xa": self.xa,
            "xa of nobody": self.xa_of_nobody,
            "insert select": self.insert_select,
            "slow rows": self.slow_rows,
            "slow statement": self.slow_statement,
        }

    def _xa_prepared(self) -> str:
        name = f"'{self.stage.seed}/{self.value()}'"
        self.sql(f"XA START {name}")
        self.insert()
        self.pause()
        self.sql(f"XA END {name}")
        self.sql(f"XA PREPARE {name}")
        return name

    def xa(self) -> None:
        name = self._xa_prepared()
        self.pause()
        self._decide(name)

    def xa_of_nobody(self) -> None:
        """Its session has gone; any other one may commit it."""
        name = self._xa_prepared()
        self.close()
        self.pause()
        self.connect()
        self._decide(name)

    def _decide(self, name: str) -> None:
        kept = self.rng.random() < self.stage.kept
        self.sql(f"XA {'COMMIT' if kept else 'ROLLBACK'} {name}")
        if not kept:
            self._open = 0
        self.committed()

    def insert_select(self) -> None:
        rows = self.rng.randint(1, 40)
        self.begin()
        self.sql(
            f"INSERT INTO orders (val, writer) SELECT concat('{self.value()}/', seq), {self.number} "
            f"FROM seq_1_to_{rows}"
        )
        self.wrote(rows)
        self.pause()
        self.commit()

    def slow_rows(self) -> None:
        """One time for all of them, one id after the other."""
        slept = f"concat('{self.value()}/', seq, {self.stall()})"
        self.sql(f"INSERT INTO orders (val, writer) SELECT {slept}, {self.number} FROM seq_1_to_3")
        self.wrote(3)
        self.committed()

    def slow_statement(self) -> None:
        """Its time is taken when it starts; InnoDB hears of it when it has slept."""
        slept = f"concat('{self.value()}/', {self.stall()})"
        self.sql(f"INSERT INTO orders (val, writer) VALUES ({slept}, {self.number})")
        self.wrote(1)
        self.committed()
