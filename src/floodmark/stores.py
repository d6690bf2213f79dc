"""From the `state:` setting to a store; and moving state from one store to another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from floodmark.errors import ConfigError, FloodmarkError, StateError
from floodmark.model import ledger
from floodmark.model.ledger import PipelineState
from floodmark.model.outcome import TargetState
from floodmark.ports import HandsBack, StateStore, SupportsHistory, SupportsLeases
from floodmark.registry import Registry
from floodmark.state.form import check_format, damaged, to_form, to_state
from floodmark.state.target import TargetStore

EXAMPLES = "for example sqlite:///.floodmark/state.db, file:state.json or target:"

SERVERS = ("postgresql", "postgres", "mysql", "mariadb")
BUCKETS = ("s3", "gs", "az")

Inspect = Callable[[str], TargetState]


def create_state_store(
    config: str | Mapping[str, Any],
    *,
    root: Path | str = ".",
    registry: Registry | None = None,
    inspect: Inspect | None = None,
    pipelines: Sequence[str] = (),
) -> StateStore:
    """`config` is a URL, or `{"backend": …, "path": …}`, or `{"url": …}`. Relative paths begin at `root`. `inspect` and
    `pipelines` are for `target:`, where `inspect` lists all commits that the target still knows. Raises ConfigError;
    opens nothing yet."""
    registry = registry or Registry.default()
    backend, options = _parsed(config)
    known = registry.names("state")
    if backend not in known:
        raise ConfigError(f"unknown state backend {backend!r}", hint=_near(backend, known))
    factory = registry.get("state", backend)
    store: StateStore
    if backend == "target":
        _only(options, {"url"}, backend)
        if inspect is None:
            raise ConfigError("state in the target needs the targets", hint="open it through the project file")
        store = factory(inspect, pipelines)
    elif backend in ("file", "sqlite"):
        store = factory(_path(backend, options, Path(root)))
    elif backend == "env":
        store = factory(_variable(options))
    else:
        if backend in SERVERS:
            _only(options, {"url"}, backend)
        if backend in SERVERS + BUCKETS:
            _check_url(backend, options)
        store = factory(**options)
    return store


def backend_of(config: object) -> str:
    return _parsed(config)[0]


def capabilities(store: StateStore) -> dict[str, str | None]:
    """None where the store can; otherwise what its user should know."""
    return {
        "lease": None
        if isinstance(store, SupportsLeases)
        else "no lease: two runners are told apart only when they commit",
        "history": None
        if isinstance(store, SupportsHistory)
        else "no history: only what landed is known, not the runs that failed or found nothing",
        "memory": "keeps nothing itself: put what a run prints into the variable before the next one"
        if isinstance(store, HandsBack)
        else None,
    }


def export_state(store: StateStore) -> dict[str, Any]:
    """All pipelines, as JSON. Leases and the history of runs stay where they are."""
    states = {name: store.get(name) for name in store.list_pipelines()}
    return {"format": ledger.FORMAT, "pipelines": {n: to_form(s) for n, s in states.items() if s is not None}}


def import_state(store: StateStore, data: Mapping[str, Any], *, overwrite: bool = False) -> list[str]:
    """Returns the names. Everything is checked before anything is written; if a write fails, those before it are
    undone. Raises StateError."""
    if isinstance(store, TargetStore):
        raise StateError("state in the target can't be imported", hint="it is what the target's own commits say")
    states = _checked(data)
    before = {name: store.get(name) for name in states}
    there = [name for name, state in before.items() if state is not None]
    if there and not overwrite:
        raise StateError(
            f"already in the store: {', '.join(there)}", hint="nothing was imported; `--overwrite` replaces them"
        )
    written: list[str] = []
    try:
        for name, state in states.items():
            existing = before[name]
            store.save(state.but(revision=existing.revision if existing else 0))
            written.append(name)
    except FloodmarkError as error:
        _undo(store, {name: before[name] for name in written}, error)
        raise
    return sorted(states)


def _checked(data: object) -> dict[str, PipelineState]:
    where = "the exported state"
    if not isinstance(data, Mapping) or not isinstance(data.get("pipelines"), Mapping):
        raise damaged(where, "it holds no map of pipelines")
    check_format(data.get("format"), where)
    states = {str(name): to_state(form, where) for name, form in data["pipelines"].items()}
    for name, state in states.items():
        if state.pipeline != name:
            raise damaged(where, f"{name!r} holds the state of {state.pipeline!r}")
    return states


def _undo(store: StateStore, before: Mapping[str, PipelineState | None], error: FloodmarkError) -> None:
    for name, state in before.items():
        try:
            current = store.get(name)
            if state is None:
                store.delete(name)
            elif current is not None:
                store.save(state.but(revision=current.revision))
        except FloodmarkError as second:
            error.add_note(f"{name} stays imported: {second.message}")


def _parsed(config: object) -> tuple[str, dict[str, Any]]:
    if isinstance(config, str):
        # Nothing but the scheme is ever shown: the rest may hold a password.
        scheme, colon, _ = config.partition(":")
        if not colon:
            raise ConfigError("state: is a URL, and this one has no scheme", hint=EXAMPLES)
        return scheme.partition("+")[0].strip().lower(), {"url": config}
    if not isinstance(config, Mapping):
        raise ConfigError(f"state: is a URL or a map, not {type(config).__name__}", hint=EXAMPLES)
    options = {str(key): value for key, value in config.items()}
    backend = options.pop("backend", None)
    if backend is not None:
        return str(backend), options
    if isinstance(options.get("url"), str):
        _only(options, {"url"}, "state")
        return _parsed(options["url"])
    raise ConfigError("state: names neither a backend nor a url", hint='for example {"backend": "file", "path": …}')


def _variable(options: Mapping[str, Any]) -> str:
    _only(options, {"variable", "url"}, "env")
    if ("variable" in options) == ("url" in options):
        raise ConfigError("state 'env' takes either a variable or a url", hint="for example env:FLOODMARK_STATE")
    return str(options.get("variable") or str(options["url"]).partition(":")[2].strip())


def _check_url(backend: str, options: Mapping[str, Any]) -> None:
    """Never shown: it may hold a password."""
    url = options.get("url")
    if not isinstance(url, str):
        raise ConfigError(f"state {backend!r} needs a url", hint=f"{backend}://…")
    scheme = url.partition("://")[0].partition("+")[0].strip().lower()
    if scheme != backend:
        raise ConfigError(f"the backend is {backend!r}, but the url begins otherwise", hint=f"{backend}://…")


def _path(backend: str, options: Mapping[str, Any], root: Path) -> Path:
    _only(options, {"path", "url"}, backend)
    if ("path" in options) == ("url" in options):
        raise ConfigError(f"state {backend!r} takes either a path or a url", hint=EXAMPLES)
    text = str(options["path"]) if "path" in options else _path_of(backend, str(options["url"]))
    if not text.strip() or text == ":memory:":
        raise ConfigError(f"state {backend!r} needs the path of a file", hint=EXAMPLES)
    # Absolute from here on: a later change of the working directory must not lead to another file.
    return (root / Path(text).expanduser()).absolute()


def _path_of(backend: str, url: str) -> str:
    """`file:rel`, `file:/abs`, `file:///abs`; and, as SQLAlchemy has it, `sqlite:///rel`, `sqlite:////abs`."""
    scheme, _, rest = url.partition(":")
    if scheme.strip().lower() != backend:
        raise ConfigError(f"the backend is {backend!r}, but the url is of {scheme!r}", hint=EXAMPLES)
    rest = rest.strip()
    if backend == "sqlite":
        if not rest.startswith("///"):
            raise ConfigError("a sqlite: URL has three slashes before a path", hint=EXAMPLES)
        if "?" in rest:
            raise ConfigError("a sqlite: URL for state takes no settings after a ?", hint=EXAMPLES)
        return rest[3:]
    if rest.partition("://")[0] in BUCKETS:
        raise ConfigError("state in a bucket is named by its own URL", hint=f"state: {rest}")
    if rest.startswith("//") and not rest.startswith("///"):
        raise ConfigError("a file: URL names no host", hint="file:state.json, or file:///var/lib/state.json")
    return rest[2:] if rest.startswith("///") else rest


def _only(options: Mapping[str, Any], allowed: set[str], backend: str) -> None:
    for key in options:
        if key not in allowed:
            raise ConfigError(f"{backend!r} has no setting {key!r}", hint=_near(key, sorted(allowed)))


def _near(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, 1)
    return (f"did you mean {close[0]}? " if close else "") + f"Known: {', '.join(known)}"
