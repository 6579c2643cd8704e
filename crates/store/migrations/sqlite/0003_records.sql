-- What the gateway's own tools keep. `owner` is empty for the project, or a letter and 16 bytes. `data` stands last:
-- nothing else of a row lies behind its megabytes.
CREATE TABLE records (
    number  INTEGER PRIMARY KEY,
    project BLOB    NOT NULL,
    owner   BLOB    NOT NULL,
    kind    TEXT    NOT NULL,
    id      TEXT    NOT NULL,
    due     INTEGER,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body    TEXT    NOT NULL,
    data    BLOB,
    UNIQUE (project, owner, kind, id)
) STRICT;
CREATE INDEX records_due ON records (kind, due) WHERE due IS NOT NULL;

-- The words that records are found by; a row has the number of its record. `shelf` is one word that all records of a
-- shelf share: a search begins with it, and so never looks at what others keep.
CREATE VIRTUAL TABLE record_text USING fts5 (shelf, text, tokenize = 'porter unicode61 remove_diacritics 2');

-- What came of calls, stored with what they changed: a call that is made again after a crash is answered with it.
CREATE TABLE receipts (
    project BLOB    NOT NULL,
    key     TEXT    NOT NULL,
    time    INTEGER NOT NULL,
    answer  TEXT    NOT NULL,
    PRIMARY KEY (project, key)
) STRICT;
CREATE INDEX receipts_time ON receipts (time);
