-- The SQL that finds ready work.

-- What can be offered, but for the hour: nobody holds it, and nothing keeps it from being begun. As one
-- `CASE` no other index than `task_ready` suits it.
-- part: ready
CASE WHEN
    state = 'open' AND holder IS NULL AND waits_on = 0 AND parked_by IS NULL AND assignee IS NULL
    AND coalesce(item_gate, '') = '' AND coalesce(item_locked, '') = ''
THEN 1 ELSE 0 END = 1

-- What can be offered now: the one definition of readiness, for `next`, `why`, `status`, `wait` and `list --ready`.
-- part: ready_now
{ready} AND coalesce(not_before, 0) <= :now AND coalesce(rests_until, 0) <= :now

-- name: ready_for
SELECT priority, id, key, capabilities, scope FROM task
WHERE board = :board AND {ready_now} AND (priority, id) > (:priority, :id)
AND tier <= :tier AND audience IN ('any', :kind)
ORDER BY priority, id LIMIT :limit

-- name: tasks_ready
SELECT {task} FROM task
WHERE board = :board AND {ready_now}
ORDER BY priority, id LIMIT :limit

-- name: is_ready
SELECT 1 FROM task WHERE board = :board AND id = :id AND {ready_now}
