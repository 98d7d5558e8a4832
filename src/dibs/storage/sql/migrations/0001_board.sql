-- The board: one row for the board itself, one for each task, and the ledger that proves them.
-- Instants and durations are integers of microseconds. Each rule that the code enforces is
-- repeated here as a CHECK or a unique index, and in the file of each database as a trigger.
-- Written for SQLite; PostgreSQL gets the same tables and rules in its own way (`definitions.py`).

CREATE TABLE board (
    board    INTEGER PRIMARY KEY,
    uid      TEXT    NOT NULL UNIQUE,
    created  INTEGER NOT NULL,
    epoch    INTEGER NOT NULL CHECK (epoch >= 1),
    floor    INTEGER NOT NULL,                    -- the highest instant of a committed change
    seq      INTEGER NOT NULL CHECK (seq >= 0),   -- of the last event
    actors   INTEGER NOT NULL CHECK (actors >= 0),
    tasks    INTEGER NOT NULL CHECK (tasks >= 0),
    keys     INTEGER NOT NULL CHECK (keys >= 0),  -- the last number given out in a key
    head     TEXT    NOT NULL,                    -- of the board's own chain of events
    events   INTEGER NOT NULL CHECK (events >= 0),
    moved_to TEXT    NOT NULL,  -- where the board is now, if not here
    paused_by INTEGER,           -- who stopped what offers work, if somebody did
    paused_why TEXT  NOT NULL,
    -- 1: a copy that is not the board yet, which is still at `moved_to`; 2: it has come from there.
    arriving INTEGER NOT NULL CHECK (arriving IN (0, 1, 2)),
    -- Of the move that brought or took the board: where it is gone from, a word; in the copy, the digest of it.
    -- So nobody can say of a copy that it has arrived who was not sent there from the place that it left.
    ticket   TEXT    NOT NULL
) STRICT;

CREATE TABLE actor (
    board        INTEGER NOT NULL REFERENCES board,
    id           INTEGER NOT NULL,
    name         TEXT    NOT NULL CHECK (name <> ''),
    kind         TEXT    NOT NULL CHECK (kind IN ('human', 'agent', 'service')),
    tier         INTEGER NOT NULL CHECK (tier BETWEEN 0 AND 9),
    capabilities TEXT    NOT NULL,
    zone         TEXT    NOT NULL,
    PRIMARY KEY (board, id)
) STRICT;

-- Names and aliases are one space: a name leads to one actor.
CREATE TABLE actor_name (
    board  INTEGER NOT NULL,
    folded TEXT    NOT NULL,
    name   TEXT    NOT NULL,
    actor  INTEGER NOT NULL,
    PRIMARY KEY (board, folded),
    FOREIGN KEY (board, actor) REFERENCES actor (board, id)
) STRICT;

CREATE TABLE session (
    board       INTEGER NOT NULL,
    actor       INTEGER NOT NULL,
    name        TEXT    NOT NULL,  -- '' for a person: she is her own session
    host        TEXT    NOT NULL,
    worktree    TEXT    NOT NULL,
    branch      TEXT    NOT NULL,
    boot        TEXT,
    namespace   TEXT,
    pid         INTEGER,
    pid_started INTEGER,
    watched     INTEGER NOT NULL CHECK (watched IN (0, 1)),  -- by the hooks of a harness
    background  INTEGER NOT NULL CHECK (background IN (0, 1)),  -- its harness runs background work
    registered  INTEGER NOT NULL,
    PRIMARY KEY (board, actor, name),
    FOREIGN KEY (board, actor) REFERENCES actor (board, id),
    CHECK ((pid IS NULL) = (boot IS NULL)),
    CHECK ((pid IS NULL) = (namespace IS NULL)),
    CHECK ((pid IS NULL) = (pid_started IS NULL))
) STRICT;

CREATE INDEX session_by_process ON session (board, boot, namespace, pid) WHERE pid IS NOT NULL;

