"""YAML to a frozen ProjectSpec, with file and line in every error; Python declarations to the same spec."""

from __future__ import annotations

from floodmark.config.project import load_project, project_from_dict
from floodmark.config.schema import json_schema

__all__ = ["json_schema", "load_project", "project_from_dict"]
