-- Ids are 16 bytes, sortable by time; times are milliseconds since 1970; places are those of the event stream.

CREATE TABLE projects (
    id         BLOB    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL UNIQUE,
    jwt_secret TEXT,
    jwks_url   TEXT,
    created    INTEGER NOT NULL
) STRICT;

CREATE TABLE keys (
    id      BLOB    NOT NULL PRIMARY KEY,
    project BLOB    NOT NULL,
    kind    TEXT    NOT NULL,
    hash    BLOB    NOT NULL UNIQUE,
    hint    TEXT    NOT NULL,
    name    TEXT,
    created INTEGER NOT NULL
) STRICT;
CREATE INDEX keys_of_project ON keys (project, id);

CREATE TABLE entities (
    id       BLOB    NOT NULL PRIMARY KEY,
    project  BLOB    NOT NULL,
    subject  TEXT    NOT NULL,
    kind     TEXT    NOT NULL,
    name     TEXT,
    metadata TEXT,
    created  INTEGER NOT NULL,
    UNIQUE (project, subject)
) STRICT;

-- One row per revision. An agent is removed when its newest revision says so.
CREATE TABLE agents (
    project  BLOB    NOT NULL,
    name     TEXT    NOT NULL,
    revision INTEGER NOT NULL,
    config   TEXT    NOT NULL,
    removed  INTEGER NOT NULL,
    created  INTEGER NOT NULL,
    PRIMARY KEY (project, name, revision)
) STRICT;

CREATE TABLE spaces (
    id       BLOB    NOT NULL PRIMARY KEY,
    project  BLOB    NOT NULL,
    title    TEXT,
    agent    TEXT,
    metadata TEXT,
    created  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX spaces_of_project ON spaces (project, id);

CREATE TABLE members (
    space    BLOB    NOT NULL,
    entity   BLOB    NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (space, entity)
) STRICT, WITHOUT ROWID;
CREATE INDEX spaces_of_member ON members (entity, space);

-- One row per append. A table with its own row order, so that the appends of one commit share pages
-- whatever spaces they belong to.
CREATE TABLE log (
    space  BLOB    NOT NULL,
    first  INTEGER NOT NULL,
    last   INTEGER NOT NULL,
    run    BLOB,
    time   INTEGER NOT NULL,
    format INTEGER NOT NULL,
    events TEXT    NOT NULL,
    PRIMARY KEY (space, first)
) STRICT;
CREATE INDEX log_of_run ON log (run, first) WHERE run IS NOT NULL;

-- `epoch` counts the claims and stays when the lease is given back; `node` is who holds the lease.
CREATE TABLE runs (
    id          BLOB    NOT NULL PRIMARY KEY,
    project     BLOB    NOT NULL,
    space       BLOB    NOT NULL,
    agent       TEXT    NOT NULL,
    revision    INTEGER NOT NULL,
    parent_run  BLOB,
    parent_call INTEGER,
    root        BLOB    NOT NULL,
    status      TEXT    NOT NULL,
    created     INTEGER NOT NULL,
    updated     INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    wake_at     INTEGER,
    node        BLOB,
    epoch       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_of_project ON runs (project, id);
CREATE INDEX runs_of_space ON runs (project, space, id);
CREATE INDEX runs_of_parent ON runs (project, parent_run, id) WHERE parent_run IS NOT NULL;
-- Final runs are in neither, paused ones are passed over: what looks for work never reads past work.
-- Written without NOT IN, which would build a table of the three at every change of a run.
CREATE INDEX runs_open ON runs (status, node)
    WHERE status <> 'completed' AND status <> 'failed' AND status <> 'cancelled';
CREATE INDEX runs_wake ON runs (wake_at)
    WHERE wake_at IS NOT NULL AND status <> 'completed' AND status <> 'failed' AND status <> 'cancelled';

CREATE TABLE nodes (
    id    BLOB    NOT NULL PRIMARY KEY,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
    project BLOB    NOT NULL,
    key     TEXT    NOT NULL,
    request BLOB    NOT NULL,
    answer  TEXT    NOT NULL,
    time    INTEGER NOT NULL,
    PRIMARY KEY (project, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_time ON idempotency (time);

-- The readiness check writes here, to see that a write of some size is taken.
CREATE TABLE probe (
    id      INTEGER NOT NULL PRIMARY KEY,
    written INTEGER NOT NULL,
    filling BLOB    NOT NULL
) STRICT;
INSERT INTO probe (id, written, filling) VALUES (1, 0, x'');
