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

    def shown(self, now: datetime) -> str:
        """For people; the day only where it is another than today's."""
        since, today = self.since.astimezone(), now.astimezone().date()
        clock = f"{since:%H:%M:%S}" if since.date() == today else f"{since:%Y-%m-%d %H:%M:%S}"
        return f"host {self.host}, pid {self.pid}, since {clock}"


class Lease(Record):
    """`beat` is a counter, not a time: nobody's clock is trusted. Each takeover raises `epoch`."""

    resource: str
    owner: Owner
    epoch: int
    beat: int = 0
    released: bool = False
