from __future__ import annotations

import pytest

from floodmark.javawords import first_line

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
