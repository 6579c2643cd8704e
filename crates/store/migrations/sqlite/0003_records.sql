-- What the gateway's own tools keep. `owner` is empty for the project, or a letter and 16 bytes.
CREATE TABLE records (
    number  INTEGER PRIMARY KEY,
    project BLOB    NOT NULL,
    owner   BLOB    NOT NULL,
    kind    TEXT    NOT NULL,
    id      TEXT    NOT NULL,
    body    TEXT    NOT NULL,
    data    BLOB,
    due     INTEGER,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    version INTEGER NOT NULL,
    UNIQUE (project, owner, kind, id)
) STRICT;
CREATE INDEX records_due ON records (kind, due) WHERE due IS NOT NULL;

-- The words that records are found by; a row has the number of its record.
CREATE VIRTUAL TABLE record_text USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2');
