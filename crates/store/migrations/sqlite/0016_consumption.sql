-- What the runs of an agent consumed on one day (days since 1970, in UTC) for one person with one model: runs that were
-- created, replies of models, tokens, and their cost in millionths of a unit of the currency. `user` is zeros for runs that
-- work for nobody; requests to models without a price are in `unpriced`, and their cost is in no sum.

CREATE TABLE consumption (
    project       BLOB    NOT NULL,
    day           INTEGER NOT NULL,
    agent         TEXT    NOT NULL,
    user          BLOB    NOT NULL,
    model         TEXT    NOT NULL,
    runs          INTEGER NOT NULL,
    requests      INTEGER NOT NULL,
    input_tokens  INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    cost_micros   INTEGER NOT NULL,
    unpriced      INTEGER NOT NULL,
    PRIMARY KEY (project, day, agent, user, model)
) STRICT, WITHOUT ROWID;

-- The budget of a user is looked at before each of its steps.
CREATE INDEX consumption_of_user ON consumption (project, user, day);
