"""Opens and ends the Spark session. The one place that knows a JVM; all else uses the DataFrame and SQL API."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from floodmark.errors import ConfigError, FloodmarkError, MissingExtra
from floodmark.model.plan import Work
from floodmark.model.spec import SparkSpec
from floodmark.spark.archive import Archive
from floodmark.spark.entrance import Entrance, KeptJvm, OwnJvm, Submitted
from floodmark.spark.habits import dismiss_accumulators, hush, spare_pandas
from floodmark.spark.jars import archives_folder
from floodmark.spark.java import NEWEST_JAVA, Java, find_java
from floodmark.spark.launch import direct_command
from floodmark.spark.place import wanted
from floodmark.spark.tuning import SESSION_SETTINGS, UNKNOWN, as_text, is_local, settings_for, sized_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Stay:
    """The JVM is to stay behind, warm, for the next run of this project."""

    root: Path
    idle: float
    """Seconds until it ends itself."""


class _Launch(NamedTuple):
    """The JVM that this process started or entered; a process can have only one Spark driver."""

    context: Any
    gateway: Any
    interrupt: Any
    entrance: Entrance


class _Beginning(NamedTuple):
    """A JVM on its way."""

    entrance: Entrance
    settings: dict[str, str]
    log_file: Path
    log_from: int
    java: Java


_launch: _Launch | None = None
_beginning: _Beginning | None = None
_connected: SparkSession | None = None
_one_at_a_time = threading.RLock()


def begin_session(
    spec: SparkSpec,
    *,
    needs: Iterable[str],
    log_file: Path,
    work: Work = UNKNOWN,
    stay: Stay | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> None:
    """Sends for a JVM, so that the next `open_session` finds it on its way. Where Spark is there already, or is
    somebody else's, there is nothing to begin."""
    global _beginning
    with _one_at_a_time:
        if spec.remote or _beginning is not None or _is_active() or find_spec("pyspark") is None:
            return
        _beginning = _begin(spec, list(needs), log_file, work, stay, tell)


