-- Every query on a board, by name. `{name}` is replaced by a part below.

-- part: board
uid, created, epoch, floor, seq, actors, tasks, keys, head, events, moved_to, arriving, paused_by,
paused_why, ticket

-- All columns in the order of the table: then a row is sent as it is stored.
-- part: task
board, id, uid, key, created, updated, creator, title, priority, audience, tier, capabilities,
constraints, max_attempts, not_before, billable, charge_code, scope, channel, origin_ask_ref, state,
token_epoch, token_number, holder, session, acquired, renewed, ttl, expires, renewals, reason, stint,
suspect, host, worktree, branch, assignee, author, preferred, parked_by, blocked_on, attempts, rests_until,
waits_on, item_said, item_gate, item_locked, head, events, version

-- part: event
seq, task, position, at, actor, session, token_epoch, token_number, verb, cause, facts, digest

-- part: actor
actor.id, actor.name, actor.kind, actor.tier, actor.capabilities, actor.zone

-- part: session
actor, name, host, worktree, branch, boot, namespace, pid, pid_started, watched, background

-- part: lease_process
token_epoch, token_number, boot, namespace, pid, pid_started, host, runs, command, command_started,
forks, actor, session

-- part: ended_lease
token_epoch, token_number, actor, session, acquired, renewed, expires, renewals, ended, cause, lost,
acknowledged, seq, stint_started, stint_ended, tokens, cost, spending, host, worktree, branch

-- part: stint
seq, actor, started, ended, source, amends, tokens, cost, spending

-- part: not_amended
NOT IN (SELECT amends FROM stint WHERE board = :board AND amends IS NOT NULL)

-- Open ones are counted until now; or until the last sign of life, if their lease has expired, or their
-- session is watched and has been silent for too long.
-- part: stints
SELECT actor, stint_started AS started, stint_ended AS ended, task, 'claim' AS source, tokens, cost,
    spending, seq, cause
FROM ended_lease
WHERE board = :board AND stint_ended >= :since AND stint_started < :until AND seq {not_amended}
UNION ALL
SELECT actor, started, ended, task, source, tokens, cost, spending, seq, (
    SELECT verb FROM event WHERE event.board = stint.board AND event.seq = stint.seq
)
FROM stint
WHERE board = :board AND ended >= :since AND started < :until AND seq {not_amended}
AND NOT (source = 'amended' AND started = ended)
UNION ALL
SELECT holder, stint,
    CASE WHEN :now <= expires AND NOT (renewed < :idle_since AND EXISTS (
        SELECT 1 FROM session
        WHERE session.board = task.board AND session.actor = task.holder AND session.name = task.session
        AND session.watched = 1
    )) THEN :now WHEN renewed > stint THEN renewed ELSE stint END,
    id, 'open', NULL, NULL, '', NULL, ''
FROM task
WHERE board = :board AND holder IS NOT NULL AND stint < :until

-- The board.

-- name: save_board
UPDATE board
SET epoch = :epoch, floor = :floor, seq = :seq, actors = :actors, tasks = :tasks, keys = :keys,
    head = :head, events = :events
WHERE board = :board

-- What most changes change.
-- name: save_seq
UPDATE board SET floor = :floor, seq = :seq WHERE board = :board

-- name: save_place
UPDATE board SET moved_to = :moved_to, arriving = :arriving, ticket = :ticket WHERE board = :board

-- name: save_pause
UPDATE board SET paused_by = :paused_by, paused_why = :paused_why WHERE board = :board

-- name: expected
SELECT count(*) FROM board WHERE uid = :uid AND arriving = 1 AND ticket = :ticket

-- Actors and sessions.

-- name: actor_by_name
SELECT {actor} FROM actor_name
JOIN actor ON actor.board = actor_name.board AND actor.id = actor_name.actor
WHERE actor_name.board = :board AND actor_name.folded = :folded

-- name: actor
SELECT {actor} FROM actor WHERE board = :board AND id = :id

-- name: actors
SELECT {actor} FROM actor WHERE board = :board ORDER BY id

-- name: names
SELECT name, actor FROM actor_name WHERE board = :board ORDER BY folded

