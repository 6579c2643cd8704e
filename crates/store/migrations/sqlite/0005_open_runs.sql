-- An agent has at most one open run per space that no call started; the write that creates a run looks for another
-- here. No unique index: a database of an earlier version may hold several, and they end by themselves.
-- `open` changes when a run begins and ends, so that the appends between leave the index as it is.
ALTER TABLE runs ADD COLUMN open INTEGER NOT NULL DEFAULT 0;
-- Tells the open runs of a space apart: the smallest number below 16 that none of the others has.
ALTER TABLE runs ADD COLUMN lane INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET open = 1 WHERE status <> 'completed' AND status <> 'failed' AND status <> 'cancelled';
CREATE INDEX runs_open_of_space ON runs (space, id) WHERE open = 1;
UPDATE runs SET lane = (
    SELECT count(*) FROM runs AS older WHERE older.space = runs.space AND older.open = 1 AND older.id < runs.id) % 16
WHERE open = 1;
