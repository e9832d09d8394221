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

-- version 2
-- Logins of agents, made by `teams set-up-roles`. The owner of the tables is bound by none of this.
CREATE TABLE logins (
    login text PRIMARY KEY,
    team text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    leads boolean NOT NULL
);

CREATE FUNCTION me(of_team text) RETURNS text STABLE SECURITY DEFINER SET search_path FROM CURRENT LANGUAGE sql AS $$
    SELECT agent FROM logins WHERE login = session_user AND team = of_team
$$;

CREATE FUNCTION leads(of_team text) RETURNS boolean STABLE SECURITY DEFINER SET search_path FROM CURRENT LANGUAGE sql
AS $$
    SELECT EXISTS (SELECT 1 FROM logins WHERE login = session_user AND team = of_team AND leads)
$$;

-- What an agent's own login may change: its inbox, what is known of it, tasks that are free or its own.
CREATE FUNCTION may_change(of_team text, of_kind text, of_key text, said jsonb) RETURNS boolean
STABLE SET search_path FROM CURRENT LANGUAGE sql AS $$
    SELECT CASE
        WHEN me(of_team) IS NULL THEN false
        WHEN leads(of_team) THEN true
        WHEN of_kind IN ('inbox', 'agent', 'output') THEN of_key = me(of_team)
        WHEN of_kind = 'task' THEN said->>'status' IS DISTINCT FROM 'in_progress'
            OR said->>'owner' = me(of_team)
            OR (said->>'leaseUntil')::float8 < extract(epoch FROM clock_timestamp())
        ELSE of_kind NOT IN ('team', 'run')
    END
$$;

ALTER TABLE records ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON records FOR SELECT USING (me(team) IS NOT NULL);
CREATE POLICY made ON records FOR INSERT WITH CHECK (may_change(team, kind, key, record));
CREATE POLICY changed ON records FOR UPDATE
    USING (may_change(team, kind, key, record)) WITH CHECK (may_change(team, kind, key, record));

ALTER TABLE messages ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON messages FOR SELECT USING (me(team) IS NOT NULL);
CREATE POLICY sent ON messages FOR INSERT WITH CHECK (record->>'from' IN (me(team), 'system') OR leads(team));

ALTER TABLE history ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON history FOR SELECT USING (me(team) IS NOT NULL);
CREATE POLICY noted ON history FOR INSERT WITH CHECK (me(team) IS NOT NULL);

ALTER TABLE counters ENABLE ROW LEVEL SECURITY;
CREATE POLICY counted ON counters USING (me(team) IS NOT NULL);

ALTER TABLE changes ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON changes FOR SELECT USING (true);
CREATE POLICY made ON changes FOR INSERT WITH CHECK (true);

-- version 3
-- Temporary tables come last, or a login could put one of its own in the place of `logins`.
DO $$
DECLARE of_ours text;
BEGIN
    FOREACH of_ours IN ARRAY ARRAY['me(text)', 'leads(text)', 'may_change(text, text, text, jsonb)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', of_ours, current_schema());
    END LOOP;
END $$;

-- Members propose plans, and leaders decide them.
CREATE POLICY proposed ON records AS RESTRICTIVE FOR INSERT
    WITH CHECK (kind <> 'plan' OR leads(team) OR record->>'status' = 'proposed');
CREATE POLICY decided ON records AS RESTRICTIVE FOR UPDATE
    USING (kind <> 'plan' OR leads(team) OR record->>'status' = 'proposed')
    WITH CHECK (kind <> 'plan' OR leads(team) OR record->>'status' = 'proposed');

-- A login of an agent takes the next number and no other.
CREATE FUNCTION next_number() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF me(NEW.team) IS NOT NULL AND (NEW.team, NEW.kind, NEW.last) IS DISTINCT FROM (OLD.team, OLD.kind, OLD.last + 1) THEN
        RAISE insufficient_privilege USING MESSAGE = 'numbers are taken one by one';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER next_number BEFORE UPDATE ON counters FOR EACH ROW EXECUTE FUNCTION next_number();