-- name: names_of_actor
SELECT name FROM actor_name WHERE board = :board AND actor = :actor ORDER BY folded

-- name: save_actor
INSERT INTO actor (board, id, name, kind, tier, capabilities, zone)
VALUES (:board, :id, :name, :kind, :tier, :capabilities, :zone)
ON CONFLICT (board, id) DO UPDATE
SET name = excluded.name, kind = excluded.kind, tier = excluded.tier,
    capabilities = excluded.capabilities, zone = excluded.zone

-- name: add_name
INSERT INTO actor_name (board, folded, name, actor) VALUES (:board, :folded, :name, :actor)

-- name: remove_names_of_actor
DELETE FROM actor_name WHERE board = :board AND actor = :actor

-- name: session
SELECT {session} FROM session WHERE board = :board AND actor = :actor AND name = :name

-- name: sessions_of_process
SELECT {session} FROM session
WHERE board = :board AND boot = :boot AND namespace = :namespace AND pid = :pid
ORDER BY registered DESC, name

-- name: save_session
INSERT INTO session
    (board, actor, name, host, worktree, branch, boot, namespace, pid, pid_started, watched, background,
     registered)
VALUES
    (:board, :actor, :name, :host, :worktree, :branch, :boot, :namespace, :pid, :pid_started, :watched,
     :background, :now)
ON CONFLICT (board, actor, name) DO UPDATE
SET host = excluded.host, worktree = excluded.worktree, branch = excluded.branch,
    boot = excluded.boot, namespace = excluded.namespace, pid = excluded.pid,
    pid_started = excluded.pid_started,
    watched = CASE excluded.watched WHEN 1 THEN 1 ELSE session.watched END

-- name: set_background
UPDATE session SET background = :background
WHERE board = :board AND actor = :actor AND name = :name

-- Tasks.

-- `folded`: by the client. A database would fold it by the rules of its own language; the column it does not.
-- name: task_by_key
SELECT {task} FROM task WHERE board = :board AND lower(key) = :folded

-- name: key_of_task
SELECT key FROM task WHERE board = :board AND id = :id

-- name: task_by_origin
SELECT {task} FROM task
WHERE board = :board AND channel = :channel AND origin_ask_ref = :origin_ask_ref

-- name: tasks_of_channel
SELECT {task} FROM task
WHERE board = :board AND channel = :channel AND origin_ask_ref > :after
ORDER BY origin_ask_ref LIMIT :limit

-- name: task_by_uid
SELECT id FROM task WHERE board = :board AND uid = :uid

-- name: keys
SELECT id, key FROM task WHERE board = :board AND id > :after ORDER BY id LIMIT :limit

-- name: keys_renewed_after
SELECT key FROM task WHERE board = :board AND holder IS NOT NULL AND renewed > :instant

-- name: tasks_in_state
SELECT {task} FROM task WHERE board = :board AND state = :state
ORDER BY priority, id LIMIT :limit

-- name: tasks_held
SELECT {task} FROM task WHERE board = :board AND holder IS NOT NULL
ORDER BY holder, session NULLS FIRST, id LIMIT :limit

-- name: tasks_held_by
SELECT {task} FROM task WHERE board = :board AND holder = :actor AND session = :session

-- name: tasks_worked_on_by
SELECT {task} FROM task WHERE board = :board AND holder = :actor AND stint IS NOT NULL

-- name: tasks_shifted
UPDATE task
SET acquired = acquired + :by, renewed = renewed + :by, expires = expires + :by, stint = stint + :by,
    suspect = suspect + :by, version = version + 1
WHERE board = :board AND holder IS NOT NULL

-- name: count_tasks
SELECT state, count(*) FROM task WHERE board = :board GROUP BY state

-- name: add_task
INSERT INTO task
    (board, id, uid, key, created, updated, creator, title, priority, audience, tier, capabilities,
     constraints, max_attempts, not_before, billable, charge_code, scope, channel, origin_ask_ref, state,
     token_epoch, token_number, blocked_on, attempts, waits_on, head, events, version)
