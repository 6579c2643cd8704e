-- What members were given in a space, and entities in all of them; grants are JSON arrays of texts.
ALTER TABLE members ADD COLUMN role TEXT;
ALTER TABLE members ADD COLUMN grants TEXT;
ALTER TABLE entities ADD COLUMN grants TEXT;
-- Whether an approval was asked for in the run's current step. Until now nobody noted it: every open run may wait.
ALTER TABLE runs ADD COLUMN asks INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET asks = 1 WHERE open = 1;
CREATE INDEX runs_asking ON runs (project, id) WHERE asks = 1;
