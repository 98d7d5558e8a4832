-- What PostgreSQL is asked in a way of its own.

-- part: stamp
(extract(epoch FROM clock_timestamp()) * 1000000)::bigint

-- part: home
home.system, home.timeline, (SELECT system_identifier::text FROM pg_control_system()),
substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)

-- Differs because a database holds many boards, each with a name.
-- name: add_board
INSERT INTO board
    (board, uid, created, epoch, floor, seq, actors, tasks, keys, head, events, moved_to, arriving)
SELECT coalesce(max(board), 0) + 1, :uid, :created, 1, :created, 0, 0, 0, 0, '', 0, '', 0
FROM board

-- name: add_home
INSERT INTO home (board, name, settings, system, timeline)
SELECT board, :name, '', (SELECT system_identifier::text FROM pg_control_system()),
    substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
FROM board WHERE uid = :uid

-- name: find_board
SELECT coalesce((SELECT max(number) FROM migration), 0), home.board, home.settings
FROM (SELECT 1) AS one LEFT JOIN home ON home.name = :name

-- name: boards
SELECT home.name, board.uid, board.tasks, board.seq, board.moved_to, board.arriving
FROM home JOIN board ON board.board = home.board ORDER BY home.name

-- Differs because the clock is the server's. It is read after the lock: a common table expression
-- with a lock is carried out first, whatever waits for it.
-- name: lock_board
WITH locked AS (SELECT * FROM board WHERE board = :board FOR NO KEY UPDATE)
SELECT {board}, {stamp}, {home} FROM locked JOIN home USING (board)

-- Differs because renewals go side by side: they share the board's lock, and each locks its task.
-- name: share_board
WITH locked AS (SELECT * FROM board WHERE board = :board FOR SHARE)
SELECT {board}, {home} FROM locked JOIN home USING (board)

-- name: lock_task
WITH locked AS
    (SELECT * FROM task WHERE board = :board AND lower(key) = lower(:key) FOR NO KEY UPDATE)
SELECT {task} FROM locked

-- name: clock
SELECT {stamp}

-- Differs because the clock is the server's.
-- name: look_at_board
SELECT {board}, {stamp} FROM board WHERE board = :board

-- name: look_at_home
SELECT {home} FROM home WHERE board = :board

-- name: save_home
UPDATE home SET system = (SELECT system_identifier::text FROM pg_control_system()),
    timeline = substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
WHERE board = :board

-- name: settings
SELECT settings FROM home WHERE board = :board

-- name: save_settings
UPDATE home SET settings = :settings WHERE board = :board