VALUES
    (:board, :id, :uid, :key, :created, :updated, :creator, :title, :priority, :audience, :tier,
     :capabilities, :constraints, :max_attempts, :not_before, :billable, :charge_code, :scope, :channel,
     :origin_ask_ref, :state, :token_epoch, :token_number, :blocked_on, :attempts, :waits_on, :head, :events, 1)

-- A row in another version than the one that was read would get none, which the schema refuses.
-- name: save_task
UPDATE task
SET updated = :updated, state = :state, token_epoch = :token_epoch,
    token_number = :token_number, holder = :holder, session = :session, acquired = :acquired, renewed = :renewed, ttl = :ttl,
    expires = :expires, renewals = :renewals, reason = :reason, stint = :stint,
    suspect = :suspect, host = :host, worktree = :worktree, branch = :branch, assignee = :assignee, author = :author, preferred = :preferred,
    parked_by = :parked_by, blocked_on = :blocked_on, attempts = :attempts,
    rests_until = :rests_until, head = :head, events = :events,
    version = CASE version WHEN :version THEN version + 1 END
WHERE board = :board AND id = :id

-- name: save_item
UPDATE task SET item_said = :text, item_gate = :gate, item_locked = :locked
WHERE board = :board AND id = :id

-- What seldom changes, after `save_task`.
-- name: save_terms
UPDATE task
SET title = :title, priority = :priority, audience = :audience, tier = :tier,
    capabilities = :capabilities, constraints = :constraints, max_attempts = :max_attempts,
    not_before = :not_before, billable = :billable, charge_code = :charge_code, scope = :scope
WHERE board = :board AND id = :id

-- Where tables are joined, `CROSS JOIN` says in which order: a board's number looks selective to SQLite, and is
-- not.

-- name: tasks_assigned_to
SELECT {task} FROM task WHERE board = :board AND assignee = :actor ORDER BY priority, id LIMIT :limit

-- name: tasks_preferred_by
SELECT {task} FROM task WHERE board = :board AND preferred = :actor ORDER BY priority, id LIMIT :limit

-- name: held_scopes
SELECT id, key, holder, session, expires, scope FROM task
WHERE board = :board AND holder IS NOT NULL AND scope <> '[]'

-- name: add_allowance
INSERT INTO allowance (board, seq, task, paths, actor, until)
VALUES (:board, :seq, :task, :paths, :actor, :until)

-- name: allowances
SELECT allowance.seq, task.key, allowance.paths, allowance.actor, allowance.until
FROM allowance CROSS JOIN task
WHERE allowance.board = :board AND allowance.until >= :now
AND task.board = :board AND task.id = allowance.task ORDER BY allowance.until DESC, allowance.seq DESC

-- name: allowances_of
SELECT seq, paths, actor, until FROM allowance WHERE board = :board AND task = :task ORDER BY seq

-- name: count_held_by
SELECT count(*) FROM task WHERE board = :board AND holder = :actor AND session IS NOT NULL

-- The process tied to the lease itself counts, else that of its session.
-- name: leases_with_process
SELECT task.id, task.token_epoch, task.token_number, task.renewed, actor.kind,
    coalesce(behind.boot, session.boot), coalesce(behind.namespace, session.namespace),
    coalesce(behind.pid, session.pid), coalesce(behind.pid_started, session.pid_started),
    coalesce(behind.host, ''), coalesce(behind.runs, 0), coalesce(behind.command, 0),
    coalesce(behind.command_started, 0), coalesce(behind.forks, 0)
FROM task CROSS JOIN actor
LEFT JOIN lease_process AS behind ON behind.board = task.board AND behind.task = task.id
    AND behind.token_epoch = task.token_epoch AND behind.token_number = task.token_number
    AND behind.over = 0
LEFT JOIN session ON session.board = task.board AND session.actor = task.holder
    AND session.name = task.session
WHERE task.board = :board AND task.holder IS NOT NULL
AND (behind.pid IS NOT NULL OR session.pid IS NOT NULL)
AND actor.board = :board AND actor.id = task.holder

-- name: process_behind
SELECT {lease_process} FROM lease_process
WHERE board = :board AND task = :task AND token_epoch = :token_epoch AND token_number = :token_number

