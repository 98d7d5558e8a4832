-- What PostgreSQL is asked in a way of its own.

-- part: stamp
(extract(epoch FROM clock_timestamp()) * 1000000)::bigint

-- part: lock
1684628083

-- part: listeners
1684628072

-- part: limits
set_config('lock_timeout', :wait, true),
set_config('idle_in_transaction_session_timeout', :idle, true),
set_config('client_min_messages', 'warning', true)

-- part: server
(SELECT system_identifier::text FROM pg_control_system()),
substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)

-- Which tables and rules are there: a number that rises, and a fingerprint. SQLite has places for both.
-- part: schema
SELECT coalesce(max(number), 0) AS number, coalesce(max(fingerprint), 0) AS fingerprint
FROM (SELECT number, fingerprint FROM migration ORDER BY number DESC LIMIT 1) AS newest

-- name: schema
{schema}

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

-- `pid`: as the connection was told at its start. If it is another one, there is a pooler in between. If
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

-- Differs because a server has many writers at once. A lock of its own, not that of a row: who waits
-- for it is served in turn, so that renewals, which share it, cannot keep a writer waiting for ever.
-- What is asked after it sees what was done before, and the time after the wait. `wait`: how long, in
-- milliseconds; `idle`: how long the lock is kept for a client that says nothing. That a commit did not wait
-- for its standby is told by a warning, which nobody may have switched off. All are settings of this
-- transaction alone. `nobody`: whether nobody waits for changes of the board, who would like a hint.
-- name: take_turn
SELECT {limits}, pg_advisory_xact_lock({lock}, :board::int),
    pg_try_advisory_xact_lock({listeners}, :board::int) AS nobody

-- name: share_turn
SELECT {limits}, pg_advisory_xact_lock_shared({lock}, :board::int)

-- Which server it was, and how often it had been promoted, when the epoch was last raised; and now.
-- name: server
SELECT system, timeline, {server} FROM home WHERE board = :board

-- Differs because renewals go side by side: each locks its task, while it shares the board's turn.
-- name: lock_task
WITH locked AS
    (SELECT * FROM task WHERE board = :board AND lower(key) = lower(:key) FOR NO KEY UPDATE)
SELECT {task} FROM locked

-- name: clock
SELECT {stamp}

-- Differs because a server can tell who waits that there is something to look at. Whoever listens has a lock
-- that all listeners share, for as long as its connection lives; a change that meets it is hinted at, after it.
-- name: begin_to_listen
SELECT pg_try_advisory_lock_shared({listeners}, :board::int)

-- name: listen_no_more
SELECT pg_advisory_unlock_shared({listeners}, :board::int)

-- name: hint
SELECT pg_notify('dibs_' || :board, '')

-- Differs because a change may be known here and not yet to a standby: after this, the commit waits.
-- name: touch_board
UPDATE board SET floor = floor WHERE board = :board

-- Differs because a role that uses boards may say that one has arrived, and only if it knows the word.
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
