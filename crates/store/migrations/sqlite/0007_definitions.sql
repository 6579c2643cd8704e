-- The definitions of tools as runs began with them, once per content. A run names them by hash in its first event.
CREATE TABLE definitions (
    project    BLOB NOT NULL,
    hash       TEXT NOT NULL,
    definition TEXT NOT NULL,
    PRIMARY KEY (project, hash)
) STRICT, WITHOUT ROWID;
