-- Lists of one agent's runs, however few of the project's they are.
CREATE INDEX runs_of_agent ON runs (project, agent, id);

-- Why a run ended otherwise than by completing: its status, `failed` or `cancelled`, and nothing for all others. Beside `status`,
-- which changes many times in a run and therefore is in no index; this changes with the write that ends it. A trigger keeps it, so
-- that gateways that have never heard of it do so too.
ALTER TABLE runs ADD COLUMN failure text COLLATE "C";
CREATE FUNCTION note_failure() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.failure := NEW.status;
    RETURN NEW;
END $$;
CREATE TRIGGER run_failed BEFORE INSERT OR UPDATE ON runs
    FOR EACH ROW WHEN (NEW.status IN ('failed', 'cancelled')) EXECUTE FUNCTION note_failure();
UPDATE runs SET failure = status WHERE status IN ('failed', 'cancelled');
CREATE INDEX runs_failed ON runs (project, failure, id) WHERE failure IS NOT NULL;
