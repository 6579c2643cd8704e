-- Who started a run and what was said first, so that lists of runs can be filtered and read without their logs. Runs that were
-- made before have neither.
ALTER TABLE runs ADD COLUMN user BLOB;
ALTER TABLE runs ADD COLUMN title TEXT;
CREATE INDEX runs_of_user ON runs (project, user, id) WHERE user IS NOT NULL;
-- What a project did in the last hours.
CREATE INDEX runs_by_time ON runs (project, created);
