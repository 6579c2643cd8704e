-- The tool that a run is one call of, for a run in which no model writes the calls. Such runs stand beside the one open
-- run that an agent may have in a space.
ALTER TABLE runs ADD COLUMN tool TEXT;
