"""What a user can act on, out of the pages that Spark and Java write around it."""

from __future__ import annotations

import re
from traceback import walk_tb

LOST = "Spark ended in the middle of the work"
LOST_HINT = "run again: nothing is loaded twice. Why it ended may stand in Spark's log"

_STOPPED = re.compile(
    r"No active or default Spark session found|stopped SparkContext|SparkContext (?:was|has been) shut ?down"
)
"""What it says of itself while it goes down in order, as it does when the process that kept it is killed."""
_CLASS = re.compile(r"^(?:[\w$]+\.)+[\w$]+(?:Exception|Error|Failure)?: ")
_CONDITION = re.compile(r"^\[[A-Z0-9_.]+\] ")
_TAIL = re.compile(r"(?:; SQL statement:|\s*SQLSTATE: \w+)\s*$")


def plain(line: str) -> str:
    """Without the names of Java's classes and Spark's conditions before it, and what drivers leave hanging behind."""
    line = _CLASS.sub("", line.strip())
    return _TAIL.sub("", _CONDITION.sub("", line)).strip()


def is_lost(error: BaseException) -> bool:
    """Whether the JVM has gone: killed, or out of memory. By name, for this is read without PySpark, too. A socket's
    own error counts where it comes out of py4j."""
    if isinstance(error, ConnectionError):
        frames = (frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__))
        return any(name.startswith("py4j.") for name in frames)
    names = {kind.__name__ for kind in type(error).__mro__}
    return "Py4JNetworkError" in names or (
        not names.isdisjoint({"Py4JJavaError", "PySparkException"}) and _STOPPED.search(str(error)) is not None
    )


def first_line(error: BaseException) -> str:
    """Spark's errors carry whole Java traces; the cause that a user can act on stands in one line of them."""
    if is_lost(error):
        return LOST
    text = str(error).strip() or type(error).__name__
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        if "floodmark:" in line:
            said = line[line.index("floodmark:") + len("floodmark:") :]
            return said.partition("SQLSTATE")[0].strip().rstrip(".")
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    if not causes and len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        causes = [lines[1].removeprefix(":").strip()]
    return plain(causes[-1] if causes else lines[0])[:400] or type(error).__name__
