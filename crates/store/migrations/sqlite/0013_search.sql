-- What each record set holds, kept by the triggers below: a limit is checked without counting records. `number` stands for
-- the set in search terms.
CREATE TABLE record_sets (
    number     INTEGER PRIMARY KEY,
    project    BLOB    NOT NULL,
    owner      BLOB    NOT NULL,
    kind       TEXT    NOT NULL,
    records    INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    searchable INTEGER NOT NULL,
    UNIQUE (project, owner, kind)
) STRICT;
INSERT INTO record_sets (project, owner, kind, records, bytes, searchable)
SELECT project, owner, kind, count(*), sum(octet_length(body) + coalesce(octet_length(data), 0)), 0
FROM records GROUP BY project, owner, kind;

-- Records that search finds, and the version of the analysis that made their terms.
CREATE TABLE searchable (
    number   INTEGER PRIMARY KEY,
    record_set INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    analysis INTEGER NOT NULL
) STRICT;
CREATE INDEX searchable_stale ON searchable (kind, analysis);
-- Which records have which terms; the row is the record's number. Each term begins with the number of its set, and carries
-- how often it occurs: no positions, no text.
CREATE VIRTUAL TABLE record_terms USING fts5 (
    terms, content = '', contentless_delete = 1, detail = none, tokenize = "ascii tokenchars '~'");

-- Until now words were indexed by a tokenizer for English. The records are indexed again while the gateway runs.
INSERT INTO searchable (number, record_set, kind, analysis)
SELECT records.number, record_sets.number, records.kind, 0
FROM record_text
JOIN records ON records.number = record_text.rowid
JOIN record_sets USING (project, owner, kind);
UPDATE record_sets SET searchable = (SELECT count(*) FROM searchable WHERE record_set = record_sets.number);
DROP TABLE record_text;

CREATE TRIGGER record_added AFTER INSERT ON records BEGIN
    INSERT INTO record_sets (project, owner, kind, records, bytes, searchable)
    VALUES (new.project, new.owner, new.kind, 1, octet_length(new.body) + coalesce(octet_length(new.data), 0), 0)
    ON CONFLICT (project, owner, kind) DO UPDATE SET records = records + 1, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER record_changed AFTER UPDATE OF body, data ON records BEGIN
    UPDATE record_sets SET bytes = bytes
        + octet_length(new.body) + coalesce(octet_length(new.data), 0)
        - octet_length(old.body) - coalesce(octet_length(old.data), 0)
    WHERE project = new.project AND owner = new.owner AND kind = new.kind;
END;
CREATE TRIGGER record_removed AFTER DELETE ON records BEGIN
    DELETE FROM searchable WHERE number = old.number;
    UPDATE record_sets SET records = records - 1,
        bytes = bytes - octet_length(old.body) - coalesce(octet_length(old.data), 0)
    WHERE project = old.project AND owner = old.owner AND kind = old.kind;
    DELETE FROM record_sets
    WHERE project = old.project AND owner = old.owner AND kind = old.kind AND records = 0;
END;
CREATE TRIGGER searchable_added AFTER INSERT ON searchable BEGIN
    UPDATE record_sets SET searchable = searchable + 1 WHERE number = new.record_set;
END;
CREATE TRIGGER searchable_removed AFTER DELETE ON searchable BEGIN
    DELETE FROM record_terms WHERE rowid = old.number;
    UPDATE record_sets SET searchable = searchable - 1 WHERE number = old.record_set;
END;
