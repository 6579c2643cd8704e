-- Ids are uuids, sortable by time; times are milliseconds since 1970; places are those of the event stream. Texts that are
-- compared or sorted use the order of their bytes. A zero byte, which PostgreSQL's texts cannot hold, is stored as two
-- bytes: see `column.rs`.

CREATE TABLE projects (
    id           uuid   NOT NULL PRIMARY KEY,
    name         text   COLLATE "C" NOT NULL UNIQUE,
    jwt_secret   text,
    jwks_url     text,
    jwt_issuer   text,
    jwt_audience text,
    settings     text,
    created      bigint NOT NULL
);

CREATE TABLE keys (
    id      uuid   NOT NULL PRIMARY KEY,
    project uuid   NOT NULL,
    kind    text   NOT NULL,
    hash    bytea  NOT NULL UNIQUE,
    hint    text   NOT NULL,
    name    text,
    created bigint NOT NULL
);
CREATE INDEX keys_of_project ON keys (project, id);

CREATE TABLE entities (
    id       uuid   NOT NULL PRIMARY KEY,
    project  uuid   NOT NULL,
    subject  text   COLLATE "C" NOT NULL,
    kind     text   NOT NULL,
    name     text,
    metadata text,
    grants   text,
    created  bigint NOT NULL,
    UNIQUE (project, subject)
);

-- One row per revision. An agent is removed when its newest revision says so.
CREATE TABLE agents (
    project  uuid   NOT NULL,
    name     text   COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    config   text   NOT NULL,
    removed  bigint NOT NULL,
    created  bigint NOT NULL,
    PRIMARY KEY (project, name, revision)
);

CREATE TABLE spaces (
    id         uuid    NOT NULL PRIMARY KEY,
    project    uuid    NOT NULL,
    title      text,
    agent      text,
    metadata   text,
    by_backend boolean NOT NULL,
    created    bigint  NOT NULL
);
CREATE INDEX spaces_of_project ON spaces (project, id);

CREATE TABLE members (
    space    uuid   NOT NULL,
    entity   uuid   NOT NULL,
    position bigint NOT NULL,
    role     text,
    grants   text,
    PRIMARY KEY (space, entity)
);
CREATE INDEX spaces_of_member ON members (entity, space);

