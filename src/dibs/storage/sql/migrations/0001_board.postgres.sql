-- What only PostgreSQL needs, and the rules as its triggers.

-- Differs because a database holds many boards, each with a name and settings, and because a server
-- can be promoted or restored: what it was when the board's epoch was last raised.
CREATE TABLE dibs.home (
    board    BIGINT PRIMARY KEY REFERENCES dibs.board,
    name     TEXT   COLLATE "C" NOT NULL UNIQUE CHECK (name <> ''),
    settings TEXT   NOT NULL,
    system   TEXT   NOT NULL,
    timeline TEXT   NOT NULL
);

CREATE FUNCTION dibs.refuse() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- A copy that has not arrived is not the board: it may be thrown away and copied again.
    IF tg_op = 'DELETE' AND (SELECT arriving FROM dibs.board WHERE board = old.board) = 1 THEN
        RETURN old;
    END IF;
    RAISE EXCEPTION '%', tg_argv[0] USING ERRCODE = 'check_violation';
END $$;

-- After the change, not before it: so what leaves the epoch alone, as most changes of a board do, costs nothing.
CREATE FUNCTION dibs.refuse_epoch() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF new.epoch < old.epoch THEN
        RAISE EXCEPTION 'an epoch never falls' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

-- With the rights of whoever owns the tables: others may not change where a board is.
CREATE FUNCTION dibs.arrive(known text, word text) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
    UPDATE dibs.board SET arriving = 2
    WHERE uid = known AND arriving = 1 AND ticket = encode(sha256(convert_to(word, 'UTF8')), 'hex')
$$;
REVOKE ALL ON FUNCTION dibs.arrive FROM PUBLIC;

CREATE TRIGGER an_epoch_never_falls AFTER UPDATE OF epoch ON dibs.board FOR EACH ROW
EXECUTE FUNCTION dibs.refuse_epoch();

-- What the columns of a task say together, and what a change of it may not do, in one function:
-- PostgreSQL reads the text of a CHECK or a WHEN anew for every statement, and keeps a function ready.
CREATE FUNCTION dibs.refuse_task() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT ({rules of task}) THEN
        RAISE EXCEPTION 'the columns of a task contradict each other: %', new USING ERRCODE = 'check_violation';
    END IF;
    IF tg_op = 'INSERT' THEN
        RETURN NULL;
    END IF;
    IF (new.token_epoch, new.token_number) < (old.token_epoch, old.token_number) THEN
        RAISE EXCEPTION 'a token never falls' USING ERRCODE = 'check_violation';
    END IF;
    IF new.holder IS NOT NULL THEN  -- what is not reached, is not prepared
        IF (new.holder IS DISTINCT FROM old.holder
                OR (old.session IS NOT NULL AND new.session IS DISTINCT FROM old.session))
            AND (new.token_epoch, new.token_number) = (old.token_epoch, old.token_number) THEN
            RAISE EXCEPTION 'a new holder has a new token' USING ERRCODE = 'check_violation';
        END IF;
    END IF;
    IF new.key <> old.key OR new.uid <> old.uid OR new.id <> old.id THEN
        RAISE EXCEPTION 'a key is never changed' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER a_task_keeps_its_rules AFTER INSERT OR UPDATE ON dibs.task FOR EACH ROW
EXECUTE FUNCTION dibs.refuse_task();
ALTER TABLE dibs.task ENABLE ALWAYS TRIGGER a_task_keeps_its_rules;

CREATE TRIGGER a_task_is_never_deleted BEFORE DELETE ON dibs.task FOR EACH ROW
EXECUTE FUNCTION dibs.refuse('a task is never deleted');

CREATE TRIGGER the_ledger_is_never_updated BEFORE UPDATE ON dibs.event FOR EACH ROW
EXECUTE FUNCTION dibs.refuse('the ledger is never updated');

CREATE TRIGGER the_ledger_is_never_deleted BEFORE DELETE ON dibs.event FOR EACH ROW
EXECUTE FUNCTION dibs.refuse('the ledger is never deleted');

CREATE TRIGGER the_ledger_is_never_emptied BEFORE TRUNCATE ON dibs.event
EXECUTE FUNCTION dibs.refuse('the ledger is never emptied');

CREATE TRIGGER a_note_is_only_redacted BEFORE UPDATE ON dibs.note FOR EACH ROW
WHEN (new.text <> '' OR (new.board, new.seq, new.task, new.kind) <> (old.board, old.seq, old.task, old.kind))
EXECUTE FUNCTION dibs.refuse('a note is only redacted');

-- With the rights of whoever changes the note: it can read the ledger.
CREATE FUNCTION dibs.refuse_redaction() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM dibs.event WHERE board = new.board AND task = new.task
        AND CASE verb WHEN 'redacted' THEN (facts::json ->> 'of')::bigint = new.seq ELSE false END
    ) THEN
        RAISE EXCEPTION 'the ledger says who redacted a note' USING ERRCODE = 'check_violation';
    END IF;
    RETURN new;
END $$;

CREATE TRIGGER a_redaction_is_in_the_ledger BEFORE UPDATE ON dibs.note FOR EACH ROW
EXECUTE FUNCTION dibs.refuse_redaction();

CREATE TRIGGER a_note_is_never_deleted BEFORE DELETE ON dibs.note FOR EACH ROW
EXECUTE FUNCTION dibs.refuse('a note is never deleted');

CREATE TRIGGER an_ended_lease_never_changes BEFORE UPDATE OF
    task, token_epoch, token_number, actor, session, acquired, renewed, expires, renewals, ended, cause,
    lost, seq, stint_started, stint_ended, host, worktree, branch
    ON dibs.ended_lease FOR EACH ROW
EXECUTE FUNCTION dibs.refuse('an ended lease never changes');

CREATE TRIGGER an_ended_lease_is_never_deleted BEFORE DELETE ON dibs.ended_lease FOR EACH ROW
EXECUTE FUNCTION dibs.refuse('an ended lease is never deleted');

CREATE TRIGGER a_stint_never_changes BEFORE UPDATE OF seq, task, actor, started, ended, source, amends
    ON dibs.stint FOR EACH ROW
EXECUTE FUNCTION dibs.refuse('a stint never changes');

CREATE TRIGGER a_stint_is_never_deleted BEFORE DELETE ON dibs.stint FOR EACH ROW
EXECUTE FUNCTION dibs.refuse('a stint is never deleted');

-- The row of the board and those of tasks change often: room beside them keeps indexes small.
ALTER TABLE dibs.board SET (fillfactor = 20, autovacuum_vacuum_threshold = 200);
ALTER TABLE dibs.task SET (fillfactor = 60);
