from __future__ import annotations

import pytest

from floodmark.javawords import LOST, first_line

TRACE = """An error occurred while calling o1.save.
: org.apache.spark.SparkException: Job aborted.
\tat org.apache.spark.Some.where(Some.scala:1)
Caused by: org.apache.spark.SparkArithmeticException: [CAST_OVERFLOW] The value 5L overflows. SQLSTATE: 22003
\tSuppressed: org.apache.spark.util.Utils$OriginalTryStackTraceException: Full stacktrace of original caller
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TRACE, "The value 5L overflows."),
        (
            'An error occurred while calling o1.load.\n: org.h2.jdbc.JdbcSQLSyntaxErrorException: Table "X" not found; '
            "SQL statement:\nSELECT * FROM X [42102-240]",
            'Table "X" not found',
        ),
        ('x: floodmark: column "a" holds 1. SQLSTATE: P0001', 'column "a" holds 1'),
        ("plain words: and more", "plain words: and more"),
        ("", "ValueError"),
    ],
)
def test_one_line_that_a_user_can_act_on(text: str, said: str) -> None:
    assert first_line(ValueError(text)) == said


def test_a_spark_that_goes_down_in_order_has_ended_too() -> None:
    class PySparkException(Exception):
        """By name, as PySpark calls its own."""

    assert first_line(PySparkException("[X] No active or default Spark session found")) == LOST
    assert first_line(PySparkException("Job 3 cancelled because SparkContext was shut down")) == LOST
    assert first_line(ValueError("SparkContext was shut down")) != LOST, "somebody else's words"
