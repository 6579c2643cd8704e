-- What the runs of an agent consumed on one day (days since 1970, in UTC) for one person with one model: runs that were
-- created, replies of models, tokens, and their cost in millionths of a unit of the currency. `user` is the nil uuid for runs
-- that work for nobody; requests to models without a price are in `unpriced`, and their cost is in no sum. Writers add to rows of
-- their own `shard`, so that they do not wait for each other.

CREATE TABLE consumption (
    project       uuid   NOT NULL,
    day           bigint NOT NULL,
    agent         text   COLLATE "C" NOT NULL,
    "user"        uuid   NOT NULL,
    model         text   COLLATE "C" NOT NULL,
    shard         bigint NOT NULL,
    runs          bigint NOT NULL,
    requests      bigint NOT NULL,
    input_tokens  bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    cost_micros   bigint NOT NULL,
    unpriced      bigint NOT NULL,
    PRIMARY KEY (project, day, agent, "user", model, shard)
) WITH (fillfactor = 80);

-- The budget of a user is looked at before each of its steps.
CREATE INDEX consumption_of_user ON consumption (project, "user", day);
