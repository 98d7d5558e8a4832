-- Queries that differ on PostgreSQL.

-- part: stamp
(extract(epoch FROM clock_timestamp()) * 1000000)::bigint

-- part: lock
1684628083

-- part: listeners
1684628072

-- Settings of this transaction alone. `wait`: how long a lock is waited for, in milliseconds. Names without
-- a schema are those of the server: nobody's function or operator is found in front of its own.
-- part: guards
pg_catalog.set_config('lock_timeout', :wait, true),
pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)

-- part: limits
{guards},
pg_catalog.set_config('idle_in_transaction_session_timeout', :idle, true),
pg_catalog.set_config('client_min_messages', 'warning', true)

-- part: server
(SELECT system_identifier::text FROM pg_control_system()),
substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)

-- Which tables and rules are there: a number that rises, and a fingerprint. SQLite has places for both.
-- part: schema
SELECT coalesce(max(number), 0) AS number, coalesce(max(fingerprint), 0) AS fingerprint
FROM (SELECT number, fingerprint FROM migration ORDER BY number DESC LIMIT 1) AS newest

-- name: schema
{schema}

-- What is in the schema, but for what belongs to a table.
-- part: inside
SELECT classid, objid FROM pg_depend JOIN pg_namespace ON pg_namespace.oid = refobjid
WHERE refclassid = 'pg_namespace'::regclass AND nspname = 'dibs'

-- Whom the caller does not trust: anybody but itself, superusers (who have every role, that of the first one too),
-- and, unless the caller is a superuser, the owner of the database.
-- part: untrusted
owner <> quote_ident(current_user)::regrole AND NOT pg_has_role(owner, 10::oid, 'MEMBER')
AND (pg_has_role(10::oid, 'MEMBER') OR NOT pg_has_role(owner, 'pg_database_owner', 'MEMBER'))

-- part: foreign
SELECT 'dibs: ' || pg_describe_object(classid, objid, 0) || ' belongs to ' || pg_get_userbyid(owner)

-- Differs because whoever owns a table, or the function of its trigger, decides what runs with the rights of
-- those who use it. Fails with the name of the first thing that belongs to nobody whom the caller trusts; who only
-- uses the board trusts the owner of the schema too. It fails rather than answers, so that what is sent behind it
-- is not run.
-- name: check_tables
SELECT (
    {foreign} FROM (
        SELECT nspowner, 'pg_namespace'::regclass AS classid, oid AS objid, nspowner AS owner
        FROM pg_namespace WHERE nspname = 'dibs'
        UNION ALL SELECT nspowner,
            CASE WHEN tgfoid IS NULL THEN 'pg_class'::regclass ELSE 'pg_trigger'::regclass END,
            coalesce(pg_trigger.oid, pg_class.oid), coalesce(proowner, relowner)
        FROM pg_namespace JOIN pg_class ON relnamespace = pg_namespace.oid AND relname = ANY (:tables::text[])
        LEFT JOIN pg_trigger ON tgrelid = pg_class.oid AND NOT tgisinternal
        LEFT JOIN pg_proc ON pg_proc.oid = tgfoid AND relowner = nspowner
        WHERE nspname = 'dibs'
    ) AS owned
    WHERE {untrusted} AND (owner <> nspowner OR pg_has_role('pg_database_owner', 'MEMBER')) LIMIT 1
)::int

-- The same for all that is in the schema, and for who changes it, or could, and so does not trust its owner
-- (`changes`: 1).
-- name: check_owners
WITH place AS (SELECT oid, nspowner FROM pg_namespace WHERE nspname = 'dibs'),
inside AS ({inside}),
owned (classid, objid, owner) AS (
    SELECT 'pg_namespace'::regclass, oid, nspowner FROM place
    UNION ALL SELECT classid, objid, relowner FROM inside JOIN pg_class ON pg_class.oid = objid
        AND classid = 'pg_class'::regclass
    UNION ALL SELECT classid, objid, proowner FROM inside JOIN pg_proc ON pg_proc.oid = objid
        AND classid = 'pg_proc'::regclass
    UNION ALL SELECT classid, objid, typowner FROM inside JOIN pg_type ON pg_type.oid = objid
        AND classid = 'pg_type'::regclass
    UNION ALL SELECT 'pg_trigger'::regclass, pg_trigger.oid, proowner
        FROM inside JOIN pg_trigger ON tgrelid = objid AND classid = 'pg_class'::regclass
        JOIN pg_proc ON pg_proc.oid = tgfoid WHERE NOT tgisinternal
)
SELECT (
    {foreign} FROM owned CROSS JOIN place
    WHERE {untrusted} AND (
        owner <> nspowner OR :changes::int = 1 OR has_database_privilege(current_database(), 'CREATE')
    )
    ORDER BY classid <> 'pg_namespace'::regclass, classid, objid LIMIT 1
)::int

-- Everything in the schema that can hold code, by kind and name, and how the server describes it.
-- name: objects_of_schema
WITH inside AS ({inside})
SELECT CASE relkind WHEN 'r' THEN 'TABLE' ELSE 'RELATION' END, relname, pg_describe_object(classid, objid, 0)
FROM inside JOIN pg_class ON pg_class.oid = objid AND classid = 'pg_class'::regclass
WHERE relkind NOT IN ('i', 'I', 'S')
UNION ALL SELECT 'FUNCTION', proname, pg_describe_object(classid, objid, 0)
FROM inside JOIN pg_proc ON pg_proc.oid = objid AND classid = 'pg_proc'::regclass
UNION ALL SELECT CASE typtype WHEN 'd' THEN 'DOMAIN' ELSE 'TYPE' END, typname, pg_describe_object(classid, objid, 0)
FROM inside JOIN pg_type ON pg_type.oid = objid AND classid = 'pg_type'::regclass
UNION ALL SELECT 'OPERATOR', objid::text, pg_describe_object(classid, objid, 0)
FROM inside WHERE classid = 'pg_operator'::regclass
UNION ALL SELECT 'TRIGGER', tgname, pg_describe_object('pg_trigger'::regclass, pg_trigger.oid, 0)
FROM inside JOIN pg_trigger ON tgrelid = objid AND classid = 'pg_class'::regclass AND NOT tgisinternal
UNION ALL SELECT 'RULE', rulename, pg_describe_object('pg_rewrite'::regclass, pg_rewrite.oid, 0)
FROM inside JOIN pg_rewrite ON ev_class = objid AND classid = 'pg_class'::regclass

