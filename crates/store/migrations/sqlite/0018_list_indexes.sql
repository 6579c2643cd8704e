-- Lists of one agent's runs, however few of the project's they are. Only the write that creates a run changes it.
CREATE INDEX runs_of_agent ON runs (project, agent, id);
-- Runs that did not complete are few beside the others. Only the write that ends one changes it.
CREATE INDEX runs_failed ON runs (project, status, id) WHERE status = 'failed' OR status = 'cancelled';