def open_session(
    spec: SparkSpec,
    *,
    needs: Iterable[str],
    log_file: Path,
    work: Work = UNKNOWN,
    stay: Stay | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> SparkSession:
    """A session on the Spark that `spec` names; Spark's own words go to `log_file`, never to the terminal.

    Over Spark Connect, or where Spark runs already (a notebook, spark-submit), the other side must bring the jars for
    `needs`: they are put on the class path when a JVM starts, and at no other time. A classic session that is already
    active in this process is left alone: a new one beside it is returned.
    Raises ConfigError for what the operator can mend, MissingExtra without PySpark, FloodmarkError when Spark fails.
    """
    global _beginning
    if find_spec("pyspark") is None:
        raise MissingExtra("pyspark is not installed", hint="pip install 'floodmark[spark]'")
    if spec.remote:
        return _connect(spec)
    with _one_at_a_time:
        if (active := _active_session()) is not None:
            return _beside(active, spec, work)
        begun, _beginning = _beginning, None
        if begun is None:
            begun = _begin(spec, list(needs), log_file, work, stay, tell)
        return _enter(begun)


def _begin(
    spec: SparkSpec,
    needs: list[str],
    log_file: Path,
    work: Work,
    stay: Stay | None,
    tell: Callable[[str], None],
) -> _Beginning:
    java = find_java()
    settings = settings_for(spec, needs=needs, log_file=log_file, work=work, tell=tell, stays=stay is not None)
    log_from = log_file.stat().st_size if log_file.exists() else 0
    return _Beginning(_entrance(spec, settings, log_file, java, stay), settings, log_file, log_from, java)


def _entrance(spec: SparkSpec, settings: dict[str, str], log_file: Path, java: Java, stay: Stay | None) -> Entrance:
    if not is_local(settings["spark.master"]):
        return Submitted(settings, log_file)
    # Without it Spark looks this host's name up, which takes seconds or fails where no DNS knows it.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    command = direct_command(java.path, settings)
    if command is None:
        return Submitted(settings, log_file)
    archives = archives_folder() if wanted(spec.archive) else None
    if stay is not None:
        kept = KeptJvm(stay.root, command, settings, log_file, stay.idle, archives)
        if kept.begin():
            return kept
    return OwnJvm(command, log_file, None if archives is None else Archive(str(archives), command))


def end_beginning() -> None:
    """Of a JVM that was sent for and never needed."""
    global _beginning
    with _one_at_a_time:
        begun, _beginning = _beginning, None
    if begun is not None:
        begun.entrance.leave(None, cleanly=False)


def session_for(base: SparkSession, spec: SparkSpec, work: Work) -> SparkSession:
    """One for a run, on what `open_session` gave: with its own settings and views, set up for its own work."""
    if _launch is None or _is_connect(base):
        return own_session(base)
    return _set_up(base.newSession(), spec, work)


def own_session(base: SparkSession) -> SparkSession:
    """A session with settings and views of its own, so that pipelines can run side by side.

    What was set on `base` holds in it too. Over Spark Connect it is `base` itself.
    """
    hush()
    if _is_connect(base):
        return base
    session = base.newSession()
    # A new session starts from the driver's settings; what was set on the old one at run time it would forget.
    known = session.conf.getAll
    for key, value in base.conf.getAll.items():
        if known.get(key) != value and session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session


def stop_session(spark: SparkSession, *, cleanly: bool = True) -> None:
    """Ends the session, and the JVM if `open_session` started it; one that is kept warm goes on, unless it is not left
    `cleanly`, and so does somebody else's. Idempotent."""
    global _launch
    if _is_connect(spark):
        if spark is _connected:
            spark.stop()
        return
    if _launch is None or spark.sparkContext is not _launch.context:
        return
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    launch, _launch = _launch, None
    # A JVM that has died already can't be asked to stop; that is no news here, though py4j logs it as an error.
    silenced = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with suppress(Py4JError, OSError), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            dismiss_accumulators(launch.context)
            if not isinstance(launch.entrance, KeptJvm):
                spark.stop()
        launch.entrance.leave(launch.gateway, cleanly=cleanly)
        _forget()
    finally:
        logging.disable(silenced)
    if threading.current_thread() is threading.main_thread():
        # Spark put its own handler there, which would ask a context that is gone to cancel its jobs.
        signal.signal(signal.SIGINT, launch.interrupt)


def _is_connect(spark: SparkSession) -> bool:
    # By name: importing the class would need gRPC, which a classic session does without.
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _connect(spec: SparkSpec) -> SparkSession:
    global _connected
    from pyspark.sql import SparkSession

    address = (spec.remote or "").partition("/;")[0]  # parameters may hold a token
    theirs = SparkSession.getActiveSession()
    builder = SparkSession.builder.remote(spec.remote or "")
    try:
        session = builder.config(map={**SESSION_SETTINGS, **as_text(spec.config)}).getOrCreate()
    except ImportError as error:
        raise MissingExtra(f"Spark Connect lacks a package: {error}", hint="pip install 'pyspark[connect]'") from error
    except Exception as error:
        raise FloodmarkError(f"no Spark session from {address}: {_first_line(error)}") from error
    if session is not theirs:
        _connected = session
    return session


def _is_active() -> bool:
    """Without importing PySpark to find out."""
    return "PYSPARK_GATEWAY_PORT" in os.environ or ("pyspark.sql" in sys.modules and _active_session() is not None)


def _active_session() -> SparkSession | None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if (active := SparkSession.getActiveSession()) is not None:
        return active
    # Active means in this thread; and under spark-submit the JVM is there before any session.
    if SparkContext._active_spark_context is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return SparkSession.builder.getOrCreate()
    return None


def _beside(active: SparkSession, spec: SparkSpec, work: Work) -> SparkSession:
    running = active.conf.get("spark.master", None)
    if spec.master and running and spec.master != running:
        raise ConfigError(
            f"Spark already runs in this process on {running}, and `spark.master` is {spec.master}",
            hint="leave `spark.master` out to use the running one, or stop that first",
        )
    return _set_up(own_session(active), spec, work)


def _set_up(session: SparkSession, spec: SparkSpec, work: Work) -> SparkSession:
    for key, value in (SESSION_SETTINGS | sized_settings(work) | as_text(spec.config)).items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session


def _enter(begun: _Beginning) -> SparkSession:
    global _launch
    from pyspark.sql import SparkSession

    hush()
    spare_pandas()
    entrance, settings = begun.entrance, begun.settings
    if is_local(settings["spark.master"]):
        # On a cluster this interpreter's path need not exist.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    interrupt = signal.getsignal(signal.SIGINT) or signal.SIG_DFL
    gateway = None
    try:
        gateway, warm = entrance.gateway()
        context = _context(gateway, settings, warm=warm)
        _launch = _Launch(context, gateway, interrupt, entrance)
        session = SparkSession(context, options=dict(settings))
        entrance.entered()
    except BaseException as error:
        why = _first_line(error)  # asks the JVM, so before its end
        _launch = None
        entrance.leave(gateway, cleanly=False)
        _forget()
        if isinstance(error, Exception):
            raise _failed(why, begun) from error
        raise
    if isinstance(entrance, KeptJvm) and threading.current_thread() is threading.main_thread():
        # Spark's own handler would cancel every job in the JVM, other runs' too.
        signal.signal(signal.SIGINT, interrupt)
    return session


def _context(gateway: Any, settings: dict[str, str], *, warm: bool) -> Any:
    from pyspark import SparkConf, SparkContext

    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    if not warm:
        return SparkContext(conf=conf, gateway=gateway)
    there = gateway.jvm.org.apache.spark.SparkContext.getOrCreate()
    return SparkContext(conf=conf, gateway=gateway, jsc=gateway.jvm.JavaSparkContext.fromSparkContext(there))


def _forget() -> None:
    """PySpark would hand the gateway that was left to the next session of this process."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def _failed(why: str, begun: _Beginning) -> FloodmarkError:
    lines: list[str] = []
    with suppress(FileNotFoundError), begun.log_file.open("rb") as log:
        log.seek(begun.log_from)
        lines = log.read().decode(errors="replace").splitlines()
    told = [line for line in lines if line.strip() and not re.match(r"\s+(at |\.\.\. )", line)]
    major = begun.java.major
    newer = f"Java {major} may be too new for Spark: try {NEWEST_JAVA}; " if major > NEWEST_JAVA else ""
    return FloodmarkError(
        "\n".join([f"Spark did not start: {why}", *(f"  {line}" for line in told[-12:])]),
        hint=f"{newer}the whole log is {begun.log_file}",
    )


def _first_line(error: BaseException) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
