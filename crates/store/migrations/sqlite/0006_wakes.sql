-- Wake-ups that no driver has acted on yet, counted by the writes that cause them.
ALTER TABLE runs ADD COLUMN wakes INTEGER NOT NULL DEFAULT 0;
-- Until now work was found by the status `running`, and orphans by their parents: each of these is looked at once.
UPDATE runs SET wakes = 1
WHERE (status = 'running' OR parent_run IS NOT NULL)
  AND status <> 'completed' AND status <> 'failed' AND status <> 'cancelled';
CREATE INDEX runs_woken ON runs (node)
    WHERE wakes > 0 AND status <> 'completed' AND status <> 'failed' AND status <> 'cancelled';