-- The last place of each space. Whoever appends to a space locks its row until the commit, so places become visible in
-- their order and without a gap. Half of a page is left free: the row is changed in place by every append.
CREATE TABLE heads (
    space uuid   NOT NULL PRIMARY KEY,
    last  bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- One row per append.
CREATE TABLE log (
    space  uuid    NOT NULL,
    first  bigint  NOT NULL,
    last   bigint  NOT NULL,
    run    uuid,
    time   bigint  NOT NULL,
    format bigint  NOT NULL,
    events text    NOT NULL,
    PRIMARY KEY (space, first)
);
CREATE INDEX log_of_run ON log (run, first) WHERE run IS NOT NULL;

-- `epoch` counts the claims and stays when the lease is given back; `node` is who holds the lease. `open` and `queued`
-- follow from `status`, which most appends assign and which therefore is in no index: an update that changes no indexed
-- column writes no index.
CREATE TABLE runs (
    id          uuid    NOT NULL PRIMARY KEY,
    project     uuid    NOT NULL,
    space       uuid    NOT NULL,
    agent       text    COLLATE "C" NOT NULL,
    revision    bigint  NOT NULL,
    parent_run  uuid,
    parent_call bigint,
    root        uuid    NOT NULL,
    status      text    NOT NULL,
    created     bigint  NOT NULL,
    updated     bigint  NOT NULL,
    version     bigint  NOT NULL,
    wake_at     bigint,
    node        uuid,
    epoch       bigint  NOT NULL,
    tokens      bigint  NOT NULL,
    lane        bigint  NOT NULL,
    wakes       bigint  NOT NULL,
    open        boolean NOT NULL,
    queued      boolean NOT NULL,
    asks        boolean NOT NULL,
    tool        text    COLLATE "C",
    "user"      uuid,
    title       text    COLLATE "C"
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX runs_of_project ON runs (project, id);
CREATE INDEX runs_of_space ON runs (project, space, id);
CREATE INDEX runs_of_parent ON runs (project, parent_run, id) WHERE parent_run IS NOT NULL;
CREATE INDEX runs_of_root ON runs (root) WHERE parent_run IS NOT NULL;
CREATE INDEX runs_of_user ON runs (project, "user", id) WHERE "user" IS NOT NULL;
CREATE INDEX runs_by_time ON runs (project, created);
-- What looks for work reads these, and never reads past work.
CREATE INDEX runs_open ON runs (space, id) WHERE open;
CREATE INDEX runs_of_node ON runs (node) WHERE open AND node IS NOT NULL;
CREATE INDEX runs_queued ON runs (id) WHERE queued AND node IS NULL;
CREATE INDEX runs_woken ON runs (id) WHERE open AND wakes > 0 AND node IS NULL;
CREATE INDEX runs_wake ON runs (wake_at) WHERE open AND wake_at IS NOT NULL;
CREATE INDEX runs_asking ON runs (project, id) WHERE asks;

CREATE TABLE nodes (
    id    uuid   NOT NULL PRIMARY KEY,
    until bigint NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX nodes_by_end ON nodes (until);

CREATE TABLE idempotency (
    project uuid   NOT NULL,
    key     text   COLLATE "C" NOT NULL,
    request bytea  NOT NULL,
    answer  text   NOT NULL,
    time    bigint NOT NULL,
    PRIMARY KEY (project, key)
);
CREATE INDEX idempotency_by_time ON idempotency (time);

-- The definitions of tools as runs began with them, once per content. A run names them by hash in its first event.
CREATE TABLE definitions (
    project    uuid NOT NULL,
    hash       text COLLATE "C" NOT NULL,
    definition text NOT NULL,
    PRIMARY KEY (project, hash)
);

-- Calls of a tool on one day (days since 1970, in UTC) that ended the same way and took about as long. `code` is empty for
-- those that gave an output; `latency` is a class, see the engine's `usage`. Every writer counts in a shard of its own,
-- because a row that all of them change would let them commit only one after the other.
CREATE TABLE tool_usage (
    project uuid   NOT NULL,
    tool    text   COLLATE "C" NOT NULL,
    day     bigint NOT NULL,
    code    text   COLLATE "C" NOT NULL,
    latency bigint NOT NULL,
    shard   bigint NOT NULL,
    calls   bigint NOT NULL,
    PRIMARY KEY (project, tool, day, code, latency, shard)
) WITH (fillfactor = 80);

-- What the gateway's own tools keep. `owner` is empty for the project, or a letter and 16 bytes.
CREATE TABLE records (
    number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project uuid   NOT NULL,
    owner   bytea  NOT NULL,
    kind    text   COLLATE "C" NOT NULL,
    id      text   COLLATE "C" NOT NULL,
    due     bigint,
    created bigint NOT NULL,
    updated bigint NOT NULL,
    version bigint NOT NULL,
    body    text   NOT NULL,
    data    bytea,
    UNIQUE (project, owner, kind, id)
);
-- Files are compressed already, or are numbers that do not compress.
ALTER TABLE records ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE INDEX records_due ON records (kind, due) WHERE due IS NOT NULL;

-- What each record set holds, kept by the triggers below: a limit is checked without counting records. Whoever changes
-- records of a set locks its row until the commit. `number` stands for the set in search terms.
CREATE TABLE record_sets (
    number     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project    uuid   NOT NULL,
    owner      bytea  NOT NULL,
    kind       text   COLLATE "C" NOT NULL,
    records    bigint NOT NULL,
    bytes      bigint NOT NULL,
    searchable bigint NOT NULL,
    UNIQUE (project, owner, kind)
) WITH (fillfactor = 80);
CREATE INDEX record_sets_of_kind ON record_sets (kind) WHERE records > 0;

-- Records that search finds, the version of the analysis that made their terms, and the terms. Each term begins with the
-- number of its set, so that a search never looks at what others keep.
CREATE TABLE searchable (
    number     bigint NOT NULL PRIMARY KEY,
    record_set bigint NOT NULL,
    kind       text   COLLATE "C" NOT NULL,
    analysis   bigint NOT NULL,
    terms      text[] COLLATE "C" NOT NULL
);
CREATE INDEX searchable_stale ON searchable (kind, analysis);
CREATE INDEX searchable_terms ON searchable USING gin (terms);

CREATE FUNCTION count_added_records() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO record_sets AS sets (project, owner, kind, records, bytes, searchable)
    SELECT project, owner, kind, count(*), sum(octet_length(body) + coalesce(octet_length(data), 0)), 0
    FROM added GROUP BY project, owner, kind ORDER BY project, owner, kind
    ON CONFLICT (project, owner, kind) DO UPDATE
        SET records = sets.records + excluded.records, bytes = sets.bytes + excluded.bytes;
    RETURN NULL;
END $$;
CREATE TRIGGER records_added AFTER INSERT ON records
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION count_added_records();

CREATE FUNCTION count_changed_records() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE record_sets AS sets SET bytes = sets.bytes + changed.bytes
    FROM (SELECT after.project, after.owner, after.kind,
                 sum(octet_length(after.body) + coalesce(octet_length(after.data), 0)
                     - octet_length(before.body) - coalesce(octet_length(before.data), 0)) AS bytes
          FROM after JOIN before USING (number) GROUP BY after.project, after.owner, after.kind) AS changed
    WHERE sets.project = changed.project AND sets.owner = changed.owner AND sets.kind = changed.kind;
    RETURN NULL;
END $$;
CREATE TRIGGER records_changed AFTER UPDATE ON records
    REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION count_changed_records();

CREATE FUNCTION count_removed_records() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM searchable USING removed WHERE searchable.number = removed.number;
    UPDATE record_sets AS sets SET records = sets.records - gone.records, bytes = sets.bytes - gone.bytes
    FROM (SELECT project, owner, kind, count(*) AS records,
                 sum(octet_length(body) + coalesce(octet_length(data), 0)) AS bytes
          FROM removed GROUP BY project, owner, kind) AS gone
    WHERE sets.project = gone.project AND sets.owner = gone.owner AND sets.kind = gone.kind;
    RETURN NULL;
END $$;
CREATE TRIGGER records_removed AFTER DELETE ON records
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION count_removed_records();

CREATE FUNCTION count_added_searchable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE record_sets AS sets SET searchable = sets.searchable + more.searchable
    FROM (SELECT record_set, count(*) AS searchable FROM added GROUP BY record_set) AS more
    WHERE sets.number = more.record_set;
    RETURN NULL;
END $$;
CREATE TRIGGER searchable_added AFTER INSERT ON searchable
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION count_added_searchable();

CREATE FUNCTION count_removed_searchable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE record_sets AS sets SET searchable = sets.searchable - gone.searchable
    FROM (SELECT record_set, count(*) AS searchable FROM removed GROUP BY record_set) AS gone
    WHERE sets.number = gone.record_set;
    RETURN NULL;
END $$;
CREATE TRIGGER searchable_removed AFTER DELETE ON searchable
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION count_removed_searchable();

-- What came of calls, stored with what they changed: a call that is made again after a crash is answered with it.
CREATE TABLE receipts (
    project uuid   NOT NULL,
    key     text   COLLATE "C" NOT NULL,
    time    bigint NOT NULL,
    answer  text   NOT NULL,
    PRIMARY KEY (project, key)
);
CREATE INDEX receipts_time ON receipts (time);

-- The readiness check writes here, to see that a write of some size is taken.
CREATE TABLE probe (
    id      bigint NOT NULL PRIMARY KEY,
    written bigint NOT NULL,
    filling bytea  NOT NULL
);
INSERT INTO probe (id, written, filling) VALUES (1, 0, '');
