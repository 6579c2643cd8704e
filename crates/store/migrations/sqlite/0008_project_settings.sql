-- Settings of a project that were given over HTTP, as JSON.
ALTER TABLE projects ADD COLUMN settings TEXT;
