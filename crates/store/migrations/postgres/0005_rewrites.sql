-- How often entries of a log were deleted or rewritten: what was read of it before is no longer so.
ALTER TABLE log_floors ADD COLUMN rewrites bigint NOT NULL DEFAULT 0;

-- Entries that belong to no run, which retention looks for.
CREATE INDEX log_loose ON log (space, time, first) WHERE run IS NULL;