-- name: processes_behind
SELECT {lease_process} FROM lease_process
WHERE board = :board AND task = :task AND actor = :actor AND session = :session AND over = 0
ORDER BY token_epoch DESC, token_number DESC LIMIT :limit

-- name: runs_by_pid
SELECT {lease_process} FROM lease_process
WHERE board = :board AND boot = :boot AND namespace = :namespace AND pid = :pid AND runs = 1

-- name: runs_by_command
SELECT {lease_process} FROM lease_process
WHERE board = :board AND boot = :boot AND namespace = :namespace AND command = :command AND runs = 1

-- name: save_lease_process
INSERT INTO lease_process
    (board, task, token_epoch, token_number, actor, session, host, boot, namespace, pid, pid_started,
     runs, command, command_started, forks, over)
VALUES
    (:board, :task, :token_epoch, :token_number, :actor, :session, :host, :boot, :namespace, :pid,
     :pid_started, :runs, :command, :command_started, :forks, 0)
ON CONFLICT (board, task, token_epoch, token_number) DO UPDATE
SET host = excluded.host, boot = excluded.boot, namespace = excluded.namespace, pid = excluded.pid,
    pid_started = excluded.pid_started, runs = excluded.runs, command = excluded.command,
    command_started = excluded.command_started, forks = excluded.forks, over = 0

-- name: save_command
UPDATE lease_process
SET command = :command, command_started = :command_started, forks = :forks
WHERE board = :board AND task = :task AND token_epoch = :token_epoch AND token_number = :token_number
AND pid = :pid AND pid_started = :pid_started

-- name: end_lease_process
UPDATE lease_process SET over = 1
WHERE board = :board AND task = :task AND token_epoch = :token_epoch AND token_number = :token_number
AND pid = :pid AND pid_started = :pid_started

-- name: prune_lease_processes
DELETE FROM lease_process WHERE board = :board AND EXISTS (
    SELECT 1 FROM ended_lease AS ended WHERE ended.board = lease_process.board
    AND ended.task = lease_process.task AND ended.token_epoch = lease_process.token_epoch
    AND ended.token_number = lease_process.token_number AND ended.ended < :before)

-- name: tasks_expired
SELECT {task} FROM task WHERE board = :board AND holder IS NOT NULL AND expires < :now
ORDER BY expires, id LIMIT :limit

-- Dependencies.

-- name: add_dependency
INSERT INTO dependency (board, task, on_task) VALUES (:board, :task, :on)

-- name: remove_dependency
DELETE FROM dependency WHERE board = :board AND task = :task AND on_task = :on

-- name: count_waits
UPDATE task SET waits_on = (
    SELECT count(*) FROM dependency CROSS JOIN task AS cause
    WHERE dependency.board = :board AND dependency.task = :task
    AND cause.board = :board AND cause.id = dependency.on_task AND cause.state <> 'complete'
) WHERE board = :board AND id = :task

-- name: settle_dependants
UPDATE task SET waits_on = waits_on + :by
WHERE board = :board
AND id IN (SELECT task FROM dependency WHERE board = :board AND on_task = :task)

-- name: dependencies
SELECT task.id, task.key, task.state FROM dependency CROSS JOIN task
WHERE dependency.board = :board AND dependency.task = :task
AND task.board = :board AND task.id = dependency.on_task ORDER BY dependency.on_task

-- name: dependants
SELECT task.id, task.key, task.state FROM dependency CROSS JOIN task
WHERE dependency.board = :board AND dependency.on_task = :task
AND task.board = :board AND task.id = dependency.task ORDER BY dependency.task LIMIT :limit

-- name: is_upstream
WITH RECURSIVE upstream (id) AS (
    SELECT on_task FROM dependency WHERE board = :board AND task = :task
    UNION SELECT dependency.on_task FROM upstream CROSS JOIN dependency
    WHERE dependency.board = :board AND dependency.task = upstream.id
)
SELECT 1 FROM upstream WHERE id = :cause LIMIT 1

