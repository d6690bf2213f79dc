"""Opens and ends the Spark session. The one place that knows a JVM; all else uses the DataFrame and SQL API."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from floodmark.errors import ConfigError, FloodmarkError, MissingExtra
from floodmark.model.spec import SparkSpec
from floodmark.spark.java import NEWEST_JAVA, Java, find_java
from floodmark.spark.tuning import SESSION_SETTINGS, as_text, is_local, settings_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECRET = re.compile(r"(?i)secret|password|token|access[.]?key")


class _Launch(NamedTuple):
    """The JVM that this process started; a process can have only one Spark driver."""

    context: Any
    gateway: Any
    interrupt: Any


_launch: _Launch | None = None
_connected: SparkSession | None = None
_one_at_a_time = threading.RLock()


def open_session(
    spec: SparkSpec,
    *,
    needs: Iterable[str],
    log_file: Path,
    rows: int | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> SparkSession:
    """A session on the Spark that `spec` names; Spark's own words go to `log_file`, never to the terminal.

    `rows` is the size of the work ahead, where known. Over Spark Connect, or where Spark runs already (a notebook,
    spark-submit), the other side must bring the jars for `needs`: they are put on the class path when a JVM starts, and
    at no other time. A classic session that is already active in this process is left alone: a new one beside it is
    returned.
    Raises ConfigError for what the operator can mend, MissingExtra without PySpark, FloodmarkError when Spark fails.
    """
    if find_spec("pyspark") is None:
        raise MissingExtra("pyspark is not installed", hint="pip install 'floodmark[spark]'")
    if spec.remote:
        return _connect(spec)
    with _one_at_a_time:
        if (active := _active_session()) is not None:
            return _beside(active, spec)
        java = find_java()
        settings = settings_for(spec, needs=list(needs), log_file=log_file, rows=rows, tell=tell)
        return _start(settings, log_file, java)


def own_session(base: SparkSession) -> SparkSession:
    """A session with settings and views of its own, so that pipelines can run side by side.

    What was set on `base` holds in it too. Over Spark Connect it is `base` itself.
    """
    # PySpark prints every failed query to stderr as a line of JSON, beside the error that it raises.
    logging.getLogger("DataFrameQueryContextLogger").disabled = True
    if _is_connect(base):
        return base
    session = base.newSession()
    # A new session starts from the driver's settings; what was set on the old one at run time it would forget.
    known = session.conf.getAll
    for key, value in base.conf.getAll.items():
        if known.get(key) != value and session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session


def stop_session(spark: SparkSession) -> None:
    """Ends the session, and the JVM if `open_session` started it; somebody else's goes on. Idempotent."""
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
            spark.stop()
        _end_jvm(launch.gateway)
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


def _active_session() -> SparkSession | None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if (active := SparkSession.getActiveSession()) is not None:
        return active
    # Active means in this thread; and under spark-submit the JVM is there before any session.
    if SparkContext._active_spark_context is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return SparkSession.builder.getOrCreate()
    return None


def _beside(active: SparkSession, spec: SparkSpec) -> SparkSession:
    running = active.conf.get("spark.master", None)
    if spec.master and running and spec.master != running:
        raise ConfigError(
            f"Spark already runs in this process on {running}, and `spark.master` is {spec.master}",
            hint="leave `spark.master` out to use the running one, or stop that first",
        )
    session = own_session(active)
    for key, value in (SESSION_SETTINGS | as_text(spec.config)).items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session


def _start(settings: dict[str, str], log_file: Path, java: Java) -> SparkSession:
    global _launch
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    if is_local(settings["spark.master"]):
        # Without it Spark looks this host's name up, which takes seconds or fails where no DNS knows it.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # On a cluster this interpreter's path need not exist.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    interrupt = signal.getsignal(signal.SIGINT) or signal.SIG_DFL
    gateway = None
    log_file.parent.mkdir(parents=True, exist_ok=True)
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    # Every user of this machine can read a command line: secrets go over the gateway, with the context's settings.
    visible = SparkConf(loadDefaults=False).setAll([(k, v) for k, v in settings.items() if not SECRET.search(k)])
    with log_file.open("ab") as log:
        start_of_ours = log.tell()
        try:
            # The child gets the log as its output, rather than this process for a while: a progress line that is
            # being drawn in another thread meanwhile must not end up in the log.
            gateway = launch_gateway(visible, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
            context = SparkContext(conf=conf, gateway=gateway)
            _launch = _Launch(context, gateway, interrupt)
            return SparkSession(context, options=dict(settings))
        except BaseException as error:
            why = _first_line(error)  # asks the JVM, so before its end
            _launch = None
            if gateway is not None:
                _end_jvm(gateway)
            if isinstance(error, Exception):
                raise _failed(why, log_file, start_of_ours, java) from error
            raise


def _end_jvm(gateway: Any) -> None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with suppress(Exception):
        gateway.shutdown()
    process: subprocess.Popen[bytes] = gateway.proc
    if process.stdin is not None:
        process.stdin.close()  # on which the JVM ends itself, and clears its temporary files
    for give_up in (process.terminate, process.kill):
        try:
            process.wait(timeout=15)
            break
        except subprocess.TimeoutExpired:
            give_up()
    process.wait()
    # PySpark would hand the dead gateway to the next session of this process.
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def _failed(why: str, log_file: Path, start_of_ours: int, java: Java) -> FloodmarkError:
    with log_file.open("rb") as log:
        log.seek(start_of_ours)
        lines = log.read().decode(errors="replace").splitlines()
    told = [line for line in lines if line.strip() and not re.match(r"\s+(at |\.\.\. )", line)]
    newer = f"Java {java.major} may be too new for Spark: try {NEWEST_JAVA}; " if java.major > NEWEST_JAVA else ""
    return FloodmarkError(
        "\n".join([f"Spark did not start: {why}", *(f"  {line}" for line in told[-12:])]),
        hint=f"{newer}the whole log is {log_file}",
    )


def _first_line(error: BaseException) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
