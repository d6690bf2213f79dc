"""Frozen types, named after the phase they belong to. No I/O, no Spark."""