-- name: downstream
WITH RECURSIVE downstream (id) AS (
    SELECT task FROM dependency WHERE board = :board AND on_task = :task
    UNION SELECT dependency.task FROM downstream CROSS JOIN dependency
    WHERE dependency.board = :board AND dependency.on_task = downstream.id
)
SELECT {task} FROM task WHERE board = :board AND id IN (SELECT id FROM downstream) ORDER BY id

-- name: wrong_waits
SELECT key FROM task WHERE board = :board AND waits_on <> (
    SELECT count(*) FROM dependency CROSS JOIN task AS cause
    WHERE dependency.board = :board AND dependency.task = task.id
    AND cause.board = :board AND cause.id = dependency.on_task AND cause.state <> 'complete'
) ORDER BY id LIMIT 100

-- Leases that are over.

-- name: last_ended_lease
SELECT {ended_lease} FROM ended_lease WHERE board = :board AND task = :task
ORDER BY token_epoch DESC, token_number DESC LIMIT 1

-- name: ended_leases
SELECT {ended_lease} FROM ended_lease WHERE board = :board AND task = :task
ORDER BY token_epoch, token_number

-- name: last_lease_of_session
SELECT {ended_lease} FROM ended_lease
WHERE board = :board AND task = :task AND actor = :actor AND session = :session
ORDER BY token_epoch DESC, token_number DESC LIMIT 1

-- name: tasks_lost_by
SELECT DISTINCT task.id, task.key FROM ended_lease
JOIN task ON task.board = ended_lease.board AND task.id = ended_lease.task
WHERE ended_lease.board = :board AND ended_lease.actor = :actor AND ended_lease.session = :session
AND ended_lease.lost = 1 AND ended_lease.acknowledged = 0
AND NOT (task.holder IS NOT NULL AND task.holder = :actor AND task.session = :session)
ORDER BY task.id

-- name: add_ended_lease
INSERT INTO ended_lease
    (board, task, token_epoch, token_number, actor, session, acquired, renewed, expires, renewals,
     ended, cause, lost, acknowledged, seq, stint_started, stint_ended, spending,
     host, worktree, branch)
VALUES
    (:board, :task, :token_epoch, :token_number, :actor, :session, :acquired, :renewed, :expires,
     :renewals, :ended, :cause, :lost, 0, :seq, :stint_started, :stint_ended, '',
     :host, :worktree, :branch)

-- name: acknowledge_lease
UPDATE ended_lease SET acknowledged = 1
WHERE board = :board AND task = :task AND token_epoch = :token_epoch AND token_number = :token_number

-- Stints.

-- All that touch a period, by actor, then by start. Read row by row: they may not fit into memory.
-- name: add_approval
INSERT INTO approval (board, seq, actor, since, until, zone, label, stints, effort, working, digest)
VALUES (:board, :seq, :actor, :since, :until, :zone, :label, :stints, :effort, :working, :digest)

-- name: reopen_approval
UPDATE approval SET reopened = :reopened WHERE board = :board AND seq = :seq

-- name: approvals
SELECT seq, actor, since, until, zone, label, stints, effort, working, digest, reopened FROM approval
WHERE board = :board AND actor = coalesce(:actor, actor) ORDER BY seq

-- Source and usage of a stint are one text; most stints have none.
-- name: stints
SELECT actor, started, ended,
    CASE WHEN source = 'claim' AND tokens IS NULL AND cost IS NULL AND spending = '' THEN NULL
    ELSE source || ',' || coalesce(CAST(tokens AS TEXT), '') || ',' || coalesce(CAST(cost AS TEXT), '')
        || ',' || spending END
FROM ({stints}) AS stints
WHERE ended >= :since AND actor = coalesce(:actor, actor)
ORDER BY actor, started

-- The same, each with its task, in the order of the fields of `WorkedStint`; the scope gives its area.
-- name: stints_and_tasks
SELECT actor, started, ended, task.key, task.scope, task.charge_code, task.billable, source, tokens, cost, spending, seq,
    cause, task.title
FROM ({stints}) AS stints CROSS JOIN task
WHERE ended >= :since AND actor = coalesce(:actor, actor) AND task.board = :board AND task.id = stints.task
ORDER BY actor, started, ended, seq

