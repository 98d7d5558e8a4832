-- What only SQLite needs, and the rules as its triggers.

-- Differs because PostgreSQL has a clock of its own. One anchor for each boot.
CREATE TABLE clock (
    board    INTEGER PRIMARY KEY REFERENCES board,
    boot     TEXT    NOT NULL,
    anchor   INTEGER NOT NULL,
    boottime INTEGER NOT NULL,
    skewed   INTEGER NOT NULL CHECK (skewed IN (0, 1))
) STRICT;

CREATE TRIGGER an_epoch_never_falls BEFORE UPDATE OF epoch ON board WHEN new.epoch < old.epoch
BEGIN SELECT raise(ABORT, 'an epoch never falls'); END;

CREATE TRIGGER a_token_never_falls BEFORE UPDATE ON task
WHEN (new.token_epoch, new.token_number) < (old.token_epoch, old.token_number)
BEGIN SELECT raise(ABORT, 'a token never falls'); END;

CREATE TRIGGER a_new_holder_has_a_new_token BEFORE UPDATE ON task
WHEN new.holder IS NOT NULL
    AND (new.holder IS NOT old.holder OR (old.session IS NOT NULL AND new.session IS NOT old.session))
    AND (new.token_epoch, new.token_number) = (old.token_epoch, old.token_number)
BEGIN SELECT raise(ABORT, 'a new holder has a new token'); END;

CREATE TRIGGER a_key_is_never_changed BEFORE UPDATE ON task
WHEN new.key <> old.key OR new.uid <> old.uid OR new.id <> old.id
BEGIN SELECT raise(ABORT, 'a key is never changed'); END;

CREATE TRIGGER a_task_is_never_deleted BEFORE DELETE ON task
BEGIN SELECT raise(ABORT, 'a task is never deleted'); END;

CREATE TRIGGER the_ledger_is_never_updated BEFORE UPDATE ON event
BEGIN SELECT raise(ABORT, 'the ledger is never updated'); END;

CREATE TRIGGER the_ledger_is_never_deleted BEFORE DELETE ON event
BEGIN SELECT raise(ABORT, 'the ledger is never deleted'); END;

CREATE TRIGGER a_note_is_only_redacted BEFORE UPDATE ON note
WHEN new.text <> '' OR (new.seq, new.task, new.kind) <> (old.seq, old.task, old.kind)
BEGIN SELECT raise(ABORT, 'a note is only redacted'); END;

CREATE TRIGGER a_redaction_is_in_the_ledger BEFORE UPDATE ON note
WHEN NOT EXISTS (
    SELECT 1 FROM event WHERE board = new.board AND task = new.task
    AND CASE verb WHEN 'redacted' THEN json_extract(facts, '$.of') = new.seq ELSE 0 END
)
BEGIN SELECT raise(ABORT, 'the ledger says who redacted a note'); END;

CREATE TRIGGER a_note_is_never_deleted BEFORE DELETE ON note
BEGIN SELECT raise(ABORT, 'a note is never deleted'); END;

CREATE TRIGGER an_ended_lease_never_changes BEFORE UPDATE OF
    task, token_epoch, token_number, actor, session, acquired, renewed, expires, renewals, ended, cause,
    lost, seq, stint_started, stint_ended, host, worktree, branch
    ON ended_lease
BEGIN SELECT raise(ABORT, 'an ended lease never changes'); END;

CREATE TRIGGER an_ended_lease_is_never_deleted BEFORE DELETE ON ended_lease
BEGIN SELECT raise(ABORT, 'an ended lease is never deleted'); END;

CREATE TRIGGER a_stint_never_changes BEFORE UPDATE OF seq, task, actor, started, ended, source, amends ON stint
BEGIN SELECT raise(ABORT, 'a stint never changes'); END;

CREATE TRIGGER a_stint_is_never_deleted BEFORE DELETE ON stint
BEGIN SELECT raise(ABORT, 'a stint is never deleted'); END;
