"""The tables of the SQL store: the same on every database, but for what a database's own `TYPES` say."""

from __future__ import annotations

LONGEST_NAME = 512
"""Characters; at four bytes each they still fit into a MySQL key."""

TABLES = (
    """CREATE TABLE IF NOT EXISTS floodmark_pipelines (
        name {name} NOT NULL,
        revision BIGINT NOT NULL,
        body {body} NOT NULL,
        PRIMARY KEY (name)
    ){options}""",
    """CREATE TABLE IF NOT EXISTS floodmark_leases (
        resource {name} NOT NULL,
        epoch BIGINT NOT NULL,
        beat BIGINT NOT NULL,
        released BOOLEAN NOT NULL,
        owner {body} NOT NULL,
        PRIMARY KEY (resource)
    ){options}""",
    # The constraint finds the newest. No index, since this one is made with the table, in one statement.
    """CREATE TABLE IF NOT EXISTS floodmark_runs (
        id {number},
        pipeline {name} NOT NULL,
        started_at VARCHAR(32) NOT NULL,
        body {body} NOT NULL,
        PRIMARY KEY (id),
        CONSTRAINT floodmark_runs_newest UNIQUE (pipeline, id)
    ){options}""",
    # The format is its own key: two who make the tables at once can't leave two rows, and some servers ask for a key.
    """CREATE TABLE IF NOT EXISTS floodmark_meta (
        format INTEGER NOT NULL,
        PRIMARY KEY (format)
    ){options}""",
)
"""`name`: exactly these characters; `body`: text of any length; `number`: counts by itself; `options`: of a table."""