-- name: stints_of_task
SELECT {stint} FROM stint WHERE board = :board AND task = :task ORDER BY seq

-- name: add_stint
INSERT INTO stint (board, seq, task, actor, started, ended, source, amends, tokens, cost, spending)
VALUES (:board, :seq, :task, :actor, :started, :ended, :source, :amends, :tokens, :cost, :spending)

-- One of the two has the stint.
-- name: save_usage
UPDATE stint SET tokens = :tokens, cost = :cost, spending = :spending
WHERE board = :board AND seq = :number

-- name: save_usage_of_lease
UPDATE ended_lease SET tokens = :tokens, cost = :cost, spending = :spending
WHERE board = :board AND task = :task AND seq = :number

-- name: stints_without_task
SELECT seq FROM stint WHERE board = :board
AND NOT EXISTS (SELECT 1 FROM task WHERE task.board = stint.board AND task.id = stint.task)
UNION ALL SELECT seq FROM ended_lease WHERE board = :board
AND NOT EXISTS
    (SELECT 1 FROM task WHERE task.board = ended_lease.board AND task.id = ended_lease.task)
ORDER BY seq LIMIT 100

-- The ledger.

-- name: add_event
INSERT INTO event
    (board, seq, task, position, at, actor, session, token_epoch, token_number, verb, cause, facts,
     digest, request)
VALUES
    (:board, :seq, :task, :position, :at, :actor, :session, :token_epoch, :token_number, :verb,
     :cause, :facts, :digest, :request)

-- name: events_of_request
SELECT {event} FROM event WHERE board = :board AND seq > :after AND request = :request ORDER BY seq

-- name: events_of_task
SELECT {event} FROM event WHERE board = :board AND task = :task AND position > :after
ORDER BY position LIMIT :limit

-- name: events_of_board
SELECT {event} FROM event WHERE board = :board AND task IS NULL AND position > :after
ORDER BY position LIMIT :limit

-- name: receipts_of_task
SELECT {event} FROM event
WHERE board = :board AND task = :task AND verb IN ('added', 'received') ORDER BY position

-- name: events_before
SELECT {event} FROM event WHERE board = :board AND seq < :before ORDER BY seq DESC LIMIT :limit

-- name: instant_of_event
SELECT seq, at FROM event WHERE board = :board AND seq > :after ORDER BY seq LIMIT 1

-- name: events_after
SELECT {event} FROM event WHERE board = :board AND seq > :after ORDER BY seq LIMIT :limit

-- name: digests_after
SELECT seq, digest FROM event WHERE board = :board AND seq > :after ORDER BY seq LIMIT :limit

-- name: count_events
SELECT count(*), coalesce(max(seq), 0) FROM event WHERE board = :board

-- name: count_task_events
SELECT coalesce(sum(events), 0) FROM task WHERE board = :board

-- name: highest
SELECT
    coalesce((SELECT max(id) FROM task WHERE board = :board), 0),
    coalesce((SELECT max(id) FROM actor WHERE board = :board), 0),
    coalesce((SELECT max(token_epoch) FROM task WHERE board = :board), 0),
    coalesce((SELECT max(at) FROM (
        SELECT max(at) AS at FROM event WHERE board = :board
        UNION ALL SELECT max(renewed) FROM task WHERE board = :board AND holder IS NOT NULL
        UNION ALL SELECT max(at) FROM request WHERE board = :board
    ) AS instants), 0)

-- name: events_without_task
SELECT seq FROM event WHERE board = :board AND task IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM task WHERE task.board = event.board AND task.id = event.task)
ORDER BY seq LIMIT 100

-- name: leases_without_task
SELECT task FROM ended_lease WHERE board = :board
AND NOT EXISTS
    (SELECT 1 FROM task WHERE task.board = ended_lease.board AND task.id = ended_lease.task)
ORDER BY task LIMIT 100

-- What belongs to nothing.
-- name: strays
SELECT 'the note of event', seq FROM note WHERE board = :board AND NOT EXISTS
    (SELECT 1 FROM event WHERE event.board = :board AND event.seq = note.seq AND event.task = note.task)
