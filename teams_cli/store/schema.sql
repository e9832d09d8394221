-- The tables of `teams` in PostgreSQL 15 or later. The program makes them in a schema of their own and brings older
-- ones up to date, part by part: each part below is carried out once, in a transaction, and then never changed.
--
-- `body` is the record to the byte, as the file engine would write it, with its checksum; `record` is the same for
-- reading with SQL, where JSON's NUL character, which jsonb has not, is shown as U+FFFD.

-- version 1
CREATE FUNCTION readable(body text) RETURNS jsonb IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT CASE strpos(body, '\u0000')
        WHEN 0 THEN body::jsonb
        ELSE regexp_replace(body, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g')::jsonb
    END
$$;

CREATE TABLE records (
    team text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    label text COLLATE "C",
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    record jsonb NOT NULL GENERATED ALWAYS AS (readable(body)) STORED,
    body text NOT NULL,
    PRIMARY KEY (team, kind, key)
);
CREATE UNIQUE INDEX records_any_case ON records (team, kind, lower(key));
CREATE UNIQUE INDEX records_teams ON records (lower(team)) WHERE kind = 'team';
CREATE INDEX records_labels ON records (team, kind, label) WHERE label IS NOT NULL;

CREATE TABLE messages (
    team text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    uid text COLLATE "C" NOT NULL,
    recipients text[] COLLATE "C" NOT NULL,
    record jsonb NOT NULL GENERATED ALWAYS AS (readable(body)) STORED,
    body text NOT NULL,
    PRIMARY KEY (team, number),
    UNIQUE (team, uid)
);

CREATE TABLE history (
    team text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    entry json NOT NULL,
    PRIMARY KEY (team, position)
);

-- Numbers are given under the lock of a row, not by a sequence: their order is the order of commitment.
CREATE TABLE counters (
    team text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    last bigint NOT NULL,
    PRIMARY KEY (team, kind)
) WITH (fillfactor = 50);

-- One row a change, kept for some days: tells a client whose connection broke whether its change was made.
CREATE TABLE changes (
    id text COLLATE "C" PRIMARY KEY,
    team text COLLATE "C" NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX changes_at ON changes (team, at);
