-- What `dibs board grant ROLE` gives: enough for every verb, and no right to change the ledger.
GRANT USAGE ON SCHEMA dibs TO {role};
GRANT SELECT ON ALL TABLES IN SCHEMA dibs TO {role};
GRANT INSERT ON dibs.actor, dibs.actor_name, dibs.session, dibs.task, dibs.dependency,
    dibs.ended_lease, dibs.lease_process, dibs.event, dibs.stint, dibs.allowance, dibs.approval, dibs.note, dibs.request,
    dibs.refusal TO {role};
GRANT UPDATE (name, kind, tier, capabilities, zone) ON dibs.actor TO {role};
GRANT UPDATE (host, worktree, branch, boot, namespace, pid, pid_started, watched, background) ON dibs.session TO {role};
GRANT UPDATE (updated, title, priority, audience, tier, capabilities, constraints, max_attempts, not_before,
    billable, charge_code, scope, state, token_epoch, token_number, holder, session, acquired, renewed, ttl,
    expires, renewals, reason, host, worktree, branch, stint, suspect, assignee, author, preferred, parked_by,
    blocked_on, attempts, rests_until, waits_on, item_said, item_gate, item_locked, head, events, version)
    ON dibs.task TO {role};
GRANT UPDATE (host, boot, namespace, pid, pid_started, runs, command, command_started, forks, over)
    ON dibs.lease_process TO {role};
GRANT UPDATE (epoch, floor, seq, actors, tasks, keys, head, events, paused_by, paused_why)
    ON dibs.board TO {role};
GRANT UPDATE (acknowledged, tokens, cost, spending) ON dibs.ended_lease TO {role};
GRANT UPDATE (tokens, cost, spending) ON dibs.stint TO {role};
GRANT UPDATE (text) ON dibs.note TO {role};
GRANT UPDATE (reopened) ON dibs.approval TO {role};
GRANT UPDATE (system, timeline) ON dibs.home TO {role};
GRANT DELETE ON dibs.actor_name, dibs.dependency, dibs.lease_process, dibs.request, dibs.refusal TO {role};
GRANT EXECUTE ON FUNCTION dibs.arrive TO {role};
