"""The two ways in: a file, or the same declared in Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from floodmark.config.build import Builder, ConnectionTypes
from floodmark.config.files import Files
from floodmark.config.problems import Problems
from floodmark.config.tree import from_python
from floodmark.config.variables import Variables
from floodmark.model.spec import ConnectionOptions, ProjectSpec


def load_project(
    path: str | os.PathLike[str],
    *,
    connection_class: Callable[[str], type[ConnectionOptions]],
    connection_types: Callable[[], list[str]],
    variables: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> ProjectSpec:
    """Reads a floodmark.yml and what it includes. `environ` is the process's own when not given.

    Raises one ConfigError that tells everything wrong with it, each with file and line.
    """
    file = os.fspath(path)
    problems = Problems()
    outer = Variables(variables or {}, os.environ if environ is None else environ, problems)
    sections = Files(outer, problems).read(file)
    declared = sections["variables"].children if "variables" in sections else {}
    builder = Builder(ConnectionTypes(connection_class, connection_types), outer.declaring(declared), problems)
    return builder.project(sections, os.path.dirname(os.path.abspath(file)), file)


def project_from_dict(
    data: Mapping[str, Any],
    *,
    root: str | os.PathLike[str],
    connection_class: Callable[[str], type[ConnectionOptions]],
    connection_types: Callable[[], list[str]],
    variables: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> ProjectSpec:
    """The same project declared in Python; `include:` and relative paths start from `root`.

    Raises one ConfigError; having no lines, it names the dotted path of each option.
    """
    folder = os.path.abspath(os.fspath(root))
    problems = Problems()
    outer = Variables(variables or {}, os.environ if environ is None else environ, problems)
    sections = Files(outer, problems).with_includes(from_python(data, problems), folder)
    declared = sections["variables"].children if "variables" in sections else {}
    builder = Builder(ConnectionTypes(connection_class, connection_types), outer.declaring(declared), problems)
    return builder.project(sections, folder, None)
