-- The last place of a space's log that was deleted: an earlier cursor has missed something, and places go on behind it.
CREATE TABLE log_floors (
    space BLOB    NOT NULL PRIMARY KEY,
    floor INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Runs and spaces that were deleted, for some days: nothing begins there again, and streams that come back are told.
CREATE TABLE deleted (
    id      BLOB    NOT NULL PRIMARY KEY,
    project BLOB    NOT NULL,
    time    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX deleted_by_time ON deleted (time);

-- Runs at the top by the time they ended. Only the write that ends a run changes it.
CREATE INDEX runs_ended ON runs (project, updated) WHERE open = 0 AND parent_run IS NULL;
-- Figures of tools by day, whatever the tool.
CREATE INDEX tool_usage_by_day ON tool_usage (project, day);
