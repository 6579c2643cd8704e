-- Calls of a tool on one day (days since 1970, in UTC) that ended the same way and took about as long. `code` is empty
-- for those that gave an output; `latency` is a class, see the engine's `usage`.

CREATE TABLE tool_usage (
    project BLOB    NOT NULL,
    tool    TEXT    NOT NULL,
    day     INTEGER NOT NULL,
    code    TEXT    NOT NULL,
    latency INTEGER NOT NULL,
    calls   INTEGER NOT NULL,
    PRIMARY KEY (project, tool, day, code, latency)
) STRICT, WITHOUT ROWID;
