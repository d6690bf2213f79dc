"""Who may load into a target table."""

from __future__ import annotations

from datetime import datetime

from floodmark.model.record import Record


class Owner(Record):
    """A running process. `boot` and `started` tell a recycled pid from the process that took the lease."""

    host: str
    pid: int
    run: str
    since: datetime
    boot: str = ""
    started: str = ""


class Lease(Record):
    """`beat` is a counter, not a time: nobody's clock is trusted. Each takeover raises `epoch`."""

    resource: str
    owner: Owner
    epoch: int
    beat: int = 0
    released: bool = False