UNION ALL
SELECT 'an ended lease of task', task FROM ended_lease WHERE board = :board AND NOT EXISTS
    (SELECT 1 FROM task WHERE task.board = :board AND task.id = ended_lease.task)
UNION ALL
SELECT 'a dependency of task', task FROM dependency WHERE board = :board AND (NOT EXISTS
    (SELECT 1 FROM task WHERE task.board = :board AND task.id = dependency.task) OR NOT EXISTS
    (SELECT 1 FROM task WHERE task.board = :board AND task.id = dependency.on_task))
UNION ALL
SELECT 'a name of actor', actor FROM actor_name WHERE board = :board AND NOT EXISTS
    (SELECT 1 FROM actor WHERE actor.board = :board AND actor.id = actor_name.actor)
LIMIT 100

-- Columns that contradict each other: no value shows that.
-- name: wrong_leases
SELECT key FROM task WHERE board = :board AND (
    (holder IS NOT NULL AND (expires IS NULL OR expires <> renewed + ttl))
    OR (holder IS NULL AND (session IS NOT NULL OR acquired IS NOT NULL OR renewed IS NOT NULL
        OR ttl IS NOT NULL OR expires IS NOT NULL OR renewals IS NOT NULL OR reason IS NOT NULL
        OR stint IS NOT NULL OR suspect IS NOT NULL OR host IS NOT NULL OR worktree IS NOT NULL
        OR branch IS NOT NULL))
    OR (item_said IS NULL AND (item_gate IS NOT NULL OR item_locked IS NOT NULL))
) ORDER BY id LIMIT 100

-- name: add_note
INSERT INTO note (board, seq, task, kind, text) VALUES (:board, :seq, :task, :kind, :text)

-- name: notes_of_task
SELECT note.seq, note.kind, note.text, event.at, event.actor, event.session
FROM note JOIN event ON event.board = note.board AND event.seq = note.seq
WHERE note.board = :board AND note.task = :task ORDER BY note.seq

-- name: redact_note
UPDATE note SET text = '' WHERE board = :board AND seq = :seq

-- name: note_text
SELECT text FROM note WHERE board = :board AND seq = :seq AND task = :task

-- name: redactions_of_task
SELECT {event} FROM event WHERE board = :board AND task = :task AND verb = 'redacted' ORDER BY position

-- Those after which nobody else has done anything with the task. What happens by itself is no sign
-- that somebody has looked.
-- name: late_notes
SELECT note.seq, note.kind, note.text, event.at, event.actor, event.session, note.task
FROM note CROSS JOIN event
WHERE note.board = :board AND note.kind = 'late' AND note.text <> ''
AND event.board = :board AND event.seq = note.seq
AND NOT EXISTS (
    SELECT 1 FROM event AS later
    WHERE later.board = :board AND later.task = note.task AND later.seq > note.seq
    AND (later.actor <> event.actor OR later.session <> event.session)
    AND later.verb NOT IN ('received', 'synced', 'lease_ended')
) ORDER BY note.seq DESC LIMIT :limit

-- name: last_note
SELECT text FROM note WHERE board = :board AND task = :task AND kind = :kind
ORDER BY seq DESC LIMIT 1

-- Requests and refusals.

-- name: request
SELECT digest, answer FROM request WHERE board = :board AND actor = :actor AND id = :id

-- name: add_request
INSERT INTO request (board, actor, id, digest, at, answer)
VALUES (:board, :actor, :id, :digest, :at, :answer)

-- name: forget_requests
DELETE FROM request WHERE board = :board AND at < :before

-- name: add_refusal
INSERT INTO refusal (board, id, at, verb, task, actor, session, code, message)
SELECT :board, coalesce(max(id), 0) + 1, :at, :verb, :task, :actor, :session, :code, :message
FROM refusal WHERE board = :board

-- name: forget_refusals
DELETE FROM refusal WHERE board = :board
AND id <= (SELECT max(id) FROM refusal WHERE board = :board) - :kept

-- name: refusals
SELECT id, at, verb, task, actor, session, code, message FROM refusal
WHERE board = :board AND id < :before ORDER BY id DESC LIMIT :limit
