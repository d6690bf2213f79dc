"""Habits of PySpark that a run should neither show nor pay for."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Any


def hush() -> None:
    """PySpark prints every failed query to stderr as a line of JSON, and py4j a traceback when its JVM has gone: each
    beside the error that it raises."""
    logging.getLogger("DataFrameQueryContextLogger").disabled = True
    if _is_not_py4js not in logging.root.filters:
        logging.root.addFilter(_is_not_py4js)


def spare_pandas() -> None:
    """To find out whether a value is NumPy's, PySpark imports its own tests and with them pandas, half a second for the
    first call of any run. Whoever has such a value has NumPy."""
    from pyspark.sql import types

    converters: tuple[Any, ...] = (types.NumpyScalarConverter, types.NumpyArrayConverter)
    for converter in converters:
        if converter.can_convert.__module__ != __name__:
            converter.can_convert = _if_numpys(converter.can_convert)


def _if_numpys(can_convert: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def asked(converter: Any, value: Any) -> bool:
        numpy = sys.modules.get("numpy")
        return numpy is not None and isinstance(value, numpy.generic | numpy.ndarray) and can_convert(converter, value)

    return asked


def _is_not_py4js(record: logging.LogRecord) -> bool:
    return f"{os.sep}py4j{os.sep}" not in record.pathname


def dismiss_accumulators(context: Any) -> None:
    """The server for accumulators, which nobody here uses, looks up twice a second; PySpark would wait for that. What
    it says of a JVM that has hung up is no news."""
    server, context._accumulatorServer = context._accumulatorServer, None
    server.handle_error = lambda *_: None
    threading.Thread(target=server.shutdown, daemon=True).start()
