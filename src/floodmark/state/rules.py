"""When a save and a lease are granted. Pure: each store reads, asks here, and writes, in one transaction."""

from __future__ import annotations

from floodmark.errors import LeaseHeld, LeaseLost, StateConflict
from floodmark.model.lease import Lease, Owner
from floodmark.model.ledger import PipelineState


def next_state(state: PipelineState, stored: int) -> PipelineState:
    """`stored` is the revision in the store, 0 when there is none."""
    if state.revision != stored:
        raise conflict(state)
    return state.but(revision=stored + 1)


def conflict(state: PipelineState) -> StateConflict:
    return StateConflict(
        f"the state of {state.pipeline} was changed by somebody else since revision {state.revision} was read",
        pipeline=state.pipeline,
        hint="nothing was written: run it again",
    )


def next_lease(current: Lease | None, resource: str, owner: Owner, expected: Lease | None) -> Lease:
    """A released lease stays in the store, so that the epoch never falls."""
    if current is None:
        return Lease(resource=resource, owner=owner, epoch=1)
    is_the_stale_one = expected is not None and (current.epoch, current.beat) == (expected.epoch, expected.beat)
    if not current.released and not is_the_stale_one:
        raise held(current, owner)
    return Lease(resource=resource, owner=owner, epoch=current.epoch + 1)


def next_beat(current: Lease | None, lease: Lease) -> Lease:
    ours = fence(current, lease)
    return ours.but(beat=ours.beat + 1)


def fence(current: Lease | None, lease: Lease) -> Lease:
    """The stored lease, if it still is this one."""
    if current is not None and current.epoch == lease.epoch and not current.released:
        return current
    if current is None or current.released or current.epoch < lease.epoch:
        reason = "it was released, or the store was restored"
    else:
        reason = f"taken over by {current.owner.shown(current.owner.since)}"
    raise LeaseLost(
        f"lost the lease on {lease.resource}: {reason}",
        value=current,
        hint="nothing was written: run it again",
    )


def held(current: Lease, by: Owner) -> LeaseHeld:
    return LeaseHeld(f"running already: {current.owner.shown(by.since)}", value=current)
