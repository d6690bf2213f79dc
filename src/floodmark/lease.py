"""Holding the lease on a target table: take it, keep it alive, notice when it is lost.

Nothing here is what makes a commit safe: the target refuses a runner whose ordinal or epoch has been passed. The lease
keeps two runners from doing the same work, and tells the second one who the first is.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from floodmark.errors import LeaseHeld, LeaseLost
from floodmark.model.lease import Lease, Owner
from floodmark.ports import StateStore, SupportsLeases

TTL = timedelta(seconds=30)
BEATS_PER_TTL = 15
"""Several beats may be late or fail before anybody may think us dead."""

_LEFT_BEHIND: set[Owner] = set()
"""Runs of this process whose release failed: the process lives on, and would shut everybody out until it ends."""


class NoLease:
    """For a store without leases."""

    current: Lease | None = None
    trouble: Exception | None = None

    def check(self) -> None:
        """Never lost, since never held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to release."""


class LeaseKeeper:
    """`with LeaseKeeper(…) as keeper:` holds the lease for the block. Raises LeaseHeld when somebody else works."""

    def __init__(
        self,
        store: SupportsLeases,
        resource: str,
        owner: Owner,
        *,
        ttl: timedelta = TTL,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._store = store
        self._resource = resource
        self._owner = owner
        self._ttl = ttl.total_seconds()
        self._monotonic = monotonic
        self._sleep = sleep
        self._lease: Lease | None = None
        self._lost: LeaseLost | None = None
        self._stopping = threading.Event()
        self._heart = threading.Thread(target=self._beat_on, name=f"lease {resource}", daemon=True)
        self.trouble: Exception | None = None
        """The last error of a beat or of the release that was not fatal: worth a notice."""

    @property
    def current(self) -> Lease | None:
        """For `StateStore.save`."""
        return self._lease

    def check(self) -> None:
        """Raises LeaseLost once a beat has found that somebody else took over."""
        if self._lost is not None:
            raise self._lost

    def __enter__(self) -> Self:
        self._lease = self._acquire()
        self._heart.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopping.set()
        # Not for ever: the thread may be stuck in a store that does not answer.
        self._heart.join(self._ttl)
        if self._lease is None:
            return
        try:
            self._store.release(self._lease)
        except Exception as failure:
            # The work is done or has failed already, and the next runner can tell that this lease is stale.
            self.trouble = failure
            _LEFT_BEHIND.add(self._owner)

    def _acquire(self) -> Lease:
        while True:
            try:
                return self._store.acquire(self._resource, self._owner)
            except LeaseHeld:
                holder = self._store.holder(self._resource)
            if holder is None:
                # Released between the two calls.
                continue
            # A process that is there may still be paused or stuck: only its beats tell.
            if standing(holder.owner, self._owner) != "gone" and not self._stood_still(holder):
                continue
            return self._store.acquire(self._resource, self._owner, expected=holder)

    def _stood_still(self, holder: Lease) -> bool:
        """Watches for a whole TTL. False when the lease was released meanwhile; raises LeaseHeld when it beats."""
        step = self._ttl / BEATS_PER_TTL
        watched, last = 0.0, self._monotonic()
        while watched < self._ttl:
            self._sleep(step)
            now = self._store.holder(self._resource)
            if now is None:
                return False
            if (now.epoch, now.beat) != (holder.epoch, holder.beat):
                raise self._refusal(now)
            clock = self._monotonic()
            # If we were stopped for a while the holder may have been too (one machine, paused): count one step.
            watched += min(clock - last, 2 * step)
            last = clock
        return True

    def _refusal(self, holder: Lease) -> LeaseHeld:
        return LeaseHeld(
            f"running already: {holder.owner.shown(self._owner.since)}", table=self._resource, value=holder
        )

    def _beat_on(self) -> None:
        while not self._stopping.wait(self._ttl / BEATS_PER_TTL):
            if self._lease is None:
                return
            try:
                self._lease = self._store.beat(self._lease)
            except LeaseLost as lost:
                self._lost = lost
                return
            except Exception as failure:
                # A store that is away for a moment is no reason to stop loading: the commit is fenced anyway.
                self.trouble = failure


def keep_lease(store: StateStore, resource: str, owner: Owner, *, ttl: timedelta = TTL) -> LeaseKeeper | NoLease:
    return LeaseKeeper(store, resource, owner, ttl=ttl) if isinstance(store, SupportsLeases) else NoLease()


def this_process(run_id: str, now: datetime) -> Owner:
    pid = os.getpid()
    return Owner(host=socket.gethostname(), pid=pid, run=run_id, since=now, boot=_boot(), started=_started(pid) or "")


def standing(owner: Owner, mine: Owner) -> Literal["there", "gone", "unknown"]:
    """What can be said of another process from here; on another host, or in another container, nothing."""
    if owner in _LEFT_BEHIND:
        return "gone"
    if not (owner.boot and owner.started) or (owner.host, owner.boot) != (mine.host, mine.boot):
        return "unknown"
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return "gone"
    except PermissionError:
        # It is there and belongs to another user; /proc may still say whether it is the same one.
        pass
    started = _started(owner.pid)
    if started is None:
        return "unknown"
    if started != owner.started or _is_dead(owner.pid):
        return "gone"
    return "there"


def _boot() -> str:
    """This boot of this machine and this pid namespace: only within it do pids mean anything. Empty off Linux."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the third on; the second, the name in brackets, may hold anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def _started(pid: int) -> str | None:
    fields = _stat(pid)
    return None if fields is None else fields[19]


def _is_dead(pid: int) -> bool:
    """A zombie that nobody has reaped; not one whose first thread has ended while others work on."""
    fields = _stat(pid)
    if fields is None or fields[0] not in ("Z", "X"):
        return False
    try:
        return len(os.listdir(f"/proc/{pid}/task")) <= 1
    except OSError:
        return False
