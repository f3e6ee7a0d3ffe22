-- The database of a run: what was sent and answered, word for word, and what its processes share. The text of a record
-- is packed: pytest-fairness export RUN --sqlite FILE writes tables for other tools.

CREATE TABLE records (
    id INTEGER PRIMARY KEY, writer TEXT NOT NULL, number INTEGER NOT NULL, type TEXT NOT NULL,
    key BLOB, status TEXT, hash BLOB NOT NULL, bases TEXT, body BLOB NOT NULL);

CREATE UNIQUE INDEX records_by_writer ON records (writer, number);

CREATE INDEX records_by_key ON records (key, type, status) WHERE key IS NOT NULL;

CREATE INDEX records_of_tests ON records (type, id) WHERE key IS NULL;

CREATE TABLE claims (key BLOB PRIMARY KEY, writer TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE writers (name TEXT PRIMARY KEY, pid INTEGER, host TEXT) WITHOUT ROWID;

CREATE TABLE account (settled INTEGER NOT NULL, reserved INTEGER NOT NULL);

CREATE TABLE rate_limits (identity TEXT PRIMARY KEY, written REAL, request_due REAL, token_due REAL);

-- Of a trial the record that counts: one that has an answer rather than one that may be asked again, then the last.
CREATE VIEW trials AS SELECT * FROM records WHERE type = 'trial' AND NOT EXISTS (
    SELECT 1 FROM records AS other WHERE other.key = records.key AND other.type = 'trial' AND other.id <> records.id
    AND CASE WHEN (other.status IN ('unknown', 'error')) = (records.status IN ('unknown', 'error'))
        THEN other.id > records.id ELSE records.status IN ('unknown', 'error') END);