-- Differs because a server has locks of tables, and another client may have one.
-- name: begin_reading
SELECT {guards}

-- Who keeps others waiting: first who has the board's lock or a whole table, then who has changed rows. Of
-- another role's session only the name and the process can be seen.
-- name: blockers
SELECT CASE locktype WHEN 'advisory' THEN 'its lock' ELSE 'a lock on ' || relation::regclass END, pid, usename, application_name,
    (extract(epoch FROM xact_start) * 1000000)::bigint
FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE granted AND pid <> pg_backend_pid() AND pg_locks.database = (
    SELECT oid FROM pg_database WHERE datname = current_database()
) AND (
    (locktype = 'advisory' AND classid = {lock} AND objid = :board::int AND objsubid = 2)
    OR (locktype = 'relation' AND mode <> 'AccessShareLock' AND relation IN (
        SELECT objid FROM ({inside}) AS inside WHERE classid = 'pg_class'::regclass))
)
ORDER BY CASE WHEN mode = 'AccessExclusiveLock' THEN 0 WHEN locktype = 'advisory' THEN 1
    WHEN mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock') THEN 2 ELSE 3 END, xact_start
LIMIT 1

-- Differs because a database holds many boards, each with a name.
-- name: add_board
INSERT INTO board
    (board, uid, created, epoch, floor, seq, actors, tasks, keys, head, events, moved_to, arriving,
     paused_why, ticket)
SELECT coalesce(max(board), 0) + 1, :uid, :created, 1, :created, 0, 0, 0, 0, '', 0, '', 0, '', ''
FROM board

-- name: add_home
INSERT INTO home (board, name, settings, system, timeline)
SELECT board, :name, '', {server} FROM board WHERE uid = :uid

-- `pid`: the backend's, as the connection got it at its start. If it is another one, there is a pooler in between. If
-- not, the session is our own: it will keep our statements, and should not plan each of them five times.
-- A plan is kept while its tables grow: one that was made for an empty table should not read a full one whole.
-- name: find_board
SELECT schema.number, schema.fingerprint, home.board, home.settings,
    CASE WHEN pg_backend_pid() = :pid
    THEN set_config('plan_cache_mode', 'force_generic_plan', false)
        || set_config('enable_seqscan', 'off', false) END
FROM ({schema}) AS schema LEFT JOIN home ON home.name = :name

-- name: boards
SELECT home.name, board.uid, board.tasks, board.seq, board.moved_to, board.arriving
FROM home JOIN board ON board.board = home.board ORDER BY home.name

-- Differs because a server has many writers at once. An advisory lock, not a row lock: it is granted in the
-- order of the requests, so that renewals, which share it, cannot starve a writer. Later queries of the
-- transaction see all earlier changes, and the time after the wait. `idle`: how long an idle client may hold
-- the lock. The server reports a commit that did not wait for its standby only by a warning, so warnings are
-- enabled. All settings are local to this transaction. `nobody`: whether nobody listens for notifications.
-- name: lock_board
SELECT {limits}, pg_advisory_xact_lock({lock}, :board::int),
    pg_try_advisory_xact_lock({listeners}, :board::int) AS nobody

-- name: lock_board_shared
SELECT {limits}, pg_advisory_xact_lock_shared({lock}, :board::int)

-- Which server it was, and how often it had been promoted, when the epoch was last raised; and now.
-- name: server
SELECT system, timeline, {server} FROM home WHERE board = :board

-- Differs because renewals go side by side: each locks its task, while it shares the board's lock.
-- name: lock_task
WITH locked AS
    (SELECT * FROM task WHERE board = :board AND lower(key) = :folded FOR NO KEY UPDATE)
SELECT {task} FROM locked

-- name: clock
SELECT {stamp}

-- Differs because a server can notify waiting clients of a change. All listeners share a lock for as long as
-- their connections live; a writer that finds it taken sends a notification after its commit.
-- name: begin_to_listen
SELECT pg_try_advisory_lock_shared({listeners}, :board::int)

-- name: unlisten
SELECT pg_advisory_unlock_shared({listeners}, :board::int)

-- name: notify
SELECT pg_notify('dibs_' || :board, '')

-- Differs because a change may be known here and not yet to a standby: after this, the commit waits.
-- name: touch_board
UPDATE board SET floor = floor WHERE board = :board

-- Differs because a role that uses boards may activate a moved copy only with its move token.
-- name: arrive
SELECT dibs.arrive(:uid, :word)

-- Differs because the clock is the server's. A newer dibs may have migrated since the connection was made.
-- name: look_at_board
SELECT {board}, (SELECT max(number) FROM migration), {stamp} FROM board WHERE board = :board

-- name: save_home
UPDATE home SET (system, timeline) = (SELECT {server}) WHERE board = :board

-- name: settings
SELECT settings FROM home WHERE board = :board

-- name: save_settings
UPDATE home SET settings = :settings WHERE board = :board
