"""A folder to write files in, and connections of no real kind."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import Field, field_validator

from floodmark.config import load_project, project_from_dict
from floodmark.errors import ConfigError, MissingExtra
from floodmark.model.options import Options
from floodmark.model.spec import ConnectionOptions, ProjectSpec


class Pool(Options):
    size: int = 4


class ShopConnection(ConnectionOptions):
    type: Literal["shop"]
    url: str
    password: str | None = None
    port: int = 5432
    ratio: float = 1.0
    ssl: bool = False
    pool: Pool = Pool()
    pools: dict[str, Pool] = Field(default_factory=dict)
    token: str | None = None
    flags: list[Literal["fast", "safe"]] = Field(default_factory=list)
    signature: str | None = None

    @field_validator("token")
    @classmethod
    def _token_is_long(cls, value: str | None) -> str | None:
        if value is not None and len(value) < 20:
            raise ValueError(f"token {value} is too short")
        return value

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.password or "", self.signature or "")


class LakeConnection(ConnectionOptions):
    type: Literal["lake"]
    path: str


CLASSES: dict[str, type[ConnectionOptions]] = {"lake": LakeConnection, "shop": ShopConnection}


def connection_class(name: str) -> type[ConnectionOptions]:
    if name == "oracle":
        raise MissingExtra("oracledb is not installed", hint="pip install 'floodmark[oracle]'")
    if name not in CLASSES:
        raise ConfigError(f"unknown connection {name!r}", hint="known: many")
    return CLASSES[name]


def connection_types() -> list[str]:
    return [*CLASSES, "oracle"]


class Desk:
    """Loads floodmark.yml from the current folder, so that errors name it as a user would see it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.classes = CLASSES

    def write(self, name: str, text: str | bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).lstrip("\n").encode())

    def load(
        self,
        text: str | None = None,
        *,
        file: str | Path = "floodmark.yml",
        variables: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> ProjectSpec:
        if text is not None:
            self.write(str(file), text)
        return load_project(
            file,
            connection_class=connection_class,
            connection_types=connection_types,
            variables=variables,
            environ=environ or {},
        )

    def declare(self, data: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> ProjectSpec:
        return project_from_dict(
            data,
            root=self.folder,
            connection_class=connection_class,
            connection_types=connection_types,
            environ=environ or {},
        )

    def fails(self, text: str | None = None, **options: Any) -> ConfigError:
        with pytest.raises(ConfigError) as caught:
            self.load(text, **options)
        return caught.value

    def declaring_fails(self, data: Mapping[str, Any]) -> ConfigError:
        with pytest.raises(ConfigError) as caught:
            self.declare(data)
        return caught.value


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path)


@pytest.fixture
def good() -> str:
    """Lines 1 to 9 of a file that is right; `orders:` is line 5."""
    return textwrap.dedent(
        """\
        connections:
          shop: {type: shop, url: "db://host/shop"}
          lake: {type: lake, path: ./lake}
        pipelines:
          orders:
            source: {connection: shop, table: public.orders}
            change: {by: timestamp, column: updated_at}
            target: {connection: lake, table: orders, mode: upsert, keys: [order_id]}
            batch_rows: 500
        """
    )
