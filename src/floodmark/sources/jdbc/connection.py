"""Any database with a JDBC driver: where its jars are, and what the driver has to be told."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, SecretStr

from floodmark.model.passwords import passwords_in
from floodmark.model.spec import ConnectionOptions

_PARAMETERS = re.compile(r"[?;]|[:,&/]\w+=")
"""Where they begin, as the drivers write them."""


class JdbcConnection(ConnectionOptions):
    """A database that is reached through a JDBC driver of your own."""

    type: Literal["jdbc"] = "jdbc"
    url: SecretStr = Field(description="The driver's address, e.g. jdbc:oracle:thin:@//host:1521/shop")
    driver: str = Field(description="The driver's class, e.g. oracle.jdbc.OracleDriver")
    jars: tuple[str, ...] = Field(
        default=(), description="Jars of the driver: paths, relative to the YAML file, or Maven coordinates."
    )
    user: str | None = Field(default=None, description="User to connect as.")
    password: SecretStr | None = Field(default=None, description="Its password, from `${A_VARIABLE}`.")
    properties: dict[str, str | int | bool] = Field(
        default_factory=dict, description="Other properties of the driver, or options of Spark's JDBC reader."
    )
    quote: str = Field(
        default='"', min_length=1, max_length=2, description="What names are quoted with; `[]` for a pair."
    )

    @property
    def secrets(self) -> tuple[str, ...]:
        """The whole address too, where it says more than where the database is: in which way a driver puts passwords
        into it is its own affair."""
        url = self.url.get_secret_value()
        found = [*passwords_in(url), *([url] if url != self.where else [])]
        return (*found, self.password.get_secret_value()) if self.password is not None else tuple(found)

    @property
    def java(self) -> tuple[str, ...]:
        return self.jars

    @property
    def where(self) -> str:
        """For messages: nothing behind the first parameter or password."""
        return _PARAMETERS.split(self.url.get_secret_value(), maxsplit=1)[0].rpartition("@")[2]

    def quoted(self, name: str) -> str:
        left, right = self.quote[0], self.quote[-1]
        return f"{left}{name.replace(right, right * 2)}{right}"

    @property
    def options(self) -> dict[str, str]:
        """For Spark's reader."""
        own = {"url": self.url.get_secret_value(), "driver": self.driver}
        if self.user is not None:
            own["user"] = self.user
        if self.password is not None:
            own["password"] = self.password.get_secret_value()
        given = {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in self.properties.items()}
        return given | own
