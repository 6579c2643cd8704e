-- Lists of runs walk along an index in their order. Only the writes that create and end a run change these.
-- Runs that have not ended, of one project.
CREATE INDEX runs_open_of_project ON runs (project, id) WHERE open;
-- Runs that are one call of a tool: few have any.
CREATE INDEX runs_of_tool ON runs (project, tool, id) WHERE tool IS NOT NULL;
-- Runs of one agent in the order in which they ended.
CREATE INDEX runs_ended_of_agent ON runs (project, agent, updated) WHERE NOT open AND parent_run IS NULL;
