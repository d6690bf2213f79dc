"""The user's SQL or Python on the batch."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from floodmark.errors import ConfigError, TransformError
from floodmark.model.spec import PipelineSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def transform(batch: DataFrame, spec: PipelineSpec, root: Path) -> DataFrame:
    if spec.transform is None:
        return batch
    if spec.transform.sql is not None:
        return _by_sql(batch, spec.transform.sql, spec)
    return _by_python(batch, spec.transform.python or "", spec, root)


def _by_sql(batch: DataFrame, text: str, spec: PipelineSpec) -> DataFrame:
    from pyspark.errors import PySparkException

    batch.createOrReplaceTempView("source")
    try:
        return batch.sparkSession.sql(text)
    except PySparkException as error:
        reason = (error.getMessage() or str(error)).splitlines()[0]
        raise TransformError(f"the transform's SQL fails: {reason}", declared_at=spec.at("transform.sql")) from error


def _by_python(batch: DataFrame, target: str, spec: PipelineSpec, root: Path) -> DataFrame:
    from pyspark.sql import DataFrame as AnyDataFrame

    place = spec.at("transform.python")
    module, _, function = target.partition(":")
    if not function:
        raise ConfigError(f"{target!r} is not `module:function`", declared_at=place)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))  # modules beside the YAML file
    try:
        apply = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"can't import {target}: {error}", declared_at=place) from error
    try:
        result = apply(batch)
    except Exception as error:
        raise TransformError(f"{target} failed: {type(error).__name__}: {error}", declared_at=place) from error
    if not isinstance(result, AnyDataFrame) and not hasattr(result, "sparkSession"):
        raise TransformError(f"{target} returned {type(result).__name__}, not a DataFrame", declared_at=place)
    return result  # type: ignore[no-any-return]
