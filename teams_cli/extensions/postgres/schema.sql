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

-- version 4
-- Search by words. What is compared are the words of all strings of a record, of letters and digits alone, so that it
-- does not matter what the parser of full-text search makes of paths and hyphens. A very long record, which may have
-- more words than a tsvector holds, is found by every search.
CREATE FUNCTION plain_words(said text) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql AS $$
    SELECT trim(regexp_replace(said, '[^[:alnum:]]+', ' ', 'g'))
$$;

CREATE FUNCTION words_of(record jsonb) RETURNS tsvector IMMUTABLE PARALLEL SAFE SET search_path FROM CURRENT
LANGUAGE sql AS $$
    SELECT to_tsvector('simple'::regconfig, plain_words(left(string_agg(found #>> '{}', ' '), 100000)))
    FROM jsonb_path_query(record, 'strict $.** ? (@.type() == "string")') AS found
$$;

-- Each word may be the beginning of a longer one; NULL where nothing is left to look for.
CREATE FUNCTION wanted(words text[]) RETURNS tsquery STABLE SET search_path FROM CURRENT LANGUAGE sql AS $$
    SELECT to_tsquery('simple'::regconfig, string_agg(part || ':*', ' & '))
    FROM unnest(words) AS word, unnest(string_to_array(plain_words(word), ' ')) AS part WHERE part <> ''
$$;

CREATE INDEX messages_words ON messages USING gin (words_of(record));
CREATE INDEX messages_long ON messages (team, number) WHERE length(body) > 100000;
CREATE INDEX tasks_words ON records USING gin (words_of(record)) WHERE kind = 'task';
CREATE INDEX tasks_long ON records (team) WHERE kind = 'task' AND length(body) > 100000;

-- version 5
-- Records that owe somebody a notice of what was done: whoever comes next sends it.
CREATE INDEX records_owing ON records (team) WHERE record ? 'owed';

-- version 6
-- In a closed team nothing is changed but by who says so with `SET LOCAL teams.also_closed TO on`. Whoever changes
-- something shares a lock of the team while it looks whether the team is closed; who closes it has the lock alone, so
-- that none who saw the team open is still about to change something.
CREATE FUNCTION refuse_closed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'records' THEN
        IF NEW.kind = 'team' AND readable(NEW.body)->>'state' = 'closed' THEN
            PERFORM pg_advisory_xact_lock(hashtext(TG_TABLE_SCHEMA), hashtext(NEW.team));
        END IF;
        IF NEW.kind = 'team' AND TG_OP = 'INSERT' THEN
            RETURN NEW;
        END IF;
    END IF;
    IF current_setting('teams.also_closed', true) = 'on' THEN
        RETURN NEW;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(hashtext(TG_TABLE_SCHEMA), hashtext(NEW.team));
    PERFORM FROM records WHERE team = NEW.team AND kind = 'team' AND record->>'state' = 'closed';
    IF FOUND THEN
        RAISE 'team % is closed', NEW.team USING ERRCODE = 'TC001', DETAIL = NEW.team;
    END IF;
    RETURN NEW;
END $$;
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION refuse_closed() SET search_path = %I, pg_temp', current_schema());
END $$;
CREATE TRIGGER refuse_closed BEFORE INSERT OR UPDATE ON records FOR EACH ROW EXECUTE FUNCTION refuse_closed();
CREATE TRIGGER refuse_closed BEFORE INSERT ON messages FOR EACH ROW EXECUTE FUNCTION refuse_closed();

-- version 7
-- What logins of agents may do with each kind of record: `own` (the key is the agent's name), or a rule that is told
-- below; a kind that is not here is closed to them. `prefix` is that of a numbered kind. `teams set-up-roles` adds the
-- kinds that a later program declares.
CREATE TABLE opened (
    kind text COLLATE "C" PRIMARY KEY,
    rule text COLLATE "C" NOT NULL,
    prefix text COLLATE "C"
);
INSERT INTO opened VALUES
    ('inbox', 'own', NULL), ('agent', 'own', NULL), ('output', 'own', NULL), ('terminal', 'own', NULL),
    ('session', 'session', NULL), ('task', 'task', 'task'), ('plan', 'plan', 'plan'), ('question', 'question', 'ask'),
    ('shutdown', 'shutdown', 'shutdown'), ('message', 'message', 'msg');

ALTER TABLE logins ADD manages boolean NOT NULL DEFAULT false;
UPDATE logins SET manages = EXISTS (
    SELECT FROM records, jsonb_array_elements(record->'members') AS member
    WHERE records.team = logins.team AND kind = 'team'
        AND member->>'agentId' = logins.agent AND member->>'role' = 'task-manager');

CREATE FUNCTION rule_of(of_kind text) RETURNS text STABLE SECURITY DEFINER LANGUAGE sql AS $$
    SELECT rule FROM opened WHERE kind = of_kind
$$;

CREATE FUNCTION manages(of_team text) RETURNS boolean STABLE SECURITY DEFINER LANGUAGE sql AS $$
    SELECT EXISTS (SELECT 1 FROM logins WHERE login = session_user AND team = of_team AND (leads OR manages))
$$;

-- Whether an agent's own login may make or change that record, as it is or as it is to be.
CREATE OR REPLACE FUNCTION may_change(of_team text, of_kind text, of_key text, said jsonb) RETURNS boolean
STABLE LANGUAGE sql AS $$
    SELECT CASE
        WHEN me(of_team) IS NULL THEN false
        WHEN leads(of_team) THEN true
        ELSE CASE rule_of(of_kind)
            WHEN 'own' THEN of_key = me(of_team)
            WHEN 'session' THEN of_key = me(of_team)
            WHEN 'shutdown' THEN said->>'agent' = me(of_team)
            WHEN 'plan' THEN said->>'from' = me(of_team)
            WHEN 'question' THEN said->>'from' = me(of_team) OR coalesce(said->'to' ? me(of_team), false)
            WHEN 'task' THEN manages(of_team) OR said->>'owner' = me(of_team) OR said->>'status' = 'pending'
                OR (said->>'status' = 'in_progress'
                    AND (said->>'leaseUntil')::float8 < extract(epoch FROM clock_timestamp()))
            ELSE false
        END
    END
$$;

-- The record without these fields, without those that are null, and without what is not said but computed.
CREATE FUNCTION but(said jsonb, VARIADIC fields text[]) RETURNS jsonb IMMUTABLE LANGUAGE sql AS $$
    SELECT jsonb_strip_nulls(said - fields - 'checksum' - 'owed')
$$;

-- How an agent's own login may change a record from one state to another; an empty text, or what it may not.
CREATE FUNCTION refusal(who text, rule text, was jsonb, said jsonb) RETURNS text STABLE LANGUAGE plpgsql AS $$
DECLARE
    answered int := coalesce(jsonb_array_length(was->'answers'), 0);
    added jsonb;
BEGIN
    IF rule = 'session' AND but(was, 'state', 'outcome', 'outcomeBefore', 'turns', 'delivered', 'interjected',
        'stopAsked', 'pauseAsked', 'startedAt', 'endedAt', 'exitStatus', 'failure', 'resumes') IS DISTINCT FROM but(said,
        'state', 'outcome', 'outcomeBefore', 'turns', 'delivered', 'interjected', 'stopAsked', 'pauseAsked',
        'startedAt', 'endedAt', 'exitStatus', 'failure', 'resumes') THEN
        RETURN 'what an agent is run with is not its to change';
    ELSIF rule = 'shutdown' AND (was->>'status' <> 'requested' AND but(was, '') <> but(said, '')
        OR but(was, 'status', 'decidedAt', 'answer') <> but(said, 'status', 'decidedAt', 'answer')) THEN
        RETURN 'a request is answered once, and not changed';
    ELSIF rule = 'plan' AND (was->>'status' <> 'proposed' AND but(was, '') <> but(said, '')
        OR said->>'status' <> was->>'status' OR but(was, 'plan') <> but(said, 'plan')) THEN
        RETURN 'plans are decided by who leads';
    ELSIF rule = 'question' THEN
        IF but(was, 'answers', 'status', 'closedAt', 'known') <> but(said, 'answers', 'status', 'closedAt', 'known')
            OR (was->>'from' <> who AND was->'known' IS DISTINCT FROM said->'known') THEN
            RETURN 'a question stands as it was asked';
        ELSIF was->>'status' NOT IN ('pending', 'collecting')
            AND but(was, 'answers', 'known') <> but(said, 'answers', 'known') THEN
            RETURN 'a question that is over stays so';
        END IF;
        FOR added IN SELECT entry FROM jsonb_array_elements(said->'answers') WITH ORDINALITY AS listed (entry, place)
            WHERE place > answered LOOP
            IF coalesce((added->>'isHuman')::boolean, false) OR added->>'responder' = 'human'
                OR NOT (added->>'responder' = who OR was->>'from' = who) THEN
                RETURN 'an answer is given by who was asked';
            END IF;
        END LOOP;
        IF EXISTS (SELECT FROM generate_series(0, answered - 1) AS nth
            WHERE was->'answers'->nth IS DISTINCT FROM said->'answers'->nth) THEN
            RETURN 'an answer that was given stands';
        END IF;
    ELSIF rule = 'task' THEN
        IF was->>'owner' = who THEN
            IF but(was, 'title', 'description', 'priority', 'blockedBy', 'status', 'owner', 'updatedAt', 'claimedAt',
                'completedAt', 'result', 'claim', 'leaseExpiresAt', 'leaseEpoch', 'leaseUntil', 'notes', 'evidence')
                <> but(said, 'title', 'description', 'priority', 'blockedBy', 'status', 'owner', 'updatedAt',
                'claimedAt', 'completedAt', 'result', 'claim', 'leaseExpiresAt', 'leaseEpoch', 'leaseUntil', 'notes',
                'evidence') THEN
                RETURN 'what a task runs and asks for is said by who made it';
            END IF;
        ELSIF but(was, 'status', 'owner', 'updatedAt', 'claimedAt', 'completedAt', 'claim', 'leaseExpiresAt',
            'leaseEpoch', 'leaseUntil', 'notes') <> but(said, 'status', 'owner', 'updatedAt', 'claimedAt',
            'completedAt', 'claim', 'leaseExpiresAt', 'leaseEpoch', 'leaseUntil', 'notes')
            OR said->>'status' NOT IN ('pending', 'in_progress') THEN
            RETURN 'the task is not yours';
        END IF;
        IF (said->>'claim')::int NOT BETWEEN (was->>'claim')::int AND (was->>'claim')::int + 1 THEN
            RETURN 'claims are counted one by one';
        END IF;
    END IF;
    RETURN '';
END $$;

-- Of what an agent's own login writes: numbers are those that the server gave just before, what is decided, said or
-- finished stays so, and notices are owed in nobody's name but the agent's and the program's.
CREATE FUNCTION hold_to_own() RETURNS trigger SECURITY DEFINER LANGUAGE plpgsql AS $$
DECLARE
    who text := me(NEW.team);
    numbered text;
    given bigint;
    said jsonb;
    why text := '';
BEGIN
    IF who IS NULL THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'INSERT' THEN
        SELECT prefix INTO numbered FROM opened WHERE kind = NEW.kind;
        IF leads(NEW.team) AND numbered IS NULL AND NEW.kind = 'run' THEN
            numbered := 'run';
        END IF;
        SELECT last INTO given FROM counters WHERE team = NEW.team AND kind = NEW.kind;
        IF numbered IS NOT NULL AND NEW.key IS DISTINCT FROM numbered || '-' || given THEN
            RAISE insufficient_privilege USING MESSAGE = 'numbers are given by the server';
        END IF;
    END IF;
    IF leads(NEW.team) THEN
        RETURN NEW;
    END IF;
    said := NEW.record;
    IF EXISTS (SELECT FROM jsonb_array_elements(CASE jsonb_typeof(said->'owed') WHEN 'array' THEN said->'owed' ELSE '[]' END)
        AS owed WHERE coalesce(owed->>'sender', 'system') NOT IN ('system', who)) THEN
        why := 'a notice is sent in nobody else''s name';
    ELSIF TG_OP = 'UPDATE' THEN
        IF (NEW.team, NEW.kind, NEW.key) IS DISTINCT FROM (OLD.team, OLD.kind, OLD.key) THEN
            why := 'a record stays where it is';
        ELSIF NOT (OLD.kind = 'task' AND manages(OLD.team)) THEN
            why := refusal(who, rule_of(OLD.kind), OLD.record, said);
        END IF;
    ELSIF NEW.kind IN ('session', 'shutdown') OR (NEW.kind = 'task' AND NOT manages(NEW.team))
        OR (NEW.kind = 'question' AND (said->>'from' <> who OR jsonb_array_length(said->'answers') > 0)) THEN
        why := format('a %s is made by who leads', NEW.kind);
    END IF;
    IF why <> '' THEN
        RAISE insufficient_privilege USING MESSAGE = why;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER hold_to_own AFTER INSERT OR UPDATE ON records FOR EACH ROW EXECUTE FUNCTION hold_to_own();

-- The same of messages and of the history, which are only added to.
CREATE FUNCTION hold_to_given() RETURNS trigger SECURITY DEFINER LANGUAGE plpgsql AS $$
DECLARE
    who text := me(NEW.team);
    of_kind text := CASE TG_TABLE_NAME WHEN 'messages' THEN 'message' ELSE 'history' END;
    given bigint;
    said jsonb;
BEGIN
    IF who IS NULL THEN
        RETURN NEW;
    END IF;
    SELECT last INTO given FROM counters WHERE team = NEW.team AND kind = of_kind;
    IF TG_TABLE_NAME = 'history' THEN
        IF NEW.position IS DISTINCT FROM given THEN
            RAISE insufficient_privilege USING MESSAGE = 'numbers are given by the server';
        END IF;
        RETURN NEW;
    END IF;
    said := NEW.record;
    IF NEW.number IS DISTINCT FROM given OR (said->>'number')::bigint IS DISTINCT FROM given
        OR said->>'id' IS DISTINCT FROM 'msg-' || given THEN
        RAISE insufficient_privilege USING MESSAGE = 'numbers are given by the server';
    END IF;
    IF NEW.recipients IS DISTINCT FROM (CASE jsonb_typeof(said->'recipients')
        WHEN 'array' THEN ARRAY(SELECT jsonb_array_elements_text(said->'recipients')) ELSE ARRAY[said->>'to'] END) THEN
        RAISE insufficient_privilege USING MESSAGE = 'a message is for those that it names';
    END IF;
    IF strpos(NEW.uid, '~') > 0 AND split_part(NEW.uid, '~', 1) NOT IN ('system', who) AND NOT leads(NEW.team) THEN
        RAISE insufficient_privilege USING MESSAGE = 'the uid is another''s';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER hold_to_given AFTER INSERT ON messages FOR EACH ROW EXECUTE FUNCTION hold_to_given();
CREATE TRIGGER hold_to_given AFTER INSERT ON history FOR EACH ROW EXECUTE FUNCTION hold_to_given();

-- Counters begin at one, of kinds that there are.
CREATE FUNCTION first_number() RETURNS trigger SECURITY DEFINER LANGUAGE plpgsql AS $$
BEGIN
    IF me(NEW.team) IS NOT NULL AND (NEW.last <> 1 OR NOT (NEW.kind = 'history' OR leads(NEW.team)
        OR EXISTS (SELECT FROM opened WHERE kind = NEW.kind AND prefix IS NOT NULL))) THEN
        RAISE insufficient_privilege USING MESSAGE = 'numbers are taken one by one';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER first_number BEFORE INSERT ON counters FOR EACH ROW EXECUTE FUNCTION first_number();

-- Who may update a whole table may lock it; a login updates what it may, column by column.
DO $$
DECLARE
    of_ours text;
    held text;
BEGIN
    FOREACH of_ours IN ARRAY ARRAY['rule_of(text)', 'manages(text)', 'may_change(text, text, text, jsonb)',
        'but(jsonb, text[])', 'refusal(text, text, jsonb, jsonb)', 'hold_to_own()', 'hold_to_given()',
        'first_number()'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', of_ours, current_schema());
    END LOOP;
    FOR held IN SELECT login FROM logins JOIN pg_roles ON rolname = login LOOP
        EXECUTE format('REVOKE UPDATE ON records, counters FROM %I', held);
        EXECUTE format('GRANT UPDATE (label, body, changed_at) ON records TO %I', held);
        EXECUTE format('GRANT UPDATE (last) ON counters TO %I', held);
    END LOOP;
END $$;

-- version 8
-- Pages are changed by whoever is in the team, in its own name and version by version.
INSERT INTO opened VALUES ('page', 'page', NULL) ON CONFLICT (kind) DO NOTHING;
CREATE POLICY page_made ON records FOR INSERT
    WITH CHECK (kind = 'page' AND me(team) IS NOT NULL AND rule_of('page') = 'page');
CREATE POLICY page_changed ON records FOR UPDATE
    USING (kind = 'page' AND me(team) IS NOT NULL AND rule_of('page') = 'page')
    WITH CHECK (kind = 'page' AND me(team) IS NOT NULL AND rule_of('page') = 'page');

CREATE FUNCTION hold_page() RETURNS trigger SECURITY DEFINER LANGUAGE plpgsql AS $$
DECLARE
    who text := me(NEW.team);
    before int := 0;
BEGIN
    IF who IS NULL THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        before := (OLD.record->>'version')::int;
    END IF;
    IF NEW.record->>'author' IS DISTINCT FROM who OR NEW.record->>'key' IS DISTINCT FROM NEW.key THEN
        RAISE insufficient_privilege USING MESSAGE = 'a page says who changed it';
    ELSIF (NEW.record->>'version')::int IS DISTINCT FROM before + 1 THEN
        RAISE insufficient_privilege USING MESSAGE = 'versions are counted one by one';
    END IF;
    RETURN NEW;
END $$;
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION hold_page() SET search_path = %I, pg_temp', current_schema());
END $$;
CREATE TRIGGER hold_page AFTER INSERT OR UPDATE ON records FOR EACH ROW WHEN (NEW.kind = 'page')
    EXECUTE FUNCTION hold_page();

-- version 9
-- Who does the work hands in what came of its check, and evidence, and asks for landings; another ends its review, and
-- who leads or manages carries landings out.
INSERT INTO opened VALUES ('evidence', 'copy', 'evidence'), ('landing', 'landing', 'landing')
    ON CONFLICT (kind) DO UPDATE SET rule = excluded.rule, prefix = excluded.prefix;

-- Whether the agent is the one whose review is asked for, by its name or by its role in the team.
CREATE FUNCTION may_review(of_team text, who text, wanted text) RETURNS boolean STABLE SECURITY DEFINER LANGUAGE sql AS $$
    SELECT wanted = who OR EXISTS (
        SELECT FROM records, jsonb_array_elements(record->'members') AS member
        WHERE records.team = of_team AND kind = 'team'
            AND member->>'agentId' = who AND member->>'role' = wanted)
$$;

CREATE OR REPLACE FUNCTION may_change(of_team text, of_kind text, of_key text, said jsonb) RETURNS boolean
STABLE LANGUAGE sql AS $$
    SELECT CASE
        WHEN me(of_team) IS NULL THEN false
        WHEN leads(of_team) THEN true
        ELSE CASE rule_of(of_kind)
            WHEN 'own' THEN of_key = me(of_team)
            WHEN 'session' THEN of_key = me(of_team)
            WHEN 'shutdown' THEN said->>'agent' = me(of_team)
            WHEN 'plan' THEN said->>'from' = me(of_team)
            WHEN 'question' THEN said->>'from' = me(of_team) OR coalesce(said->'to' ? me(of_team), false)
            WHEN 'copy' THEN said->>'by' = me(of_team)
            WHEN 'landing' THEN manages(of_team) OR (said->>'by' = me(of_team) AND said->>'state' = 'queued')
            WHEN 'task' THEN manages(of_team) OR said->>'owner' = me(of_team) OR said->>'status' = 'pending'
                OR (said->>'status' = 'in_progress'
                    AND (said->>'leaseUntil')::float8 < extract(epoch FROM clock_timestamp()))
                OR (said->>'status' = 'in_review' AND may_review(of_team, me(of_team), said->>'reviewBy'))
                OR said->'reviewed'->>'by' = me(of_team)
            ELSE false
        END
    END
$$;

-- How an agent's own login may change a task that it has.
CREATE FUNCTION refusal_of_owner(who text, was jsonb, said jsonb) RETURNS text STABLE LANGUAGE plpgsql AS $$
DECLARE
    own text[] := ARRAY['title', 'description', 'priority', 'blockedBy', 'status', 'owner', 'updatedAt', 'claimedAt',
        'completedAt', 'result', 'claim', 'leaseExpiresAt', 'leaseEpoch', 'leaseUntil', 'notes', 'evidence', 'checked'];
    checked jsonb := said->'checked';
BEGIN
    IF but(was, VARIADIC own) <> but(said, VARIADIC own) THEN
        RETURN 'what a task runs and asks for is said by who made it';
    ELSIF checked IS DISTINCT FROM was->'checked'
        AND (checked->>'by', checked->>'command') IS DISTINCT FROM (who, was->>'check') THEN
        RETURN 'what came of a check is said by who ran it';
    ELSIF said->>'status' IN ('completed', 'in_review') AND said->>'status' <> was->>'status' THEN
        IF was->>'check' IS NOT NULL
            AND (checked->>'command', checked->>'status') IS DISTINCT FROM (was->>'check', '0') THEN
            RETURN 'the task is completed by its check';
        ELSIF said->>'status' = 'completed' AND was->>'reviewBy' IS NOT NULL THEN
            RETURN 'a review is ended by another';
        END IF;
    END IF;
    RETURN '';
END $$;

-- How one that reviews a task may change it.
CREATE FUNCTION refusal_of_review(who text, was jsonb, said jsonb) RETURNS text STABLE LANGUAGE plpgsql AS $$
DECLARE
    own text[] := ARRAY['status', 'reviewed', 'updatedAt', 'claimedAt', 'completedAt', 'claim', 'leaseExpiresAt',
        'leaseEpoch', 'leaseUntil', 'notes'];
BEGIN
    IF was->>'status' <> 'in_review' OR was->>'owner' = who OR said->'reviewed'->>'by' IS DISTINCT FROM who
        OR NOT may_review(was->>'teamName', who, was->>'reviewBy')
        OR (said->>'owner' IS NOT NULL AND said->>'owner' IS DISTINCT FROM was->>'owner')
        OR but(was, VARIADIC own || ARRAY['owner']) <> but(said, VARIADIC own || ARRAY['owner'])
        OR said->>'status' NOT IN ('completed', 'in_progress', 'pending') THEN
        RETURN 'the task is not yours';
    END IF;
    RETURN '';
END $$;

ALTER FUNCTION refusal(text, text, jsonb, jsonb) RENAME TO refusal_of_others;

CREATE FUNCTION refusal(who text, rule text, was jsonb, said jsonb) RETURNS text STABLE LANGUAGE plpgsql AS $$
DECLARE
    why text;
BEGIN
    IF rule IN ('copy', 'landing') THEN
        RETURN CASE WHEN rule = 'landing' AND manages(was->>'teamName') THEN '' ELSE
            'what was handed in stays so, and landings are carried out by who leads' END;
    ELSIF rule <> 'task' THEN
        RETURN refusal_of_others(who, rule, was, said);
    ELSIF was->>'owner' = who THEN
        why := refusal_of_owner(who, was, said);
    ELSIF was->>'status' = 'in_review' THEN
        why := refusal_of_review(who, was, said);
    ELSIF was->>'status' <> 'pending' AND NOT (was->>'status' = 'in_progress'
        AND coalesce((was->>'leaseUntil')::float8 < extract(epoch FROM clock_timestamp()), false)) THEN
        RETURN 'the task is not yours';
    ELSE
        RETURN refusal_of_others(who, rule, was, said);
    END IF;
    IF why = '' AND (said->>'claim')::int NOT BETWEEN (was->>'claim')::int AND (was->>'claim')::int + 1 THEN
        RETURN 'claims are counted one by one';
    END IF;
    RETURN why;
END $$;

-- A landing is asked for by who did the task, once it may land; nothing is said yet of what became of it.
CREATE FUNCTION hold_landing() RETURNS trigger SECURITY DEFINER LANGUAGE plpgsql AS $$
BEGIN
    IF me(NEW.team) IS NOT NULL AND NOT manages(NEW.team) AND (
        NEW.record ?| ARRAY['merge', 'checked', 'returned', 'files', 'url'] OR NOT EXISTS (
            SELECT FROM records WHERE team = NEW.team AND kind = 'task' AND key = NEW.record->>'task'
                AND record->>'owner' = me(NEW.team)
                AND (record->>'reviewBy' IS NULL OR record->>'status' = 'completed'))) THEN
        RAISE insufficient_privilege USING MESSAGE = 'a landing is asked for by who did the task';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER hold_landing AFTER INSERT ON records FOR EACH ROW WHEN (NEW.kind = 'landing')
    EXECUTE FUNCTION hold_landing();

DO $$
DECLARE of_ours text;
BEGIN
    FOREACH of_ours IN ARRAY ARRAY['may_review(text, text, text)', 'may_change(text, text, text, jsonb)',
        'refusal_of_owner(text, jsonb, jsonb)', 'refusal_of_review(text, jsonb, jsonb)',
        'refusal_of_others(text, text, jsonb, jsonb)', 'refusal(text, text, jsonb, jsonb)', 'hold_landing()'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', of_ours, current_schema());
    END LOOP;
END $$;

-- version 10
-- A review that is asked of a role is ended by those of the roles that extend it as well, as the team defines them.
CREATE OR REPLACE FUNCTION may_review(of_team text, who text, wanted text) RETURNS boolean
STABLE SECURITY DEFINER LANGUAGE sql AS $$
    WITH RECURSIVE found AS (
        SELECT record FROM records WHERE records.team = of_team AND kind = 'team'
    ), line (role) AS (
        SELECT member->>'role' FROM found, jsonb_array_elements(found.record->'members') AS member
            WHERE member->>'agentId' = who
        UNION
        SELECT CASE found.record->'roles'->line.role->>'extends'
            WHEN 'leader' THEN 'team-leader' WHEN 'member' THEN 'team-member'
            ELSE found.record->'roles'->line.role->>'extends' END
        FROM line, found WHERE found.record->'roles' ? line.role
    )
    SELECT wanted = who OR EXISTS (SELECT FROM line WHERE line.role = wanted)
$$;
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION may_review(text, text, text) SET search_path = %I, pg_temp', current_schema());
END $$;

-- version 11
-- What an agent took is only added to, for the run that it was started in: by less than was counted no budget goes on.
CREATE FUNCTION hold_usage() RETURNS trigger SECURITY DEFINER LANGUAGE plpgsql AS $$
DECLARE
    who text := me(NEW.team);
    was jsonb := '[]';
    added jsonb;
BEGIN
    IF who IS NULL OR leads(NEW.team) THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' AND jsonb_typeof(OLD.record->'turns') = 'array' THEN
        was := OLD.record->'turns';
    END IF;
    IF jsonb_typeof(coalesce(NEW.record->'turns', '[]')) <> 'array' OR EXISTS (
        SELECT FROM jsonb_array_elements(was) WITH ORDINALITY AS counted (turn, place)
        WHERE turn IS DISTINCT FROM NEW.record->'turns'->(place::int - 1)) THEN
        RAISE insufficient_privilege USING MESSAGE = 'what was counted stays so';
    END IF;
    FOR added IN SELECT turn FROM jsonb_array_elements(NEW.record->'turns') WITH ORDINALITY AS counted (turn, place)
        WHERE place > jsonb_array_length(was) LOOP
        IF jsonb_path_exists(added, '$.tokens[*].* ? (@ < 0)') OR NOT EXISTS (SELECT FROM records
            WHERE team = NEW.team AND kind = 'session' AND key = NEW.key AND record->'run' = added->'run') THEN
            RAISE insufficient_privilege USING MESSAGE = 'what is taken is counted for the run of its agent';
        END IF;
    END LOOP;
    RETURN NEW;
END $$;
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION hold_usage() SET search_path = %I, pg_temp', current_schema());
END $$;
CREATE TRIGGER hold_usage AFTER INSERT OR UPDATE ON records FOR EACH ROW WHEN (NEW.kind = 'usage')
    EXECUTE FUNCTION hold_usage();

-- version 12
-- A search of words goes by their index whatever the server knows of the tables, which before the first ANALYZE is
-- nothing: each row whose words would have to be made counts more than any index. For logins, whose rows are sifted
-- first by whether they may see them, only a function of the owner's can use that index.
ALTER FUNCTION words_of(jsonb) COST 1000000;

CREATE FUNCTION may_search(of_team text, owner name) RETURNS boolean STABLE LANGUAGE sql AS $$
    SELECT me(of_team) IS NOT NULL OR pg_has_role(session_user, owner, 'USAGE')
        OR (SELECT rolbypassrls FROM pg_roles WHERE rolname = session_user)
$$;

CREATE FUNCTION found_messages(of_team text, before bigint, wanted tsquery) RETURNS SETOF bigint
STABLE SECURITY DEFINER SET plan_cache_mode = force_custom_plan SET jit = off LANGUAGE plpgsql AS $$
BEGIN
    IF may_search(of_team, current_user) THEN
        RETURN QUERY (SELECT number FROM messages WHERE team = of_team AND number < before
                AND words_of(record) @@ wanted ORDER BY number DESC LIMIT 500)
            UNION (SELECT number FROM messages WHERE team = of_team AND number < before
                AND length(body) > 100000 ORDER BY number DESC LIMIT 500)
            ORDER BY 1 DESC LIMIT 500;
    END IF;
END $$;

CREATE FUNCTION found_records(of_team text, of_kind text, wanted tsquery) RETURNS SETOF text
STABLE SECURITY DEFINER SET plan_cache_mode = force_custom_plan SET jit = off LANGUAGE plpgsql AS $$
BEGIN
    IF may_search(of_team, current_user) THEN
        RETURN QUERY SELECT key FROM records WHERE team = of_team AND kind = of_kind AND words_of(record) @@ wanted
            UNION SELECT key FROM records WHERE team = of_team AND kind = of_kind AND length(body) > 100000;
    END IF;
END $$;

DO $$
DECLARE of_ours text;
BEGIN
    FOREACH of_ours IN ARRAY ARRAY['may_search(text, name)', 'found_messages(text, bigint, tsquery)',
        'found_records(text, text, tsquery)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', of_ours, current_schema());
    END LOOP;
END $$;

-- version 13
-- What happened to a task, and what was said of it, stands; more is noted in one's own name or the program's, and of
-- what happened the oldest goes for it once there are fifty. Nobody but who leads makes a task another's.
CREATE FUNCTION hold_notes() RETURNS trigger SECURITY DEFINER LANGUAGE plpgsql AS $$
DECLARE
    who text := me(NEW.team);
    said jsonb := coalesce(NEW.record->'notes', '[]');
    noted jsonb;
    kept int := 0;
    gone int := 0;
BEGIN
    IF who IS NULL OR manages(NEW.team) THEN
        RETURN NEW;
    END IF;
    IF OLD.record->>'owner' IS DISTINCT FROM who AND NEW.record->>'owner' <> who
        AND NEW.record->>'owner' IS DISTINCT FROM OLD.record->>'owner' THEN
        RAISE insufficient_privilege USING MESSAGE = 'a task is claimed in one''s own name';
    END IF;
    FOR noted IN SELECT note FROM jsonb_array_elements(coalesce(OLD.record->'notes', '[]')) AS note LOOP
        IF noted IS NOT DISTINCT FROM said->kept THEN
            kept := kept + 1;
        ELSIF noted ? 'added' THEN
            RAISE insufficient_privilege USING MESSAGE = 'what was said of a task stands';
        ELSE
            gone := gone + 1;
        END IF;
    END LOOP;
    IF gone > 0 AND (gone > jsonb_array_length(said) - kept
        OR (SELECT count(*) FROM jsonb_array_elements(said) AS note WHERE NOT note ? 'added') < 50) THEN
        RAISE insufficient_privilege USING MESSAGE = 'what happened to a task stands';
    ELSIF EXISTS (SELECT FROM jsonb_array_elements(said) WITH ORDINALITY AS listed (note, place)
        WHERE place > kept AND coalesce(note->>'by', '') NOT IN (who, 'system')) THEN
        RAISE insufficient_privilege USING MESSAGE = 'it is noted in nobody else''s name';
    END IF;
    RETURN NEW;
END $$;
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION hold_notes() SET search_path = %I, pg_temp', current_schema());
END $$;
CREATE TRIGGER hold_notes AFTER UPDATE ON records FOR EACH ROW WHEN (NEW.kind = 'task')
    EXECUTE FUNCTION hold_notes();

-- version 14
-- What a login writes of a task can be read again, and found: else it would take free ones from everybody. A task stays
-- with who has it, who reviews its own work by no detour; claims are counted, with each owner by one; what was handed
-- in stays, and what was finished is amended with a note that says so.
CREATE FUNCTION says_twice(body json) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE json_typeof(body)
        WHEN 'object' THEN (SELECT count(*) > count(DISTINCT key) OR coalesce(bool_or(says_twice(value)), false)
            FROM json_each(body))
        WHEN 'array' THEN (SELECT coalesce(bool_or(says_twice(value)), false) FROM json_array_elements(body))
        ELSE false
    END;
END $$;

-- Whether these fields of an object are of that type, where they are there.
CREATE FUNCTION are(of_type text, said jsonb, VARIADIC fields text[]) RETURNS boolean IMMUTABLE LANGUAGE sql AS $$
    SELECT NOT EXISTS (SELECT FROM unnest(fields) AS field
        WHERE said ? field AND jsonb_typeof(said->field) NOT IN (of_type, 'null'))
$$;

CREATE FUNCTION are_times(said jsonb, VARIADIC fields text[]) RETURNS boolean STABLE LANGUAGE sql AS $$
    SELECT are('string', said, VARIADIC fields) AND NOT EXISTS (SELECT FROM unnest(fields) AS field
        WHERE said->>field !~ '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$'
            OR NOT isfinite((said->>field)::timestamptz))
$$;

CREATE FUNCTION is_word(said jsonb) RETURNS boolean IMMUTABLE LANGUAGE sql AS $$
    SELECT coalesce(jsonb_typeof(said) = 'string' AND length(said #>> '{}') BETWEEN 1 AND 255, false)
$$;

-- Whether it is a whole number that is not negative.
CREATE FUNCTION is_count(said jsonb) RETURNS boolean IMMUTABLE LANGUAGE sql AS $$
    SELECT coalesce(jsonb_typeof(said) = 'number' AND said #>> '{}' ~ '^\d{1,15}$', false)
$$;

CREATE FUNCTION label_of_task(said jsonb) RETURNS text IMMUTABLE LANGUAGE sql AS $$
    SELECT CASE
        WHEN said->>'status' <> 'pending' THEN said->>'status'
        WHEN said->>'assignee' IS NOT NULL THEN 'kept'
        ELSE CASE jsonb_array_length(coalesce(said->'blockedBy', '[]')) + jsonb_array_length(coalesce(said->'require', '[]'))
            WHEN 0 THEN 'free-' ELSE 'pending-' END || coalesce(said->>'priority', 'normal')
    END
$$;

CREATE FUNCTION unreadable_notices(said jsonb) RETURNS text IMMUTABLE LANGUAGE sql AS $$
    SELECT CASE
        WHEN EXISTS (SELECT FROM jsonb_array_elements(said->'owed') AS told
            WHERE NOT is_word(told->'to') OR NOT is_word(told->'uid')
                OR coalesce(jsonb_typeof(told->'message'), '') <> 'string'
                OR NOT are('string', told, 'type', 'sender', 'by', 'about')) THEN 'a notice says to whom, and what'
        ELSE ''
    END
$$;

-- What keeps the text of a task from being read again; empty if nothing does.
CREATE FUNCTION unreadable_in_task(body text, said jsonb) RETURNS text STABLE LANGUAGE sql AS $$
    SELECT CASE
        WHEN says_twice(body::json) THEN 'nothing is said twice in a record'
        WHEN NOT are_times(said, 'updatedAt', 'claimedAt', 'completedAt', 'leaseExpiresAt')
            OR NOT are('string', said, 'owner', 'title', 'description', 'priority', 'result', 'leaseEpoch')
            OR NOT are('array', said, 'notes', 'owed', 'evidence', 'blockedBy')
            OR NOT are('number', said, 'claim', 'leaseUntil') OR NOT is_count(said->'claim')
            OR coalesce(said->>'priority', 'normal') NOT IN ('high', 'normal', 'low')
            OR length(said->>'leaseEpoch') NOT BETWEEN 1 AND 255
            OR (said->>'leaseUntil')::numeric NOT BETWEEN 0 AND 999999999999
            OR coalesce(jsonb_typeof(said->'title'), '') <> 'string'
            OR EXISTS (SELECT FROM jsonb_array_elements(said->'blockedBy') AS blocker
                WHERE coalesce(blocker #>> '{}', '') !~ '^task-[1-9][0-9]{0,11}$') THEN
            'the fields of a task are of their types'
        WHEN (said ? 'checked' AND (SELECT is_word(of->'by') AND are('string', of, 'output', 'directory', 'commit')
                AND are('array', of, 'left') AND are('boolean', of, 'stale') AND jsonb_typeof(of->'command') = 'string'
                AND jsonb_typeof(of->'status') = 'number' AND of->>'status' ~ '^-?\d{1,9}$' AND is_word(of->'at')
                AND are_times(of, 'at') AND (of->>'commit' IS NULL OR is_word(of->'commit'))
                FROM (SELECT said->'checked') AS found (of)) IS NOT TRUE)
            OR (said ? 'reviewed' AND (SELECT is_word(of->'by') AND is_word(of->'verdict')
                AND are('string', of, 'reason', 'at') FROM (SELECT said->'reviewed') AS found (of)) IS NOT TRUE) THEN
            'what came of a check or a review says by whom, and what'
        WHEN EXISTS (SELECT FROM jsonb_array_elements(said->'notes') AS note
            WHERE NOT is_word(note->'at') OR NOT are_times(note, 'at') OR NOT is_word(note->'by')
                OR NOT is_word(note->'what') OR NOT are('string', note, 'reason', 'owner', 'added')
                OR NOT are('array', note, 'changed') OR NOT are('number', note, 'claim')
                OR (note->>'claim') !~ '^\d{1,15}$'
                OR EXISTS (SELECT FROM jsonb_array_elements(note->'changed') AS field WHERE NOT is_word(field))) THEN
            'a note says when, by whom, and what'
        ELSE unreadable_notices(said)
    END
$$;

-- How one may have got, kept or given back a task; empty, or what it may not.
CREATE FUNCTION refusal_of_claim(who text, was jsonb, said jsonb) RETURNS text STABLE SECURITY DEFINER
LANGUAGE plpgsql AS $$
DECLARE
    counted bigint := coalesce((was->>'claim')::bigint, 0);
BEGIN
    IF (said->>'claim')::bigint NOT BETWEEN counted AND counted + 1 THEN
        RETURN 'claims are counted one by one';
    ELSIF said->>'owner' IS NOT DISTINCT FROM was->>'owner' THEN
        RETURN '';
    ELSIF said->>'owner' IS NULL THEN
        RETURN CASE said->>'status' WHEN 'pending' THEN '' ELSE 'a task stays with who has it, or is free' END;
    ELSIF said->>'owner' <> who OR said->>'status' <> 'in_progress' OR (said->>'claim')::bigint = counted THEN
        RETURN 'a task is claimed in one''s own name, under a new number';
    ELSIF was->>'assignee' <> who THEN
        RETURN 'the task is kept for another';
    ELSIF EXISTS (SELECT FROM jsonb_array_elements_text(was->'blockedBy') AS blocker WHERE NOT EXISTS (
        SELECT FROM records WHERE team = was->>'teamName' AND kind = 'task' AND key = blocker
            AND record->>'status' = 'completed')) THEN
        RETURN 'the task waits for others';
    END IF;
    RETURN '';
END $$;

-- The same of what its owner hands in and finishes.
CREATE FUNCTION refusal_of_work(who text, was jsonb, said jsonb) RETURNS text STABLE SECURITY DEFINER
LANGUAGE plpgsql AS $$
DECLARE
    had jsonb := coalesce(was->'evidence', '[]');
    ended boolean := said->>'status' IN ('completed', 'in_review') AND said->>'status' <> was->>'status';
BEGIN
    IF EXISTS (SELECT FROM jsonb_array_elements(had) WITH ORDINALITY AS listed (file, place)
        WHERE file IS DISTINCT FROM said->'evidence'->(place::int - 1)) THEN
        RETURN 'what was handed in stays so';
    ELSIF EXISTS (SELECT FROM jsonb_array_elements(said->'evidence') WITH ORDINALITY AS listed (file, place)
        WHERE place > jsonb_array_length(had) AND NOT (file->>'by' = who AND is_word(file->'sha256')
            AND is_count(file->'size') AND jsonb_typeof(file->'name') = 'string' AND is_word(file->'at')
            AND are_times(file, 'at') AND EXISTS (SELECT FROM records WHERE team = was->>'teamName'
                AND kind = 'evidence' AND key = file->>'id' AND record->>'task' = was->>'id'
                AND record->>'by' = who)) IS TRUE) THEN
        RETURN 'evidence is handed in by who has it';
    ELSIF was->>'check' IS NULL AND said->'checked' IS DISTINCT FROM was->'checked' THEN
        RETURN 'the task has no check';
    ELSIF ended AND was->>'planRequired' = 'true' AND NOT EXISTS (SELECT FROM records
        WHERE team = was->>'teamName' AND kind = 'plan' AND record->>'task' = was->>'id'
            AND record->>'status' = 'approved') THEN
        RETURN 'the task is completed once its plan is approved';
    ELSIF said->>'status' IN ('completed', 'failed') AND said->>'status' = was->>'status'
        AND said->>'result' IS DISTINCT FROM was->>'result'
        AND (said->'notes'->-1->>'what', said->'notes'->-1->>'by') IS DISTINCT FROM ('amended', who) THEN
        RETURN 'what was finished is amended with a note';
    END IF;
    RETURN '';
END $$;

CREATE FUNCTION hold_task() RETURNS trigger SECURITY DEFINER LANGUAGE plpgsql AS $$
DECLARE
    who text := me(NEW.team);
    why text;
BEGIN
    IF who IS NULL OR manages(NEW.team) THEN
        RETURN NEW;
    END IF;
    why := unreadable_in_task(NEW.body, NEW.record);
    IF why = '' AND NEW.label IS DISTINCT FROM label_of_task(NEW.record) THEN
        why := 'a task is found by what it says';
    END IF;
    IF why = '' THEN
        why := refusal_of_claim(who, OLD.record, NEW.record);
    END IF;
    IF why = '' AND OLD.record->>'owner' = who THEN
        why := refusal_of_work(who, OLD.record, NEW.record);
    END IF;
    IF why <> '' THEN
        RAISE insufficient_privilege USING MESSAGE = why;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER hold_task AFTER UPDATE ON records FOR EACH ROW WHEN (NEW.kind = 'task') EXECUTE FUNCTION hold_task();

-- Who claims a task that was kept for it keeps nothing any more.
ALTER FUNCTION refusal(text, text, jsonb, jsonb) RENAME TO refusal_of_kept;
CREATE FUNCTION refusal(who text, rule text, was jsonb, said jsonb) RETURNS text STABLE LANGUAGE sql AS $$
    SELECT refusal_of_kept(who, rule, CASE
        WHEN rule = 'task' AND was->>'assignee' = who AND said->>'owner' = who AND said->>'assignee' IS NULL
        THEN was - 'assignee' ELSE was END, said)
$$;

-- What was counted can be read again too: a budget knows nothing of what can't.
CREATE FUNCTION unreadable_in_usage(body text, said jsonb) RETURNS text STABLE LANGUAGE sql AS $$
    SELECT CASE
        WHEN says_twice(body::json) THEN 'nothing is said twice in a record'
        WHEN said - ARRAY['agent', 'turns', 'sessionId', 'said', 'owed', 'checksum'] <> '{}'
            OR NOT are('array', said, 'turns', 'said', 'owed')
            OR (said ? 'sessionId' AND NOT is_word(said->'sessionId')) THEN 'the fields of usage are of their types'
        WHEN EXISTS (SELECT FROM jsonb_array_elements(said->'turns') AS turn
            WHERE NOT is_count(turn->'turn') OR NOT is_word(turn->'run') OR NOT is_word(turn->'at')
                OR NOT are_times(turn, 'at') OR coalesce(jsonb_typeof(turn->'seconds'), '') <> 'number'
                OR (turn->>'seconds')::numeric NOT BETWEEN 0 AND 999999999999
                OR NOT are('array', turn, 'tasks', 'tokens')
                OR EXISTS (SELECT FROM jsonb_array_elements_text(turn->'tasks') AS task
                    WHERE coalesce(task, '') !~ '^task-[1-9][0-9]{0,11}$')
                OR turn - ARRAY['turn', 'run', 'at', 'seconds', 'tasks', 'tokens'] <> '{}') THEN
            'a turn says when it was, and how long'
        WHEN EXISTS (SELECT FROM (SELECT jsonb_path_query(said, '$.said[*]') UNION ALL
                SELECT jsonb_path_query(said, '$.turns[*].tokens[*]')) AS listed (counted)
            WHERE jsonb_typeof(counted) <> 'object' OR NOT are('string', counted, 'model')
                OR EXISTS (SELECT FROM jsonb_each(counted - 'model') AS each (of_what, tokens)
                    WHERE of_what NOT IN ('input', 'cached', 'output') OR NOT is_count(tokens))) THEN
            'tokens are counted'
        ELSE unreadable_notices(said)
    END
$$;

CREATE FUNCTION hold_counted() RETURNS trigger SECURITY DEFINER LANGUAGE plpgsql AS $$
DECLARE
    why text;
BEGIN
    IF me(NEW.team) IS NULL OR leads(NEW.team) THEN
        RETURN NEW;
    END IF;
    why := CASE WHEN NEW.record->>'agent' IS DISTINCT FROM NEW.key THEN 'usage says whose it is'
        ELSE unreadable_in_usage(NEW.body, NEW.record) END;
    IF why <> '' THEN
        RAISE insufficient_privilege USING MESSAGE = why;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER hold_counted AFTER INSERT OR UPDATE ON records FOR EACH ROW WHEN (NEW.kind = 'usage')
    EXECUTE FUNCTION hold_counted();

DO $$
DECLARE of_ours text;
BEGIN
    FOREACH of_ours IN ARRAY ARRAY['says_twice(json)', 'are(text, jsonb, text[])', 'are_times(jsonb, text[])',
        'is_word(jsonb)', 'is_count(jsonb)', 'label_of_task(jsonb)', 'unreadable_notices(jsonb)',
        'unreadable_in_task(text, jsonb)', 'refusal_of_claim(text, jsonb, jsonb)',
        'refusal_of_work(text, jsonb, jsonb)', 'hold_task()', 'refusal(text, text, jsonb, jsonb)',
        'unreadable_in_usage(text, jsonb)', 'hold_counted()'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', of_ours, current_schema());
    END LOOP;
END $$;

-- version 15
-- A task is handed over by who has it: another member has it then under a new number, which is noted in its name with
-- who gave it, and in no other way.
CREATE FUNCTION handed_over_by(said jsonb) RETURNS text IMMUTABLE LANGUAGE sql AS $$
    SELECT substring(said->'notes'->-1->>'reason' FROM '^handed over by (.*)$')
        WHERE said->'notes'->-1->>'what' = 'claimed'
$$;

CREATE FUNCTION hands_over(who text, was jsonb, said jsonb) RETURNS boolean STABLE SECURITY DEFINER LANGUAGE sql AS $$
    SELECT coalesce(was->>'owner' = who AND was->>'status' = 'in_progress' AND said->>'status' = 'in_progress'
        AND said->>'owner' <> who AND (said->>'claim')::bigint = (was->>'claim')::bigint + 1
        AND said->'notes'->-1->>'by' = said->>'owner' AND handed_over_by(said) = who
        AND EXISTS (SELECT FROM records, jsonb_array_elements(record->'members') AS member
            WHERE records.team = was->>'teamName' AND kind = 'team' AND member->>'agentId' = said->>'owner'), false)
$$;

CREATE POLICY handed_over ON records FOR UPDATE
    USING (false) WITH CHECK (kind = 'task' AND handed_over_by(record) = me(team));

ALTER FUNCTION refusal_of_claim(text, jsonb, jsonb) RENAME TO refusal_of_own_claim;
CREATE FUNCTION refusal_of_claim(who text, was jsonb, said jsonb) RETURNS text STABLE LANGUAGE sql AS $$
    SELECT CASE WHEN hands_over(who, was, said) THEN '' ELSE refusal_of_own_claim(who, was, said) END
$$;

-- What may be noted of a task, as version 13 says it.
CREATE FUNCTION refusal_of_notes(who text, was jsonb, said jsonb) RETURNS text STABLE LANGUAGE plpgsql AS $$
DECLARE
    noted jsonb;
    kept int := 0;
    gone int := 0;
BEGIN
    FOR noted IN SELECT note FROM jsonb_array_elements(was) AS note LOOP
        IF noted IS NOT DISTINCT FROM said->kept THEN
            kept := kept + 1;
        ELSIF noted ? 'added' THEN
            RETURN 'what was said of a task stands';
        ELSE
            gone := gone + 1;
        END IF;
    END LOOP;
    IF gone > 0 AND NOT (gone <= jsonb_array_length(said) - kept
        AND (SELECT count(*) FROM jsonb_array_elements(said) AS note WHERE NOT note ? 'added') >= 50) THEN
        RETURN 'what happened to a task stands';
    ELSIF EXISTS (SELECT FROM jsonb_array_elements(said) WITH ORDINALITY AS listed (note, place)
        WHERE place > kept AND coalesce(note->>'by', '') NOT IN (who, 'system')) THEN
        RETURN 'it is noted in nobody else''s name';
    END IF;
    RETURN '';
END $$;

CREATE OR REPLACE FUNCTION hold_notes() RETURNS trigger SECURITY DEFINER LANGUAGE plpgsql AS $$
DECLARE
    who text := me(NEW.team);
    said jsonb := coalesce(NEW.record->'notes', '[]');
    why text;
BEGIN
    IF who IS NULL OR manages(NEW.team) THEN
        RETURN NEW;
    END IF;
    IF hands_over(who, OLD.record, NEW.record) THEN
        said := jsonb_set(said, '{-1,by}', to_jsonb(who));
    ELSIF OLD.record->>'owner' IS DISTINCT FROM who AND NEW.record->>'owner' <> who
        AND NEW.record->>'owner' IS DISTINCT FROM OLD.record->>'owner' THEN
        RAISE insufficient_privilege USING MESSAGE = 'a task is claimed in one''s own name';
    END IF;
    why := refusal_of_notes(who, coalesce(OLD.record->'notes', '[]'), said);
    IF why <> '' THEN
        RAISE insufficient_privilege USING MESSAGE = why;
    END IF;
    RETURN NEW;
END $$;

-- What is reviewed is what was handed in for that, and lands.
ALTER FUNCTION refusal_of_owner(text, jsonb, jsonb) RENAME TO refusal_of_work_of_its_own;
CREATE FUNCTION refusal_of_owner(who text, was jsonb, said jsonb) RETURNS text STABLE LANGUAGE sql AS $$
    SELECT CASE
        WHEN said->'submitted' IS DISTINCT FROM was->'submitted'
            AND (was->>'status' <> 'in_progress' OR said->>'status' <> 'in_review'
                OR (said ? 'submitted' AND NOT is_word(said->'submitted'))) THEN
            'what is reviewed is what was handed in for it'
        ELSE refusal_of_work_of_its_own(who, was - 'submitted', said - 'submitted')
    END
$$;

DO $$
DECLARE of_ours text;
BEGIN
    FOREACH of_ours IN ARRAY ARRAY['handed_over_by(jsonb)', 'hands_over(text, jsonb, jsonb)', 'hold_notes()',
        'refusal_of_claim(text, jsonb, jsonb)', 'refusal_of_notes(text, jsonb, jsonb)',
        'refusal_of_owner(text, jsonb, jsonb)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', of_ours, current_schema());
    END LOOP;
END $$;

-- version 16
-- When a lease has ended, whoever looks begins the grace period, or renews the lease where there was a sign of life.
-- Others have the task when the grace period is over, too, or its owner is no member any more.
CREATE FUNCTION lease_has_ended(said jsonb) RETURNS boolean STABLE LANGUAGE sql AS $$
    SELECT coalesce(said->>'status' = 'in_progress'
        AND (said->>'leaseUntil')::float8 < extract(epoch FROM clock_timestamp()), false)
$$;

CREATE FUNCTION in_grace(said jsonb) RETURNS boolean IMMUTABLE LANGUAGE sql AS $$
    SELECT coalesce(said->'graceUntil' = said->'leaseUntil', false)
$$;

-- Whether the change sets another end of a lease that has ended, and nothing else: for a whole grace period, or for at
-- most a lease.
CREATE FUNCTION goes_on(was jsonb, said jsonb) RETURNS boolean STABLE SECURITY DEFINER LANGUAGE sql AS $$
    SELECT lease_has_ended(was) AND NOT in_grace(was)
        AND but(was, 'leaseExpiresAt', 'leaseEpoch', 'leaseUntil', 'graceUntil')
            = but(said, 'leaseExpiresAt', 'leaseEpoch', 'leaseUntil', 'graceUntil')
        AND coalesce((SELECT (said->>'leaseUntil')::float8 - extract(epoch FROM clock_timestamp())
                BETWEEN CASE WHEN in_grace(said) THEN least(120, lease) - 5 ELSE 0 END AND lease + 5
            FROM (SELECT coalesce((record->'settings'->>'staleAfterSeconds')::float8, 900) FROM records
                WHERE team = was->>'teamName' AND kind = 'team') AS found (lease)), false)
$$;

CREATE POLICY gone_on ON records FOR UPDATE
    USING (false) WITH CHECK (kind = 'task' AND me(team) IS NOT NULL AND record->>'status' = 'in_progress');

ALTER FUNCTION refusal(text, text, jsonb, jsonb) RENAME TO refusal_without_grace;
CREATE FUNCTION refusal(who text, rule text, was jsonb, said jsonb) RETURNS text STABLE SECURITY DEFINER
LANGUAGE sql AS $$
    SELECT CASE
        WHEN rule <> 'task' OR was->>'owner' = who OR was->>'status' <> 'in_progress' THEN
            refusal_without_grace(who, rule, was - 'graceUntil', said - 'graceUntil')
        WHEN goes_on(was, said) THEN ''
        WHEN said->>'status' = 'in_progress' AND said->>'owner' = was->>'owner' THEN 'the task is not yours'
        WHEN NOT in_grace(was) AND EXISTS (SELECT FROM records, jsonb_array_elements(record->'members') AS member
            WHERE records.team = was->>'teamName' AND kind = 'team' AND member->>'agentId' = was->>'owner'
                AND member->>'leftAt' IS NULL) THEN 'its owner is asked first'
        ELSE refusal_without_grace(who, rule, was - 'graceUntil', said - 'graceUntil')
    END
$$;

ALTER FUNCTION unreadable_in_task(text, jsonb) RENAME TO unreadable_in_task_without_grace;
CREATE FUNCTION unreadable_in_task(body text, said jsonb) RETURNS text STABLE LANGUAGE sql AS $$
    SELECT CASE
        WHEN NOT are('number', said, 'graceUntil') OR (said->>'graceUntil')::numeric NOT BETWEEN 0 AND 999999999999 THEN
            'the fields of a task are of their types'
        ELSE unreadable_in_task_without_grace(body, said)
    END
$$;

DO $$
DECLARE of_ours text;
BEGIN
    FOREACH of_ours IN ARRAY ARRAY['lease_has_ended(jsonb)', 'in_grace(jsonb)', 'goes_on(jsonb, jsonb)',
        'refusal(text, text, jsonb, jsonb)', 'unreadable_in_task(text, jsonb)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', of_ours, current_schema());
    END LOOP;
END $$;

-- version 17
-- A task that is completed after others is completed when these are; its owner says which they are, as it does of what
-- it waits for.
ALTER FUNCTION refusal(text, text, jsonb, jsonb) RENAME TO refusal_without_after;
CREATE FUNCTION refusal(who text, rule text, was jsonb, said jsonb) RETURNS text STABLE LANGUAGE sql AS $$
    SELECT CASE WHEN rule = 'task' AND was->>'owner' = who
        THEN refusal_without_after(who, rule, was - 'after', said - 'after')
        ELSE refusal_without_after(who, rule, was, said) END
$$;

ALTER FUNCTION refusal_of_work(text, jsonb, jsonb) RENAME TO refusal_of_work_alone;
CREATE FUNCTION refusal_of_work(who text, was jsonb, said jsonb) RETURNS text STABLE SECURITY DEFINER
LANGUAGE sql AS $$
    SELECT CASE
        WHEN said->>'status' IN ('completed', 'in_review') AND said->>'status' <> was->>'status'
            AND EXISTS (SELECT FROM jsonb_array_elements_text(said->'after') AS other WHERE NOT EXISTS (
                SELECT FROM records WHERE team = was->>'teamName' AND kind = 'task' AND key = other
                    AND record->>'status' = 'completed')) THEN 'the task is completed after others'
        ELSE refusal_of_work_alone(who, was, said)
    END
$$;

ALTER FUNCTION unreadable_in_task(text, jsonb) RENAME TO unreadable_in_task_without_after;
CREATE FUNCTION unreadable_in_task(body text, said jsonb) RETURNS text STABLE LANGUAGE sql AS $$
    SELECT CASE
        WHEN NOT are('array', said, 'after') OR EXISTS (SELECT FROM jsonb_array_elements(
                CASE jsonb_typeof(said->'after') WHEN 'array' THEN said->'after' ELSE '[]' END) AS other
            WHERE coalesce(other #>> '{}', '') !~ '^task-[1-9][0-9]{0,11}$') THEN
            'the fields of a task are of their types'
        ELSE unreadable_in_task_without_after(body, said)
    END
$$;

DO $$
DECLARE of_ours text;
BEGIN
    FOREACH of_ours IN ARRAY ARRAY['refusal(text, text, jsonb, jsonb)', 'refusal_of_work(text, jsonb, jsonb)',
        'unreadable_in_task(text, jsonb)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', of_ours, current_schema());
    END LOOP;
END $$;

-- version 18
-- Whoever is in the team adds remarks to any task, in its own name, and so keeps what came of a claim that has ended.
CREATE FUNCTION adds_note(who text, was jsonb, said jsonb) RETURNS boolean IMMUTABLE LANGUAGE sql AS $$
    SELECT coalesce(but(was, 'notes', 'updatedAt') = but(said, 'notes', 'updatedAt')
        AND coalesce(was->'notes', '[]') = (said->'notes') - -1
        AND (said->'notes'->-1->>'what', said->'notes'->-1->>'by') = ('note', who) AND said->'notes'->-1 ? 'added'
        AND coalesce(said->'owed', '[]') @> coalesce(was->'owed', '[]'), false)
$$;

CREATE POLICY remarked ON records FOR UPDATE
    USING (kind = 'task' AND me(team) IS NOT NULL)
    WITH CHECK (kind = 'task' AND record->'notes'->-1->>'by' = me(team) AND record->'notes'->-1 ? 'added');

ALTER FUNCTION refusal(text, text, jsonb, jsonb) RENAME TO refusal_without_remarks;
CREATE FUNCTION refusal(who text, rule text, was jsonb, said jsonb) RETURNS text STABLE LANGUAGE sql AS $$
    SELECT CASE WHEN rule = 'task' AND adds_note(who, was, said) THEN ''
        ELSE refusal_without_remarks(who, rule, was, said) END
$$;

-- Whoever is in the team agrees to the version of a page that is there, in its own name. A new version has nobody's yes.
-- Agents that a leader started have its login.
CREATE OR REPLACE FUNCTION hold_page() RETURNS trigger SECURITY DEFINER LANGUAGE plpgsql AS $$
DECLARE
    who text := me(NEW.team);
    before int := 0;
BEGIN
    IF who IS NULL OR leads(NEW.team) THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        IF NEW.record->'agreed' = coalesce(OLD.record->'agreed', '[]') || to_jsonb(who)
            AND but(OLD.record, 'agreed') = but(NEW.record, 'agreed') THEN
            RETURN NEW;
        END IF;
        before := (OLD.record->>'version')::int;
    END IF;
    IF NEW.record->>'author' IS DISTINCT FROM who OR NEW.record->>'key' IS DISTINCT FROM NEW.key THEN
        RAISE insufficient_privilege USING MESSAGE = 'a page says who changed it';
    ELSIF (NEW.record->>'version')::int IS DISTINCT FROM before + 1 THEN
        RAISE insufficient_privilege USING MESSAGE = 'versions are counted one by one';
    ELSIF coalesce(NEW.record->'agreed', 'null') <> 'null' THEN
        RAISE insufficient_privilege USING MESSAGE = 'one agrees to a page in one''s own name';
    END IF;
    RETURN NEW;
END $$;

DO $$
DECLARE of_ours text;
BEGIN
    FOREACH of_ours IN ARRAY ARRAY['adds_note(text, jsonb, jsonb)', 'refusal(text, text, jsonb, jsonb)',
        'hold_page()'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', of_ours, current_schema());
    END LOOP;
END $$;
