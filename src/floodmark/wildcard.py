"""`source: {tables: "public.*"}`: one pipeline for each table. Which tables there are, only the database knows, so they
are made when a command needs them; a file is still checked without any connection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase

from floodmark.errors import ConfigError, FloodmarkError
from floodmark.model.spec import FullSpec, PipelineSpec, ProjectSpec
from floodmark.model.table import TableInfo, TableName
from floodmark.ports import ListsTables, Source

OpenSource = Callable[[PipelineSpec], Source]


class Wildcards:
    """Remembers which pipelines it has made of which pattern. A pattern whose database can't be asked stays as it is,
    so that the other pipelines run; whoever runs it gets the error."""

    def __init__(self, open_source: OpenSource) -> None:
        self._open = open_source
        self._parents: dict[str, str] = {}
        self._errors: dict[str, FloodmarkError] = {}

    def expand(self, project: ProjectSpec, wanted: Sequence[str]) -> ProjectSpec:
        """`wanted` are names or patterns of pipelines; all when empty. What stands in the file needs no database."""
        named = [project.pipelines.get(name) for name in wanted]
        if named and all(spec is not None and spec.source.tables is None for spec in named):
            return project
        waiting = [n for n, s in project.pipelines.items() if s.source.tables is not None and n not in self._errors]
        if not waiting:
            return project
        pipelines: dict[str, PipelineSpec] = {}
        for name, spec in project.pipelines.items():
            for made in self._made(spec) if name in waiting else [spec]:
                if made.name in pipelines or (made is not spec and made.name in project.pipelines):
                    raise ConfigError(
                        f"there are two pipelines {made.name}", pipeline=name, declared_at=spec.at("source.tables")
                    )
                pipelines[made.name] = made
        refuse_shared_targets(pipelines.values())
        return project.model_copy(update={"pipelines": pipelines})

    def _made(self, spec: PipelineSpec) -> list[PipelineSpec]:
        try:
            made = pipelines_of(spec, self._open)
        except FloodmarkError as error:
            self._errors[spec.name] = error.located(pipeline=spec.name, declared_at=spec.at("source.tables"))
            return [spec]
        self._parents |= {child.name: spec.name for child in made}
        return made

    def parent(self, name: str) -> str | None:
        return self._parents.get(name)

    def check(self, spec: PipelineSpec) -> None:
        """Raises what kept a pattern from being pipelines."""
        if (error := self._errors.pop(spec.name, None)) is not None:
            raise error  # and the next call asks again

    def resolved(self, spec: PipelineSpec) -> PipelineSpec:
        """Ready to run: with its keys."""
        self.check(spec)
        if spec.name not in self._parents:
            return spec
        source = self._open(spec)
        try:
            return with_keys(spec, source.describe())
        finally:
            source.close()


def pipelines_of(spec: PipelineSpec, open_source: OpenSource) -> list[PipelineSpec]:
    """Asks the database. Raises ConfigError when no table matches, SourceError when it can't be asked."""
    # What the source itself reads does not matter yet; it must only not be a pattern.
    source = open_source(_for_table(spec, TableName("", "any", True)))
    if not isinstance(source, ListsTables):
        raise ConfigError(
            "this kind of connection can't list its tables",
            pipeline=spec.name,
            declared_at=spec.at("source.tables"),
            hint="declare one pipeline for each table",
        )
    try:
        known = source.list_tables()
    finally:
        source.close()
    pattern = spec.source.tables or ""
    chosen = [t for t in known if _matches(t, pattern) and not any(_matches(t, p) for p in spec.source.exclude)]
    if not chosen:
        shown = ", ".join(t.written for t in known[:20]) or "none that can be seen"
        raise ConfigError(
            f"no table matches {pattern}",
            pipeline=spec.name,
            declared_at=spec.at("source.tables"),
            hint=f"Tables there: {shown}{', …' if len(known) > 20 else ''}",
        )
    return [_for_table(spec, table) for table in chosen]


def _matches(table: TableName, pattern: str) -> bool:
    """Without a dot a pattern means the schema that need not be written: `*` never reaches into other databases."""
    if table.schema and "." in pattern:
        return fnmatchcase(table.full, pattern)
    return table.is_default and fnmatchcase(table.table, pattern)


def _for_table(spec: PipelineSpec, table: TableName) -> PipelineSpec:
    schema = (spec.source.tables or "").rpartition(".")[0]
    several = any(char in schema for char in "*?[")
    source = spec.source.model_copy(update={"table": table.written, "tables": None, "exclude": ()})
    named = spec.target.table.replace("{table}", table.table).replace("{schema}", table.schema)
    target = spec.target.model_copy(update={"table": named})
    name = f"{spec.name}.{table.full if several else table.table}"
    return spec.model_copy(update={"name": name, "source": source, "target": target})


def refuse_shared_targets(specs: Iterable[PipelineSpec]) -> None:
    """What the file's own check could not see: tables of one name in two schemas, or beside a pipeline by hand."""
    taken: dict[tuple[str, str], PipelineSpec] = {}
    for spec in specs:
        first = taken.setdefault((spec.target.connection, spec.target.table), spec)
        if first is not spec:
            raise ConfigError(
                f"pipelines {first.name} and {spec.name} both load {spec.target.connection}.{spec.target.table}: "
                "one table, one pipeline",
                pipeline=spec.name,
                declared_at=spec.at("target.table"),
                hint=f"leave one out (exclude: [{spec.source.table}]), or write {{schema}} in the target's name too",
            )


def with_keys(spec: PipelineSpec, table: TableInfo) -> PipelineSpec:
    """The primary key for an upsert that names no keys. A table that can't be followed is refused by its name."""
    if not isinstance(spec.change, FullSpec):
        missing = [name for name in spec.change.cursor_columns if table.column(name) is None]
        if missing:
            raise _unfit(spec, f'column "{missing[0]}" is not in {table.name}', "change.column")
    if spec.target.mode != "upsert" or spec.target.keys:
        return spec
    if not table.primary_key:
        raise _unfit(spec, f"{table.name} has no primary key, and `keys` is not set", "source.tables")
    return spec.model_copy(update={"target": spec.target.model_copy(update={"keys": table.primary_key})})


def _unfit(spec: PipelineSpec, trouble: str, path: str) -> ConfigError:
    return ConfigError(
        trouble,
        pipeline=spec.name,
        table=spec.source.table,
        declared_at=spec.at(path),
        hint=f"leave it out (exclude: [{spec.source.table}]) and declare a pipeline of its own for it",
    )
