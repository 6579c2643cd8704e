-- Runs of one agent in the order in which they ended, without those that are one call of a tool, of which there may be many more:
-- lists in that order have none of them. `runs_ended_of_agent` stays for nodes of earlier versions.
CREATE INDEX runs_recent_of_agent ON runs (project, agent, updated) WHERE NOT open AND parent_run IS NULL AND tool IS NULL;
