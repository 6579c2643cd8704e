-- The sample of `scale` with {runs} runs. Ids are sortable by time, as the gateway makes them: milliseconds, a kind and a number.

CREATE FUNCTION pg_temp.made_id(kind bigint, at bigint, number bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT (lpad(to_hex(at), 12, '0') || '7' || lpad(to_hex(kind), 3, '0') || '8' || lpad(to_hex(number), 15, '0'))::uuid
$$;

CREATE TEMP TABLE made_space AS
    SELECT n, pg_temp.made_id(2, at, n) AS id, at,
        CASE WHEN n % 100 < 70 THEN 1 WHEN n % 100 < 95 THEN 2 ELSE 3 END AS project, n % {users} + 1 AS owner
    FROM (SELECT n, {begin} + n * ({span} / {spaces}) AS at FROM generate_series(1, {spaces}) AS n) AS numbered;

CREATE TEMP TABLE made_run AS
    SELECT *, sum(parts * 4) OVER (PARTITION BY space ORDER BY n) - parts * 4 AS place
    FROM (SELECT made.n, pg_temp.made_id(3, made.at, made.n) AS id, made.at, space.id AS space, space.project, space.owner,
        CASE WHEN made.n % 1000 = 0 THEN 'waiting_tool' WHEN made.n % 5000 = 500 THEN 'waiting_approval'
             WHEN made.n % 5000 = 1500 THEN 'waiting_time' WHEN made.n % 100 = 7 THEN 'failed'
             WHEN made.n % 100 = 13 THEN 'cancelled' ELSE 'completed' END AS status,
        CASE WHEN made.n % ({runs} / 20) = 1 THEN 'rare' ELSE 'agent_' || (made.n % 7) END AS agent,
        made.n % 20 = 5 AS is_child,
        CASE WHEN made.n % 1000 = 0 OR made.n % 5000 IN (500, 1500) THEN 2 ELSE 4 END AS parts
    FROM (SELECT n, {begin} + n * ({span} / {runs}) AS at, CASE WHEN n % 50 = 9 THEN 1 ELSE (n - 1) % {spaces} + 1 END AS space
          FROM generate_series(1, {runs}) AS n) AS made
    JOIN made_space AS space ON space.n = made.space) AS made;

CREATE TEMP TABLE made_project AS SELECT n, pg_temp.made_id(1, 1, n) AS id FROM generate_series(1, 3) AS n;
INSERT INTO projects (id, name, created) SELECT id, 'project ' || n, {begin} FROM made_project;
INSERT INTO entities (id, project, subject, kind, created)
    SELECT pg_temp.made_id(4, {begin}, n), pg_temp.made_id(1, 1, 1), 'user' || n, 'person', {begin} FROM generate_series(1, {users}) AS n;
INSERT INTO spaces (id, project, by_backend, created)
    SELECT id, pg_temp.made_id(1, 1, project), false, at FROM made_space;
INSERT INTO members (space, entity, position)
    SELECT id, pg_temp.made_id(4, {begin}, owner), 1 FROM made_space
    UNION ALL SELECT id, pg_temp.made_id(4, {begin}, (owner * 7 + n) % {users} + 1), 2 FROM made_space
    WHERE (owner * 7 + n) % {users} + 1 <> owner;

INSERT INTO runs (id, project, space, agent, revision, parent_run, parent_call, root, status, created, updated, version, wake_at,
                  epoch, tokens, lane, wakes, open, queued, asks, tool, "user", title)
    SELECT id, pg_temp.made_id(1, 1, project), space, agent, 1,
        CASE WHEN is_child THEN pg_temp.made_id(3, at - {span} / {runs}, n - 1) END, CASE WHEN is_child THEN 0 END,
        CASE WHEN is_child THEN pg_temp.made_id(3, at - {span} / {runs}, n - 1) ELSE id END,
        status, at, at + 20000, (place + parts * 4) * 1000000,
        CASE WHEN status = 'waiting_time' THEN {begin} + 2 * {span} END, 1, 150, 0, 0, status LIKE 'waiting%', false,
        status = 'waiting_approval', CASE WHEN n % 10000 = 37 THEN 'lookup' WHEN agent = 'agent_6' AND n % ({runs} / 20) >= 7 THEN 'errand' END, pg_temp.made_id(4, {begin}, owner),
        CASE WHEN n % ({runs} / 5) = 3 THEN 'A needle in the stack, number ' ELSE 'Where is my order number ' END || n
    FROM made_run;

INSERT INTO log (space, first, last, run, time, format, events)
    SELECT space, (place + part * 4 + 1) * 1000000, (place + part * 4 + 4) * 1000000, id, at + part * 5000, 1,
        CASE part
        WHEN 0 THEN '[{"type":"run-start","agent":"' || agent || '","revision":1,"model":{"provider":"demo","name":"demo"},"depth":0,"tools":{}},'
            || '{"type":"message","message":{"messageId":"msg_01jd0000000000000000000002","parts":[{"type":"text","text":"Where is my order number ' || n || '? It should have been here on Monday."}]}},'
            || '{"type":"run-status","status":"running"},{"type":"step-start","step":0}]'
        WHEN 1 THEN '[{"type":"text-end","id":"0.0","text":"I will look that up."},'
            || '{"type":"tool-input-available","toolCallId":"call_01jd0000000000000000000005_0","toolName":"lookup","placement":"client","input":{"order":' || n || '}},'
            || '{"type":"step-finish","step":0,"reason":"tool-calls","usage":{"inputTokens":90,"outputTokens":10}},'
            || '{"type":"run-status","status":"waiting_tool"}]'
        WHEN 2 THEN '[{"type":"tool-executing","toolCallId":"call_01jd0000000000000000000005_0","toolName":"lookup","placement":"client"},'
            || '{"type":"tool-output-available","toolCallId":"call_01jd0000000000000000000005_0","toolName":"lookup","placement":"client","output":{"state":"on its way","order":' || n || '}},'
            || '{"type":"run-status","status":"running"},{"type":"step-start","step":1}]'
        ELSE '[{"type":"text-end","id":"1.0","text":"Order ' || n || ' is on its way and should be with you tomorrow."},'
            || '{"type":"step-finish","step":1,"reason":"stop","usage":{"inputTokens":40,"outputTokens":10}},'
            || '{"type":"notification","title":"Order","body":"on its way","messageId":"msg_01jd0000000000000000000002"},'
            || '{"type":"run-finish","status":"' || status || '","reason":"'
            || CASE status WHEN 'completed' THEN 'stop' ELSE 'model-error' END || '","usage":{"inputTokens":130,"outputTokens":20}}]'
        END
    FROM made_run CROSS JOIN generate_series(0, 3) AS part WHERE part < parts
    ORDER BY at + part * 5000;

INSERT INTO heads (space, last) SELECT space, max(last) FROM log GROUP BY space;
INSERT INTO consumption (project, day, agent, "user", model, shard, runs, requests, input_tokens, output_tokens, cached_tokens,
                         cost_micros, unpriced)
    SELECT pg_temp.made_id(1, 1, project), at / 86400000, agent, pg_temp.made_id(4, {begin}, owner), 'demo:demo', 0, count(*), count(*),
        count(*), count(*), 0, 0, 0 FROM made_run GROUP BY 1, 2, 3, 4;
INSERT INTO tool_usage (project, tool, day, code, latency, shard, calls)
    SELECT pg_temp.made_id(1, 1, project), 'lookup', at / 86400000, '', n % 40, 0, count(*) FROM made_run GROUP BY 1, 3, 5;
INSERT INTO records (project, owner, kind, id, body, due, created, updated, version)
    SELECT pg_temp.made_id(1, 1, project), '\x65'::bytea || uuid_send(pg_temp.made_id(4, {begin}, owner)), 'memory', 'memory' || n, '{"said":"tea"}',
        NULL, at, at, 1 FROM made_run WHERE n % 5 = 0
    UNION ALL
    SELECT pg_temp.made_id(1, 1, project), '\x', 'delivery', 'delivery' || n, '{"state":"done"}',
        CASE WHEN n % 1000 = 0 THEN at END, at, at, 1 FROM made_run WHERE n % 10 = 0
    UNION ALL
    SELECT pg_temp.made_id(1, 1, project), '\x73'::bytea || uuid_send(space), 'plan', 'plan' || n, '{"at":"noon"}',
        {begin} + 2 * {span} + n, at, at, 1 FROM made_run WHERE n % 50 = 1;
INSERT INTO idempotency (project, key, request, answer, time)
    SELECT pg_temp.made_id(1, 1, project), 'key' || n, '\x07', '{}', at FROM made_run WHERE n > {runs} - {runs} / 100;
INSERT INTO receipts (project, key, time, answer)
    SELECT pg_temp.made_id(1, 1, project), 'call' || n, at, '{}' FROM made_run WHERE n > {runs} - {runs} / 20;
INSERT INTO nodes (id, until) SELECT pg_temp.made_id(5, 1, n), 0 FROM generate_series(1, 10) AS n;
