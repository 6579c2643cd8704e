-- What a run has used, kept by the write that stores its steps, so that a family of runs is summed up without its logs.
ALTER TABLE runs ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;
-- Only families that may still grow are counted again.
UPDATE runs SET tokens = coalesce((
    SELECT sum(coalesce(step.value ->> '$.usage.inputTokens', 0) + coalesce(step.value ->> '$.usage.outputTokens', 0))
    FROM log, json_each(log.events) AS step
    WHERE log.run = runs.id AND step.value ->> '$.type' = 'step-finish'), 0)
WHERE root IN (
    SELECT id FROM runs WHERE status <> 'completed' AND status <> 'failed' AND status <> 'cancelled');
CREATE INDEX runs_of_root ON runs (root) WHERE parent_run IS NOT NULL;
