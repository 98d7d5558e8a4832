-- Queries that differ on SQLite.

-- Differs because a file holds one board, which needs no name; PostgreSQL holds many.
-- name: add_board
INSERT INTO board
    (board, uid, created, epoch, floor, seq, actors, tasks, keys, head, events, moved_to, arriving,
     paused_why, ticket)
VALUES (:board, :uid, :created, 1, :created, 0, 0, 0, 0, '', 0, '', 0, '', '')

-- Differs because a file has its clock's anchor in a table; PostgreSQL has a clock of its own.
-- name: board_and_clock
SELECT board.uid, board.created, board.epoch, board.floor, board.seq, board.actors, board.tasks,
    board.keys, board.head, board.events, board.moved_to, board.arriving,
    board.paused_by, board.paused_why, board.ticket,
    clock.boot, clock.anchor, clock.boottime, clock.skewed
FROM board LEFT JOIN clock ON clock.board = board.board
WHERE board.board = :board

-- Differs because only a file's clock has an anchor.
-- name: save_anchor
INSERT INTO clock (board, boot, anchor, boottime, skewed)
VALUES (:board, :boot, :anchor, :boottime, :skewed)
ON CONFLICT (board) DO UPDATE
SET boot = excluded.boot, anchor = excluded.anchor, boottime = excluded.boottime,
    skewed = excluded.skewed

-- Differs because whoever may write a file may write all of it.
-- name: arrive
UPDATE board SET arriving = 2 WHERE uid = :uid AND arriving = 1 AND ticket = :ticket
