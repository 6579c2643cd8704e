-- One index for the open runs instead of two: every page that a write touches is copied to the write-ahead log, and a
-- run touched two more than it had to when it began and again when it ended.
DROP INDEX runs_open;
DROP INDEX runs_open_of_space;
-- The open runs of a space; with `node`, so that those of a node that died are found without reading rows.
CREATE INDEX runs_open ON runs (space, id, node) WHERE open = 1;
-- Only a run that found the gateway full is ever in it.
CREATE INDEX runs_queued ON runs (node) WHERE status = 'queued';
-- By `open` instead of `status`, which every append assigns.
DROP INDEX runs_wake;
CREATE INDEX runs_wake ON runs (wake_at) WHERE wake_at IS NOT NULL AND open = 1;
DROP INDEX runs_woken;
CREATE INDEX runs_woken ON runs (node) WHERE wakes > 0 AND open = 1;
-- Whoever has a lease has a row here, so that runs of dead nodes are found by their nodes.
INSERT INTO nodes (id, until) SELECT DISTINCT node, 0 FROM runs WHERE node IS NOT NULL ON CONFLICT DO NOTHING;
CREATE INDEX nodes_by_end ON nodes (until);
