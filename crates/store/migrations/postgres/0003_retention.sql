-- The last place of a space's log that was deleted: an earlier cursor has missed something.
CREATE TABLE log_floors (
    space uuid   NOT NULL PRIMARY KEY,
    floor bigint NOT NULL
);

-- Runs and spaces that were deleted, for some days: nothing begins there again, and streams that come back are told. A
-- letter and the 16 bytes of the id.
CREATE TABLE deleted (
    id      bytea  NOT NULL PRIMARY KEY,
    project uuid   NOT NULL,
    time    bigint NOT NULL
);
CREATE INDEX deleted_by_time ON deleted (time);

-- Runs at the top by the time they ended.
CREATE INDEX runs_ended ON runs (project, updated) WHERE NOT open AND parent_run IS NULL;
-- Figures of tools by day, whatever the tool.
CREATE INDEX tool_usage_by_day ON tool_usage (project, day);