CREATE TABLE task (
    board          INTEGER NOT NULL REFERENCES board,
    id             INTEGER NOT NULL,
    uid            TEXT    NOT NULL,
    key            TEXT    NOT NULL,
    created        INTEGER NOT NULL,
    updated        INTEGER NOT NULL,
    creator        INTEGER NOT NULL,
    title          TEXT    NOT NULL CHECK (length(title) BETWEEN 1 AND 200),
    priority       INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 4),
    audience       TEXT    NOT NULL CHECK (audience IN ('any', 'human', 'agent')),
    tier           INTEGER NOT NULL CHECK (tier BETWEEN 0 AND 9),
    capabilities   TEXT    NOT NULL,
    constraints    TEXT    NOT NULL,
    max_attempts   INTEGER NOT NULL CHECK (max_attempts BETWEEN 1 AND 1000),
    not_before     INTEGER,
    billable       INTEGER NOT NULL CHECK (billable IN (0, 1)),
    charge_code    TEXT    NOT NULL CHECK (length(charge_code) <= 64),
    scope          TEXT    NOT NULL,
    channel        TEXT,
    origin_ask_ref TEXT,
    state          TEXT    NOT NULL CHECK (state IN
        ('open', 'in_progress', 'blocked', 'review', 'failed', 'complete', 'dropped')),
    token_epoch    INTEGER NOT NULL CHECK (token_epoch >= 0),
    token_number   INTEGER NOT NULL CHECK (token_number >= 0),
    -- The claim fields: null together, set together, cleared together. Nobody works without them.
    holder         INTEGER,
    session        TEXT,
    acquired       INTEGER,
    renewed        INTEGER,
    ttl            INTEGER CHECK (ttl BETWEEN 1000000 AND 2592000000000),
    expires        INTEGER,
    renewals       INTEGER CHECK (renewals >= 0),
    reason         TEXT,
    stint          INTEGER,
    suspect        INTEGER,  -- when a sweep first saw that it had expired
    host           TEXT,     -- where its work is
    worktree       TEXT,
    branch         TEXT,
    --
    assignee       INTEGER,
    author         INTEGER,
    preferred      INTEGER,
    parked_by      INTEGER,
    blocked_on     TEXT    NOT NULL,
    attempts       INTEGER NOT NULL CHECK (attempts >= 0),
    rests_until    INTEGER,  -- after a try that did not succeed
    waits_on       INTEGER NOT NULL CHECK (waits_on >= 0),  -- dependencies that are not complete
    -- The contents of its item file when it was last read, if it is an item of a backlog in files.
    item_said      TEXT,
    item_gate      TEXT,
    item_locked    TEXT,
    --
    head           TEXT    NOT NULL,
    events         INTEGER NOT NULL CHECK (events >= 1),
    version        INTEGER NOT NULL,
    PRIMARY KEY (board, id),
    UNIQUE (board, uid),
    -- Not its holder and author: they change with every piece of work, and called in that transaction.
    FOREIGN KEY (board, creator)   REFERENCES actor (board, id),
    FOREIGN KEY (board, assignee)  REFERENCES actor (board, id),
    FOREIGN KEY (board, preferred) REFERENCES actor (board, id),
    FOREIGN KEY (board, parked_by) REFERENCES actor (board, id),
    CHECK ((channel IS NULL) = (origin_ask_ref IS NULL)),
    CHECK ((item_said IS NULL) = (item_gate IS NULL)),
    CHECK ((item_said IS NULL) = (item_locked IS NULL)),
    CHECK (CASE WHEN holder IS NULL
        THEN coalesce(acquired, renewed, ttl, expires, renewals, suspect) IS NULL
            AND coalesce(session, reason, host, worktree, branch) IS NULL AND state <> 'in_progress'
        ELSE coalesce(expires = renewed + ttl AND renewed >= acquired AND renewals >= 0, 1 = 0)
            AND reason IS NOT NULL AND host IS NOT NULL AND worktree IS NOT NULL AND branch IS NOT NULL
            AND state IN ('open', 'in_progress', 'blocked') END),
    CHECK (stint IS NULL OR (state = 'in_progress' AND session IS NOT NULL))
) STRICT;

CREATE UNIQUE INDEX task_by_key ON task (board, lower(key));
CREATE UNIQUE INDEX task_by_origin ON task (board, channel, origin_ask_ref)
    WHERE channel IS NOT NULL;
CREATE INDEX task_by_state ON task (board, state, priority, id);
CREATE INDEX task_by_holder ON task (board, holder, session) WHERE holder IS NOT NULL;
-- What `next` offers but for the hour, in its order: it costs the same on a thousand tasks and on a
-- million. The condition is that of the part `ready` in `readiness.sql`, word for word.
CREATE INDEX task_ready ON task (board, priority, id, tier, audience, not_before, rests_until)
    WHERE CASE WHEN
        state = 'open' AND holder IS NULL AND waits_on = 0 AND parked_by IS NULL AND assignee IS NULL
        AND coalesce(item_gate, '') = '' AND coalesce(item_locked, '') = ''
    THEN 1 ELSE 0 END = 1;
CREATE INDEX task_by_assignee ON task (board, assignee) WHERE assignee IS NOT NULL;
CREATE INDEX task_by_preferred ON task (board, preferred) WHERE preferred IS NOT NULL;

