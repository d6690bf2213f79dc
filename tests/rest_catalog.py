"""A REST catalog for tests: the protocol's few calls that a load makes, over PyIceberg's own catalog in SQLite, which
checks each commit's requirements and applies it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest, Table
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import AssertRefSnapshotId

CODES: dict[type[Exception], int] = {
    NoSuchTableError: 404,
    NoSuchNamespaceError: 404,
    NamespaceAlreadyExistsError: 409,
    TableAlreadyExistsError: 409,
    CommitFailedException: 409,
}


class RestCatalog:
    """`with RestCatalog(folder) as url`"""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.catalog = SqlCatalog("rest", uri=f"sqlite:///{folder}/rest.db", warehouse=str(folder / "warehouse"))
        self._one_at_a_time = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    def __enter__(self) -> str:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.catalog.close()

    def answer(self, method: str, path: str, body: Any) -> Any:
        parts = [unquote(part) for part in urlsplit(path).path.strip("/").split("/")][1:]
        match [method, *parts]:
            case ["GET", "config"]:
                return {"defaults": {}, "overrides": {}}
            case ["POST", "namespaces"]:
                self.catalog.create_namespace(tuple(body["namespace"]))
                return {"namespace": body["namespace"], "properties": {}}
            case ["GET" | "HEAD", "namespaces", space]:
                return {
                    "namespace": _levels(space),
                    "properties": self.catalog.load_namespace_properties(_levels(space)),
                }
            case ["POST", "namespaces", space, "tables"]:
                return _told(self._create(_levels(space), CreateTableRequest.model_validate(body)))
            case ["GET" | "HEAD", "namespaces", space, "tables", table]:
                return _told(self.catalog.load_table((*_levels(space), table)))
            case ["POST", "namespaces", space, "tables", table]:
                return self._commit((*_levels(space), table), body)
        raise NoSuchTableError(f"{method} {path}")

    def _create(self, space: tuple[str, ...], asked: CreateTableRequest) -> Table:
        return self.catalog.create_table(
            (*space, asked.name),
            asked.table_schema,
            asked.location,
            asked.partition_spec or UNPARTITIONED_PARTITION_SPEC,
            asked.write_order or UNSORTED_SORT_ORDER,
            asked.properties,
        )

    def _commit(self, name: tuple[str, ...], body: Any) -> Any:
        identifier = {"namespace": name[:-1], "name": name[-1]}
        asked = CommitTableRequest.model_validate({**body, "identifier": identifier})
        table = self.catalog.load_table(name)
        # PyIceberg lets nobody branch off an empty table; the protocol does.
        required = tuple(r for r in asked.requirements if not _is_absent(r, table))
        done = self.catalog.commit_table(table, required, asked.updates)
        return json.loads(done.model_dump_json())

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        answer, lock = self.answer, self._one_at_a_time

        class Handler(BaseHTTPRequestHandler):
            def _do(self) -> None:
                sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                with lock:
                    code, told = _attempt(lambda: answer(self.command, self.path, json.loads(sent) if sent else None))
                told = b"" if self.command == "HEAD" else told
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(told)))
                self.end_headers()
                self.wfile.write(told)

            do_GET = do_POST = do_HEAD = _do

            def log_message(self, *_: Any) -> None:
                """Not to the terminal."""

        return Handler


def _attempt(ask: Callable[[], Any]) -> tuple[int, bytes]:
    try:
        return 200, json.dumps(ask()).encode()
    except Exception as error:
        code = CODES.get(type(error), 500)
        kind = type(error).__name__.replace("Error", "Exception").replace("TableAlready", "Already")
        return code, json.dumps({"error": {"message": str(error), "type": kind, "code": code}}).encode()


def _is_absent(requirement: Any, table: Table) -> bool:
    """A branch that must not be there, and is not."""
    if not isinstance(requirement, AssertRefSnapshotId) or requirement.snapshot_id is not None:
        return False
    return requirement.ref not in table.metadata.refs


def _levels(space: str) -> tuple[str, ...]:
    return tuple(space.split("\x1f"))


def _told(table: Table) -> Any:
    return {
        "metadata-location": table.metadata_location,
        "metadata": json.loads(table.metadata.model_dump_json()),
        "config": {},
    }
