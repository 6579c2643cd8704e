-- Whether a backend made the space, and so gave it its agent. Of the spaces so far nobody knows: users go on in them.
ALTER TABLE spaces ADD COLUMN by_backend INTEGER NOT NULL DEFAULT 1;