-- A task waits until all that it depends on is complete. Cycles are refused when they would be made.
CREATE TABLE dependency (
    board   INTEGER NOT NULL,
    task    INTEGER NOT NULL,
    on_task INTEGER NOT NULL CHECK (on_task <> task),
    PRIMARY KEY (board, task, on_task),
    FOREIGN KEY (board, task)    REFERENCES task (board, id),
    FOREIGN KEY (board, on_task) REFERENCES task (board, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX dependency_by_cause ON dependency (board, on_task, task);

-- Ended leases. A running lease is in its task's row only.
CREATE TABLE ended_lease (
    board        INTEGER NOT NULL,
    task         INTEGER NOT NULL,
    token_epoch  INTEGER NOT NULL,
    token_number INTEGER NOT NULL,
    actor        INTEGER NOT NULL,
    session      TEXT,
    acquired     INTEGER NOT NULL,
    renewed      INTEGER NOT NULL,
    expires      INTEGER NOT NULL,
    renewals     INTEGER NOT NULL,
    ended        INTEGER NOT NULL,
    cause        TEXT    NOT NULL CHECK (cause <> ''),
    lost         INTEGER NOT NULL CHECK (lost IN (0, 1)),
    acknowledged INTEGER NOT NULL CHECK (acknowledged IN (0, 1)),
    seq          INTEGER NOT NULL,  -- of the event that ended it: a stint that ended with it is known by that
    stint_started INTEGER,
    stint_ended  INTEGER,
    tokens       INTEGER CHECK (tokens >= 0),
    cost         INTEGER CHECK (cost >= 0),  -- in millionths
    spending     TEXT    NOT NULL CHECK (spending IN ('', 'actual', 'estimated', 'unknown')),
    host         TEXT    NOT NULL,  -- where its work was when it ended
    worktree     TEXT    NOT NULL,
    branch       TEXT    NOT NULL,
    PRIMARY KEY (board, task, token_epoch, token_number),
    FOREIGN KEY (board, task) REFERENCES task (board, id),
    CHECK ((stint_started IS NULL) = (stint_ended IS NULL) AND coalesce(stint_ended >= stint_started, 1 = 1))
) STRICT, WITHOUT ROWID;

CREATE INDEX lost_lease ON ended_lease (board, actor, session) WHERE lost = 1 AND acknowledged = 0;

-- The process behind a lease: a `dibs run`, a `hold`, or the one that a claim states. By lease, since a session
-- may hold several. A row stays for 30 days after its lease ended: whatever the process
-- started is known by it.
CREATE TABLE lease_process (
    board           INTEGER NOT NULL,
    task            INTEGER NOT NULL,
    token_epoch     INTEGER NOT NULL,
    token_number    INTEGER NOT NULL,
    actor           INTEGER NOT NULL,
    session         TEXT    NOT NULL,
    host            TEXT    NOT NULL,
    boot            TEXT    NOT NULL,
    namespace       TEXT    NOT NULL,
    pid             INTEGER NOT NULL,
    pid_started     INTEGER NOT NULL,
    runs            INTEGER NOT NULL CHECK (runs IN (0, 1)),  -- a `dibs run`: one at a time
    command         INTEGER NOT NULL,  -- leads the session of what it runs; 0 before that is started
    command_started INTEGER NOT NULL,
    forks           INTEGER NOT NULL,  -- what the kernel had started by then
    over            INTEGER NOT NULL CHECK (over IN (0, 1)),  -- it works under the lease no more
    PRIMARY KEY (board, task, token_epoch, token_number),
    FOREIGN KEY (board, task)  REFERENCES task (board, id),
    FOREIGN KEY (board, actor) REFERENCES actor (board, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX lease_process_by_pid ON lease_process (board, boot, namespace, pid);
CREATE INDEX lease_process_by_command ON lease_process (board, boot, namespace, command);

-- The ledger. An event of the board itself has no task.
CREATE TABLE event (
    board        INTEGER NOT NULL,
    seq          INTEGER NOT NULL CHECK (seq >= 1),
    task         INTEGER,
    position     INTEGER NOT NULL CHECK (position >= 1),
    at           INTEGER NOT NULL,
    actor        INTEGER NOT NULL,
    session      TEXT    NOT NULL,
    token_epoch  INTEGER,
    token_number INTEGER,
    verb         TEXT    NOT NULL,
    cause        TEXT    NOT NULL,
    facts        TEXT    NOT NULL,
    digest       TEXT    NOT NULL CHECK (length(digest) = 64),
    request      TEXT,  -- by which somebody who was cut off finds what was done; it proves nothing
    PRIMARY KEY (board, seq),
    FOREIGN KEY (board, task) REFERENCES task (board, id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX event_by_task ON event (board, task, position);
-- Two NULLs are not the same value: the index above keeps no order of the board's own chain.
CREATE UNIQUE INDEX event_of_board ON event (board, position) WHERE task IS NULL;

-- Paths that a person let somebody touch although a task reserves them.
CREATE TABLE allowance (
    board INTEGER NOT NULL,
    seq   INTEGER NOT NULL,
    task  INTEGER NOT NULL,
    paths TEXT    NOT NULL,
    actor INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (board, seq),
    FOREIGN KEY (board, seq) REFERENCES event (board, seq),
    FOREIGN KEY (board, task) REFERENCES task (board, id),
    FOREIGN KEY (board, actor) REFERENCES actor (board, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX allowance_by_end ON allowance (board, until);
CREATE INDEX allowance_by_task ON allowance (board, task, seq);

-- Stints that are over and did not end with their lease, by the event that ended them: stopped, gone on
-- with after a silence, added or amended by a person. One that another amends counts no more, and stays.
CREATE TABLE stint (
    board    INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    task     INTEGER NOT NULL,
    actor    INTEGER NOT NULL,
    started  INTEGER NOT NULL,
    ended    INTEGER NOT NULL,
    source   TEXT    NOT NULL CHECK (source IN ('claim', 'added', 'amended')),
    amends   INTEGER,
    tokens   INTEGER CHECK (tokens >= 0),
    cost     INTEGER CHECK (cost >= 0),
    spending TEXT    NOT NULL CHECK (spending IN ('', 'actual', 'estimated', 'unknown')),
    PRIMARY KEY (board, seq),
    FOREIGN KEY (board, seq)   REFERENCES event (board, seq),
    FOREIGN KEY (board, task)  REFERENCES task (board, id),
    FOREIGN KEY (board, actor) REFERENCES actor (board, id),
    CHECK (ended >= started),
    CHECK ((amends IS NULL) = (source <> 'amended')),
    CHECK (amends < seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX stint_by_task ON stint (board, task, seq);
CREATE UNIQUE INDEX stint_by_amended ON stint (board, amends) WHERE amends IS NOT NULL;

-- Periods of an actor's work that a person approved, and what they came to then.
CREATE TABLE approval (
    board    INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    actor    INTEGER NOT NULL,
    since    INTEGER NOT NULL,
    until    INTEGER NOT NULL CHECK (until > since),
    zone     TEXT    NOT NULL,
    label    TEXT    NOT NULL,
    stints   INTEGER NOT NULL CHECK (stints >= 0),
    effort   INTEGER NOT NULL CHECK (effort >= 0),
    working  INTEGER NOT NULL CHECK (working >= 0),
    digest   TEXT    NOT NULL CHECK (length(digest) = 64),
    reopened INTEGER,  -- the event after which it is in force no more
    PRIMARY KEY (board, seq),
    FOREIGN KEY (board, seq) REFERENCES event (board, seq),
    FOREIGN KEY (board, actor) REFERENCES actor (board, id),
    CHECK (working <= effort),
    CHECK (reopened > seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX approval_by_actor ON approval (board, actor, seq);

-- Free text, beside the ledger, which keeps its digest. One without text was redacted.
CREATE TABLE note (
    board INTEGER NOT NULL,
    seq   INTEGER NOT NULL,
    task  INTEGER NOT NULL,
    kind  TEXT    NOT NULL,
    text  TEXT    NOT NULL,
    PRIMARY KEY (board, seq),
    FOREIGN KEY (board, seq)  REFERENCES event (board, seq),
    FOREIGN KEY (board, task) REFERENCES task (board, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX note_by_task ON note (board, task, seq);
CREATE INDEX late_note ON note (board, seq) WHERE kind = 'late';

-- Answers by request id, so that asking again is safe.
CREATE TABLE request (
    board  INTEGER NOT NULL,
    actor  INTEGER NOT NULL,
    id     TEXT    NOT NULL,
    digest TEXT    NOT NULL,
    at     INTEGER NOT NULL,
    answer TEXT    NOT NULL,
    PRIMARY KEY (board, actor, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX request_by_age ON request (board, at);

-- What was refused: a capped log, not part of the ledger.
CREATE TABLE refusal (
    board   INTEGER NOT NULL,
    id      INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    verb    TEXT    NOT NULL,
    task    TEXT    NOT NULL,
    actor   TEXT    NOT NULL,
    session TEXT    NOT NULL,
    code    TEXT    NOT NULL,
    message TEXT    NOT NULL,
    PRIMARY KEY (board, id)
) STRICT, WITHOUT ROWID;
