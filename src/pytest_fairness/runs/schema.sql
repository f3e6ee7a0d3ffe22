-- The database of a run: what was sent and answered, word for word, and what its processes share.

CREATE TABLE records (
    id INTEGER PRIMARY KEY, writer TEXT NOT NULL, number INTEGER NOT NULL,
    type TEXT NOT NULL, key TEXT, status TEXT, record TEXT NOT NULL);

CREATE UNIQUE INDEX records_by_writer ON records (writer, number);

CREATE INDEX records_by_key ON records (key, type, status) WHERE key IS NOT NULL;

CREATE INDEX records_of_tests ON records (type, id) WHERE key IS NULL;

CREATE TABLE claims (key TEXT PRIMARY KEY, writer TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE writers (name TEXT PRIMARY KEY, pid INTEGER, host TEXT) WITHOUT ROWID;

CREATE TABLE account (settled INTEGER NOT NULL, reserved INTEGER NOT NULL);

CREATE TABLE rate_limits (identity TEXT PRIMARY KEY, written REAL, request_due REAL, token_due REAL);

-- Of a trial the record that counts: one that has an answer rather than one that may be asked again, then the last.
CREATE VIEW trials AS SELECT id, key,
    json_extract(record, '$.status') AS status,
    json_extract(record, '$.endpoint.name') AS endpoint,
    json_extract(record, '$.model') AS model,
    json_extract(record, '$.cell.id') AS cell,
    json_extract(record, '$.cell.template') AS template,
    json_extract(record, '$.cell.groups') AS groups,
    json_extract(record, '$.cell.name') AS name,
    json_extract(record, '$.cell.arm') AS arm,
    json_extract(record, '$.repetition') AS repetition,
    json_extract(record, '$.messages[#-1].content') AS prompt,
    json_extract(record, '$.replies[#-1]') AS reply,
    json_extract(record, '$.attempts') AS attempts,
    json_extract(record, '$.cost') AS cost,
    json_extract(record, '$.seconds') AS seconds,
    json_extract(record, '$.error') AS error,
    json_extract(record, '$.source') AS source,
    json_extract(record, '$.time') AS time,
    record
FROM records WHERE type = 'trial' AND NOT EXISTS (
    SELECT 1 FROM records AS other WHERE other.key = records.key AND other.type = 'trial' AND other.id <> records.id
    AND CASE WHEN (other.status IN ('unknown', 'error')) = (records.status IN ('unknown', 'error'))
        THEN other.id > records.id ELSE records.status IN ('unknown', 'error') END);

CREATE VIEW attempts AS SELECT id, key,
    json_extract(record, '$.turn') AS turn,
    json_extract(record, '$.attempt') AS attempt,
    json_extract(record, '$.status') AS status,
    json_extract(record, '$.evidence') AS evidence,
    json_extract(record, '$.cost') AS cost,
    json_extract(record, '$.seconds') AS seconds,
    json_extract(record, '$.error') AS error,
    json_extract(record, '$.wire.status_code') AS status_code,
    json_extract(record, '$.wire.request_body') AS request,
    json_extract(record, '$.wire.response_body') AS response,
    json_extract(record, '$.time') AS time,
    record
FROM records WHERE type = 'attempt';
