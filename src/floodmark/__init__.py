"""Floodmark: incremental pipelines on Spark that move what changed, exactly once."""

from __future__ import annotations

__version__ = "0.1.0"
