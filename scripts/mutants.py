"""Breaks the code in every known way, on copies, and fails if no test notices.

Every guard is removed once: it then says yes to everything. The other mutations are in a table,
each with the tests that must go red. `make mutants NAME` runs those whose name contains NAME.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
ORDER = "tests/domain/test_guard_order.py"
LEASES = "tests/board/test_leases.py"
LEDGER = "tests/board/test_ledger.py"
IDENTITY = "tests/board/test_identity.py"
SQLITE = "tests/storage/test_sqlite.py"
CLOCK = "tests/storage/test_clock.py"
SCHEMA = "tests/storage/test_schema.py::test_the_schema_refuses"
CLI = "tests/cli/test_cli.py"
LOCKS = "tests/faults/test_locks.py"
FAILOVER = "tests/faults/test_failover.py"
LOST = "tests/faults/test_lost_connections.py"
FORMER = "tests/board/test_moved_boards.py::test_"
HINTS = "tests/faults/test_notifications.py::test_"
CUT_OFF = "tests/faults/test_disconnected_keeper.py"
EXPORT = "tests/board/test_export.py::test_"
FILES = "tests/backlogs/test_files.py::test_"
DISK = "tests/faults/test_disk.py::test_"
FINGERPRINT = "tests/storage/test_fingerprint.py::test_"
REPLACED = "tests/faults/test_replaced_board.py::test_"
MOVING = "tests/board/test_move.py"
SCENARIOS = "tests/acceptance/test_scenarios.py"
LIBRARY = "tests/library/test_library.py::test_"
DEMO = "tests/cli/test_demo.py::test_"
RUN = "tests/workers/test_run.py::test_"
MATCHING = "tests/board/test_matching.py::test_"
DISPATCH = "tests/acceptance/test_dispatch.py::test_"
BAD_INPUT = "tests/cli/test_bad_input.py::test_"
RECOVERY = "tests/board/test_recovery.py::test_"
DEPENDENCIES = "tests/board/test_dependencies.py::test_"
DEPENDENCIES_OF_SCOPES = "tests/board/test_dependencies.py"
LIFECYCLE = "tests/acceptance/test_lifecycle.py::test_"
SYNC = "tests/backlogs/test_sync.py::test_"
KANO = "tests/backlogs/test_kano.py::test_"
WRK_ITEMS = "tests/backlogs/test_wrk.py::test_"
FOLDERS = "tests/backlogs/test_backlog_folders.py::test_"
READINESS = "tests/backlogs/test_graph_readiness.py::test_"
IMPORTS = "tests/backlogs/test_import_readiness.py::test_"
GRAPHS = "tests/backlogs/test_workgraph_sync.py::test_"
KILLED = "tests/faults/test_killed_runs.py::test_"
GUARDING = "tests/board/test_path_access.py::test_"
APPROVALS = "tests/board/test_approvals.py::test_"
RENEWING = "tests/board/test_renewal.py::test_"
COMMITS = "tests/integrations/git/test_commit_guard.py::test_"
FENCE = "tests/integrations/git/test_ref_guard.py::test_"
TABLE_LOCKS = "tests/faults/test_table_locks.py::test_"
ROLES = "tests/storage/test_roles.py::test_"
FOREIGN = "tests/storage/test_foreign_schema.py::test_"
REGISTRY = "tests/board/test_session_registry.py::test_"
HOOKS = "tests/integrations/harness/test_hooks.py::test_"
STATED = "tests/cli/test_stated_process.py::test_"
CONFINED = "tests/faults/test_namespaces.py::test_"
UNINSTALL = "tests/integrations/harness/test_uninstall.py::test_"
SETUP = "tests/faults/test_interrupted_setup.py::test_"
LEFT_BEHIND = "tests/board/test_former_work.py::test_"
RUNNER = "tests/integrations/git/test_git_runner.py::test_"
SETTINGS = "tests/integrations/harness/test_harness_files.py::test_"
HIDDEN = "tests/integrations/git/test_hidden_changes.py::test_"
EDITED = "tests/integrations/harness/test_edited_paths.py::test_"
LIMITS = "tests/cli/test_scope_limits.py::test_"
FILE_LIMITS = "tests/cli/test_file_limits.py::test_"
DISPLAY = "tests/domain/test_display.py::test_"
QUOTING = "tests/integrations/harness/test_quoting.py::test_"
TEXT = "tests/cli/test_bad_text.py::test_"
PICKLING = "tests/library/test_pickling.py::test_"
TRUST = "tests/board/test_trust.py::test_"
MANY = "tests/cli/test_bulk_verbs.py::test_"
CORRECTIONS = "tests/board/test_corrections.py::test_"
ADOPTING = "tests/backlogs/test_adoption.py::test_"
FILES_VERBS = "tests/cli/test_files_verbs.py::test_"
PLACES = "tests/acceptance/test_work_locations.py::test_"
ANSWERS = "tests/acceptance/test_lost_answers.py::test_"


PATIENCE = 1800
"""Seconds after which a run has timed out: no test noticed, and the mutant counts as a survivor."""

TIMED_OUT = "timed out"

NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"


class Mutant(NamedTuple):
    """One way to break one file: the text before and after, and the tests that must notice."""

    name: str
    file: str
    before: str
    after: str
    tests: str


TABLE = [
    # The rules.
    ("a lease is over at its expiry", "domain/model.py", "now <= self.expires", "now < self.expires", LEASES),
    ("the session is not compared", "domain/model.py", " and self.session == caller.holding_session", "", LEASES),
    ("the actor is not compared", "domain/model.py", "self.actor == caller.actor.id and ", "", LEASES),
    ("a harness is not looked at", "domain/model.py", "self.actor.is_human and not self.in_harness", "self.actor.is_human", ORDER),
    ("a subagent holds for itself", "domain/model.py", 'return self.session.partition("/")[0]', "return self.session", LEASES),
    ("the token does not rise", "domain/model.py", "self.number + 1)", "self.number)", LEASES),
    ("a token is compared as text", "domain/guards.py", "tuple(stated) > tuple(task.token)", "str(stated) > str(task.token)", LEASES),
    ("own lease meets the gates", "domain/guards.py", "for name in spec.own_guards if own else", "for name in spec.own_guards if False else", ORDER),
    ("a late note is not kept", "domain/decide/__init__.py", 'if refusal.code in ("lease_lost", "token_ahead") and', "if False and", LEASES),
    ("a renewal does not renew", "domain/events/base.py", "lease.but(renewed=at, renewals=lease.renewals + 1,", "lease.but(renewals=lease.renewals + 1,", LEASES),
    ("renewals are not counted", "domain/events/base.py", "renewals=lease.renewals + 1,", "renewals=lease.renewals,", LEASES),
    ("a holder's write does not renew", "domain/decide/__init__.py", "return Decision((*extend(facts), *events), renews=True)", "return Decision((*extend(facts), *events))", LEASES),
    ("a late renewal is no event", "domain/decide/__init__.py", "facts.late or facts.idle", "facts.idle", LEASES),
    ("a change of ttl is no event", "domain/decide/__init__.py", "if not silent and ttl == lease.ttl:", "if not silent:", LEASES),
    ("the ttl is forgotten", "domain/decide/__init__.py", "ttl = ttl or lease.ttl", "ttl = ttl or facts.rules.ttl_agent", LEASES),
    ("a new lease keeps old times", "domain/events/base.py", "acquired=at,\n            renewed=at,", "acquired=at,\n            renewed=task.updated,", LEASES),
    ("a stint of the dead runs on", "domain/events/base.py", "return now if lease.live(now) else lease.renewed", "return now", LEASES),
    ("an end leaves the lease", "domain/events/base.py", "return task.but(state=self.state, lease=None)", "return task.but(state=self.state)", LEASES),
    ("a takeover is no attempt", "domain/events/base.py", "attempts=task.attempts + (in_progress and self.is_attempt)", "attempts=task.attempts", LEASES),
    ("a handoff is an attempt", "domain/events/tasks.py", "    is_attempt = False\n", "", LEASES),
    ("a start is no attempt", "domain/events/tasks.py", "attempts=task.attempts + 1)", "attempts=task.attempts)", LEASES),
    ("a lost lease is not lost", "domain/events/base.py", "lost=event.takes and ending.session is not None", "lost=False", LEASES),
    ("an assignment is forgotten", "domain/events/base.py", "assignee=None if lease.bound else self.actor", "assignee=None", LEASES),
    ("a reject prefers nobody", "domain/events/tasks.py", "preferred=task.author, author=None", "author=None", LEASES),
    ("a lease is not moved with the clock", "domain/events/board.py", "return task if task.lease is None else task.but(lease=task.lease.shifted(self.by))", "return task", CLOCK),
    ("a release declines nothing", "domain/decide/__init__.py", "if facts.holds or facts.may_bind:\n        return Decision((given_back", "if facts.holds:\n        return Decision((given_back", LEASES),
    ("a loss is not acknowledged", "domain/decide/__init__.py", "if former is not None and former.lost and not former.acknowledged:", "if former is not None and former.lost:", LEASES),
    ("sync: an adopted claim is not named", "cli/files.py", '(report.adopted, "claim", "adopted"),', "", FILES_VERBS + "a_sync_names_the_claims_that_it_adopts_and_heals"),
    ("hooks: another dibs than the one that set them up", "integrations/install/git.py", "return own if own in", "return '' if own in", "tests/integrations/git/test_git_setup.py::test_a_hook_runs_the_dibs_that_set_it_up_also_if_a_variable_led_to_that"),
    ("doctor: a file may end within a page", "storage/sqlite/health.py", 'if missing := -os.stat(path).st_size % connection.pragma("page_size"):', "if missing := 0:", "tests/faults/test_damaged_files.py::test_a_file_that_ends_within_a_page_is_told_by_the_doctor"),
    # Trust.
    ("push: what cannot be checked passes", "cli/guard.py", 'raise refused("push_unchecked", why) from None', "raise", "tests/integrations/git/test_push_guard.py::test_a_push_that_cannot_be_checked_is_refused"),
    ("push: commits on the command line", "integrations/git/push_guard.py", 'commits("--stdin", *known, fed="\\n".join(tips).encode())', "commits(*tips, *known)", "tests/integrations/git/test_push_guard.py::test_a_push_with_more_branches_than_a_command_line_holds_is_checked"),
    ("an index holds anything", "backlogs/index.py", "    if not all(isinstance(one, str) for one in texts):\n", "    if False:\n", FILE_LIMITS + "an_index_with_something_else_than_texts_is_not_read"),
    ("toml: long keys are parsed", "safe_files.py", "if parts > DEPTH:", "if False:", FILE_LIMITS + "a_key_of_too_many_parts_is_found_before_the_file_is_parsed"),
    ("toml: settings have no limit", "board/toml_files.py", "        return toml(text, DEPTH_MAX)\n", "        import tomllib\n\n        return tomllib.loads(text)\n", FILE_LIMITS + "settings_beside_the_board_have_the_same_limit"),
    ("a harness is known by its variables only", "board/identity.py", "if session := known.harness_session(parents):", "if session := '':", "tests/integrations/harness/test_harness_sessions.py::test_a_shell_of_a_harness_without_its_variables_acts_for_no_person"),
    ("who is deep enough is a person", "board/identity.py", "ANCESTORS = 4096", "ANCESTORS = 64", "tests/workers/test_run.py::test_an_agent_of_a_run_is_no_person_a_hundred_processes_further_down"),
    ("who cannot be looked through is a person", "board/identity.py", "if len(parents) == ANCESTORS:", "if False:", IDENTITY),
    ("trailers start programs", "git_runner.py", 'options = ("-c", f"core.commentChar={comment}", f"--git-dir={os.devnull}")', 'options = ("-c", f"core.commentChar={comment}")', "tests/integrations/git/test_trailers.py::test_no_program_of_the_configuration_runs_for_a_trailer_and_comments_stay_below_it"),
    ("what is planted beside the board stays in the way", "safe_files.py", "    if os.path.lexists(part):", "    if False:", TRUST + "a_link_that_an_agent_plants_beside_the_board_is_not_written_through"),
    ("settings are written through a link", "board/configure.py", "    if os.path.islink(path):", "    if False:", TRUST + "settings_that_are_a_link_are_not_written_through"),
    ("the folder of logs may be a link", "workers/child.py", "os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC", "os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC", TRUST + "a_link_among_the_logs_beside_the_board_is_not_written_through"),
    ("a log may be a link", "workers/child.py", "flags | os.O_CREAT | os.O_NOFOLLOW", "flags | os.O_CREAT", TRUST + "a_link_among_the_logs_beside_the_board_is_not_written_through"),
    ("settings that start programs count beside the board", "board/settings.py", "        if is_personal(key):\n            continue\n        try:", "        try:", TRUST + "what_an_agent_writes_beside_the_board_starts_nothing"),
    ("a server that a file names is contacted", "board/locate.py", "if place.url:\n        from dibs.storage.address import parse\n", 'if place.url or settings.proposed.get("url"):\n        from dibs.storage.address import parse\n        place = place.but(url=place.url or settings.proposed["url"])\n', TRUST + "a_server_that_only_a_file_beside_the_board_names_is_not_contacted"),
    ("a local board is made beside a server's", "board/locate.py", 'if "url" in settings.proposed and', "if False and", TRUST + "a_server_that_only_a_file_beside_the_board_names_is_not_contacted"),
    ("a record is followed to any server", "board/locate.py", "if not user.accepts(str(address)):", "if False:", TRUST + "a_forged_record_contacts_nobody"),
    ("a move accepts no server", "board/transfer/move.py", "        accept(board, target)\n", "", TRUST + "a_record_of_a_move_leads_nobody_to_a_server_that_they_have_not_accepted"),
    ("an option leads elsewhere", "storage/address.py", "elif name not in HARMLESS:", "elif False:", TRUST + "an_address_from_a_file_has_no_option_that_weakens_it"),
    ("protection may be weaker", "storage/address.py", "            refuse_weaker(what, name, value)\n", "            pass\n", TRUST + "an_address_from_a_file_has_no_option_that_weakens_it"),
    ("a password is given to any server", "storage/address.py", 'wanted["require_auth"] = SAFE_AUTH', "pass", TRUST + "a_server_from_a_file_gets_no_password_in_the_clear"),
    ("a password ends at a slash", "storage/address.py", r'r"(\w+://)(?:(.*)@)?([^@]*)"', r'r"(\w+://)(?:([^/?]*)@)?(.*)"', TRUST + "no_secret_of_an_address_is_shown"),
    ("a client key is shown", "storage/address.py", '("password", "secret", "scram")', '("password", "secret")', TRUST + "no_secret_of_an_address_is_shown"),
    ("owners are not compared", "safe_files.py", "if not is_ours(owner):", "if False:", TRUST + "a_repository_of_another_user_is_not_read"),
    ("the caller of sudo is a stranger", "safe_files.py", 'or (own == 0 and os.environ.get("SUDO_UID") == str(uid))', "", TRUST + "the_caller_of_sudo_is_not_another_user"),
    ("the board's file may be anybody's", "storage/sqlite/store.py", "            safe_files.check_owner(self.path)\n", "", TRUST + "one_part_of_a_board_of_another_user_is_enough"),
    ("others may write to the user's folder", "safe_files.py", "if mode & (stat.S_IWGRP | stat.S_IWOTH):", "if False:", TRUST + "a_file_of_the_user_that_others_can_write_is_refused"),
    ("a board names any file by its id", "board/user_config.py", "if not self.has_boards or not is_board_id(uid):", "if not self.has_boards:", TRUST + "a_board_cannot_name_a_file_by_its_id"),
    ("an agent sets what is started", "cli/config.py", "    check_person(call)\n    call.refuse_request_id()\n    setting =", "    call.refuse_request_id()\n    setting =", TRUST + "an_agent_changes_no_setting"),
    ("the run of an agent is a person's", "cli/config.py", "    if run:\n", "    if False:\n", TRUST + "the_run_of_an_agent_changes_no_setting_whatever_it_says"),
    ("an agent adopts", "cli/config.py", "    check_person(call)\n    call.refuse_request_id()\n    board, wrong", "    call.refuse_request_id()\n    board, wrong", TRUST + "an_agent_changes_no_setting"),
    ("nobody is asked before adopting", "cli/config.py", "    confirm(call, lines)\n", "", TRUST + "a_person_adopts_what_she_has_seen"),
    ("a setting is written unchecked", "board/configure.py", "        check(toml_files.parse(after, where), where)\n", "", TRUST + "what_is_wrong_is_not_written"),
    ("settings are nested without limit", "board/toml_files.py", "toml(text, DEPTH_MAX)", "toml(text, 10**4)", TRUST + "a_settings_file_has_limits"),
    ("a settings file has any size", "board/toml_files.py", "read_with_stat(path)", "read_with_stat(path, 2**40)", TRUST + "a_settings_file_has_limits"),
    ("a folder that looks bare is a repository", "board/locate.py", "    if not worktree:\n        bare = _bare(start)\n", "    if not worktree or _bare(start):\n        bare = _bare(start)\n", TRUST + "a_folder_that_looks_bare_inside_a_work_tree_is_no_repository"),
    ("a repeat of one's own verb is refused", "domain/decide/__init__.py", "and is_retry(facts):", "and False:", ANSWERS + "a_holder_that_gives_its_verb_again_gets_the_same_answer"),
    ("a repeat keeps its text twice", "domain/decide/__init__.py", 'not text or digest_of(text) == done.get("note") or text == done.get("reason")', "not text", ANSWERS + "a_holder_that_gives_its_verb_again_gets_the_same_answer"),
    ("a repeat forgets a new text", "domain/decide/__init__.py", "Decision(() if same else (Noted(text),),", "Decision((),", ANSWERS + "a_new_text_of_a_repeated_verb_is_kept_as_a_note"),
    ("what was undone is a repeat", "domain/decide/__init__.py", "return not any(event.moves for event in facts.since[1:])", "return True", ANSWERS + "a_verb_that_something_has_undone_is_refused_when_it_is_given_again"),
    ("any token is a repeat", "domain/decide/__init__.py", "or stated not in (None, former.token)", "", ANSWERS + "a_verb_of_another_kind_is_no_repeat"),
    ("a subagent repeats its parent's verb", "domain/decide/__init__.py", "        or facts.caller.is_child\n", "", ANSWERS + "a_verb_of_another_kind_is_no_repeat"),
    ("what was taken away is a repeat", "domain/decide/__init__.py", "        or former.lost\n", "", ANSWERS + "a_person_who_dropped_anothers_task_does_not_repeat_its_holders_verb"),
    ("a reset that ended a live lease is not forced", "domain/decide/recovery.py", "forced=task in interrupted,", "", MANY + "the_log_of_what_was_forced_has_resets_and_forced_retries"),
    ("a forced retry is not in the log", "domain/decide/recovery.py", ", forced=command.force)", ")", MANY + "the_log_of_what_was_forced_has_resets_and_forced_retries"),
    ("a dry run needs a reason", "domain/guards.py", "not spec.needs_reason or facts.is_plan or", "not spec.needs_reason or", MANY + "a_dry_run_needs_neither_a_reason_nor_a_yes"),
    ("a dry run needs a yes", "domain/guards.py", 'facts.command.named()["yes"] or facts.is_plan', 'facts.command.named()["yes"]', MANY + "a_dry_run_needs_neither_a_reason_nor_a_yes"),
    ("hours before the task are accepted", "domain/verbs.py", '"stints.is_over",\n                "stints.is_of_the_tasks_time",', '"stints.is_over",', CORRECTIONS + "hours_before_the_task_existed_are_accepted_only_with_an_option"),
    ("a lease has no place", "domain/events/base.py", "place=self.place or NOWHERE", "place=NOWHERE", PLACES + "two_leases_of_one_session_have_two_places"),
    ("who goes on elsewhere stays where it was", "domain/decide/__init__.py", "        events += placed(facts)\n", "        pass\n", PLACES + "who_goes_on_in_another_worktree_says_so_by_claim_and_start"),
    ("a subagent moves its parent's lease", "board/identity.py", 'if place is None or "/" in who.session:', "if place is None:", PLACES + "a_subagent_elsewhere_does_not_move_the_lease_of_its_parent"),
    ("a commit has no place", "integrations/git/commit_guard.py", "Renew(task.key, here=True)", "Renew(task.key)", PLACES + "a_commit_says_where_the_work_is"),
    ("a place ends with its lease", "domain/events/base.py", "worktree=ending.worktree,\n        branch=ending.branch,", 'worktree="",\n        branch="",', PLACES + "the_place_stays_after_the_end_of_the_lease"),
    ("a release by hand is an attempt", "domain/events/tasks.py", "task.attempts - self.untried", "task.attempts", PLACES + "what_is_given_back_by_hand_counts_as_no_attempt"),
    ("what was reserved takes an attempt back", "domain/decide/__init__.py", "untried = task.state == IN_PROGRESS and not command.tried", "untried = not command.tried", PLACES + "what_was_only_reserved_was_no_attempt_either"),
    ("a run that is stopped is no attempt", "domain/decide/__init__.py", "untried = task.state == IN_PROGRESS and not command.tried", "untried = task.state == IN_PROGRESS", PLACES + "what_an_interrupted_run_gives_back_counts_as_an_attempt"),
    # The ledger.
    ("the chain forgets what was before", "domain/ledger.py", 'digest_of(f"{head}\\n{content}")', "digest_of(content)", LEDGER),
    ("a digest is not compared", "domain/ledger.py", "if entry.digest != chain(head, entry):", "if False:", LEDGER),
    ("a position is not compared", "board/verify.py", "if not count == highest == tx.board.seq == events:", "if False:", LEDGER),
    ("rows are not compared", "domain/ledger.py", 'if kept != folded_value and field not in ("version", "waits_on"):', "if False:", LEDGER),
    ("ended leases are not compared", "board/verify.py", "if tuple(tx.ended_leases(task.id)) != folded.ended:", "if False:", LEDGER),
    ("texts are not compared", "board/verify.py", "(kept.text and ledger.digest_of(kept.text) != digest)", "False", LEDGER),
    ("text is in the ledger", "domain/ledger.py", 'if facts.get("note"):', "if False:", LEDGER),
    ("actors are not compared", "board/verify.py", "if recorded != tx.actors():", "if False:", LEDGER),
    ("instants may fall", "board/verify.py", "faults += time_faults(tx.events())", "", LEDGER),
    ("who forgets expiry", "board/queries.py", "expired=found_at.expired_at(instant),", "expired=False,", LEDGER),
    ("counters are not compared", "board/verify.py", "faults += counter_faults(tx, epoch_in(own))", "", LEDGER),
    ("names are not compared", "board/verify.py", "if sorted(names.get(actor.id, [])) !=", "if False and sorted(names.get(actor.id, [])) !=", LEDGER),
    # Read, decide, write.
    ("a request belongs to no session", "board/requests.py", "payload = [caller.holding_session, command.verb", "payload = [command.verb", LEDGER),
    ("a zombie that renews all hears nothing", "cli/own.py", "(*held, *queries.lost_by(call.board, who))", "held", SCENARIOS + "::test_a_zombie_that_renews_everything_learns_of_its_loss"),
    ("a request is not remembered", "board/execute.py", "if known is not None:", "if False:", LEDGER),
    ("a request is not compared", "board/requests.py", "if known.digest != digest:", "if False:", LEDGER),
    ("a refusal is not logged", "board/execute.py", "if refusal is not None:\n                tx.log_refusal", "if False:\n                tx.log_refusal", LEDGER),
    ("a refused caller is registered", "board/execute.py", "if refusal is None or decision.events:", "if is_new:\n                register(tx, caller)\n                tx.finish()\n                is_new = False\n            if refusal is None or decision.events:", LEDGER),
    ("a takeover looks nowhere", "board/facts/task.py", "raise EvidenceNeeded(worktree_of=ending, task=task and task.key)", "return", SCENARIOS + "::test_a_takeover_names_worktree_branch_and_uncommitted_files"),
    ("a file that was compared with an old row counts", "domain/decide/sync.py", " if not match.outdated", "", SYNC + "the_state_of_a_file_counts_for_nothing_once_its_task_has_changed"),
    ("a token of a file is not compared again", "board/facts/sync.py", "tuple(listed.token) > known and ", "", SYNC + "the_state_of_a_file_counts_for_nothing_once_its_task_has_changed"),
    ("what changed during a sync is not compared again", "backlogs/sync.py", "            self.compare_again(dialect, fresh)\n", "", SYNC + "a_sync_compares_again_what_changed_while_it_ran"),
    ("files: a person's work is guessed dead", "backlogs/diff.py", "or (person is not None and person.is_human)", "", ADOPTING + "a_persons_name_on_an_open_line_is_left_there"),
    ("files: who works by file is not kept", "backlogs/diff.py", "return next(iter(people or ([] if item.gone else known)), None)", "return None", ADOPTING + "a_persons_work_by_file_becomes_her_lease"),
    ("files: a tool's rule ends a person's work", "backlogs/diff.py", "people or ([] if item.gone else known)", "[] if item.gone else known", ADOPTING + "a_persons_work_by_file_becomes_her_lease"),
    ("files: somebody unknown is not asked about", "backlogs/diff.py", "return claimed and free and self.worker is None", "return False", ADOPTING + "work_by_file_of_somebody_unknown_is_a_question"),
    ("files: what is archived is offered", "backlogs/formats/wrk.py", "            if final:\n", "            if False:\n", WRK_ITEMS + "what_is_in_a_folder_of_finished_work_is_not_offered_whatever_its_status"),
    ("files: of two copies any counts", "backlogs/index.py", "    found.sort(key=lambda place: (not place[1].final, not place[1].pointed))\n", "", WRK_ITEMS + "of_two_copies_the_final_one_counts"),
    ("files: two titles are one item", "backlogs/sync.py", "            self.tell_apart(dialect)\n", "", WRK_ITEMS + "another_title_under_the_same_id_is_another_item"),
    ("files: an item never becomes due", "backlogs/index.py", "        due = 0 < self.again <= now\n", "        due = self.again == 1\n", WRK_ITEMS + "an_unchanged_file_is_read_again_when_an_item_in_it_becomes_due"),
    ("files: any file's fault is an item's", "backlogs/backlog.py", "if fault is None and (path == known or is_named(path, task.key)):", "if True:", WRK_ITEMS + "a_fault_is_told_of_the_file_that_has_it"),
    ("files: a block writes another open word", "backlogs/formats/words.py", "if self.shown(task.state) == OPEN and self.state(said) == OPEN:", "if task.state == OPEN and self.state(said) == OPEN:", FOLDERS + "the_file_gets_back_the_word_that_it_had"),
    ("files: a list is restyled", "backlogs/yaml/frontmatter.py", "            if lines is not None:\n", "            if False:\n", FOLDERS + "a_claim_and_a_release_keep_the_style_of_a_list"),
    ("files: a state without a status is forgotten", "backlogs/formats/backlog_md.py", '            return said, kept, ""\n', "            pass\n", FOLDERS + "after_a_lost_database_what_waits_for_people_is_not_offered"),
    ("files: zeros make another id", "backlogs/formats/backlog_md.py", 'part.lstrip("0") or "0" for part', "part for part", FOLDERS + "leading_zeros_and_case_of_ids_mean_nothing"),
    ("files: an attachment gets the key", "backlogs/sync.py", "        self.leave_out_attachments(dialect)\n", "", KANO + "the_file_whose_id_is_the_key_gets_it"),
    ("files: a container is offered", "backlogs/formats/kano.py", "        if type_ and not offered:\n", "        if False:\n", KANO + "containers_are_never_offered"),
    ("files: any uid is meant", "backlogs/index.py", "if ref.casefold().startswith(uid)", "if True", KANO + "a_reference_with_another_uid_names_nothing"),
    ("files: an abandoned task holds back", "backlogs/formats/workgraph.py", "if cause is not None and cause.state == DROPPED:", "if False:", READINESS + "an_abandoned_task_holds_nobody_back"),
    ("files: an evaluation holds nobody back", "backlogs/formats/workgraph.py", "            found.append(judge.id)\n", "            pass\n", READINESS + "an_open_evaluation_holds_back_what_waits_for_the_task"),
    ("import: a pull request is an issue", "backlogs/importers/formats.py", 'if element.fields.get("pull_request") or', "if", IMPORTS + "issues_are_offered_that_are_open_and_not_blocked"),
    ("import: a blocked parent blocks nobody", "backlogs/importers/formats.py", "            after |= dict.fromkeys(parent.after)\n", "", IMPORTS + "beads_are_offered_as_bd_ready_lists_them"),
    ("import: an update takes what is held", "backlogs/importers/importing.py", "    if task.lease is not None:\n        return None, (where", "    if False:\n        return None, (where", IMPORTS + "update_closes_what_was_closed_there_and_says_so"),
    ("files: a problem is reported once", "backlogs/sync.py", "if problems or any(item.lock", "if any(item.lock", "tests/backlogs/test_sync.py::test_a_problem_is_reported_by_every_sync_until_it_is_solved"),
    ("a claim comes before the look for a commit", "cli/own.py", "        check_possible(call.place.repository)\n", "", "tests/cli/test_bulk_verbs.py::test_without_a_commit_no_task_is_claimed_for_a_work_tree"),
    ("files: a question is asked once", "backlogs/sync.py", "if problems or any(item.lock is not None or item.is_claimed for item in items):", "if problems or any(item.lock is not None for item in items):", ADOPTING + "work_by_file_of_somebody_unknown_is_a_question"),
    ("files: a check forgets what is new", "backlogs/sync.py", "len(self.writes | self.backlog.behind(tx, sorted(shows)))", "len(self.backlog.behind(tx, sorted(shows)))", ADOPTING + "a_check_counts_files_of_new_items_with_stale_claims"),
    ("files: another clone's lease is not told of", "backlogs/diff.py", ", warns=self.is_held_elsewhere())", ")", FILES_VERBS + "a_claim_of_what_another_clone_holds_says_so"),
    # The store.
    ("a client runs anybody's triggers", "storage/postgres/store.py", '        pipeline.queue(self.queries["check_tables"], {"tables": TABLES})\n', "", FOREIGN + "no_verb_of_a_superuser_runs_the_code_of_whoever_made_the_board " + FOREIGN + "a_trigger_by_somebody_who_was_granted_it_is_refused"),
    ("init uses anybody's schema", "storage/postgres/store.py", "            self.check_owners(connection, changes=False)\n", "            pass\n", FOREIGN + "init_refuses_a_schema_that_somebody_else_made_to_who_is_no_superuser"),
    ("a copy goes into anybody's schema", "storage/postgres/store.py", "        self.check_owners(connection, changes=True)\n        if not", "        if not", FOREIGN + "a_move_or_a_restore_into_a_foreign_schema_is_refused"),
    ("a schema may hold anything", "storage/postgres/store.py", "            if (kind, name) not in expected:", "            if False:", FOREIGN + "what_dibs_did_not_put_into_its_schema_is_named_before_anything_is_granted"),
    ("the search path leads elsewhere", "storage/sql/postgres.sql", ",\npg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)", "", FOREIGN + "a_function_in_front_of_the_servers_own_is_not_called"),
    ("a read waits for a table for ever", "storage/postgres/transaction.py", '        self._queue("begin_reading", {"wait": self._store.patience()})\n', "", TABLE_LOCKS + "a_locked_table_is_busy_and_names_who_has_it"),
    ("a stale statement is used for ever", "storage/postgres/pipeline.py", "if problem.sqlstate == STALE:", "if False:", TABLE_LOCKS + "a_client_goes_on_after_a_dump_was_loaded"),
    ("a harness waits as long as anybody", "integrations/harness/hooks.py", "self._deadline = monotonic() + hook_timeout(environment)", 'self._deadline = float("inf")', TABLE_LOCKS + "a_hook_of_a_harness_waits_less_than_others_and_lets_through_with_a_warning"),
    ("a commit waits as long as anybody", "cli/call.py", "self._deadline = monotonic() + hook_timeout(os.environ)", 'self._deadline = float("inf")', TABLE_LOCKS + "a_commit_waits_less_than_others_and_obeys_guard_failure"),
    ("the database folds a key", "storage/sql/queries.sql", "lower(key) = :folded", "lower(key) = lower(:folded)", "tests/storage/test_collations.py"),
    ("a role empties notes", "storage/sql/migrations/0001_board.postgres.sql", "THEN (facts::json ->> 'of')::bigint = new.seq ELSE false END", "THEN true ELSE true END", ROLES + "a_role_cannot_empty_a_note_without_an_event_that_says_so"),
    ("a file's notes are emptied", "storage/sql/migrations/0001_board.sqlite.sql", "THEN json_extract(facts, '$.of') = new.seq ELSE 0 END", "THEN 1 ELSE 1 END", SCHEMA),
    ("a role changes every column of a task", "storage/sql/grants.postgres.sql", "GRANT UPDATE (updated, title,", "GRANT UPDATE ON dibs.task TO {role};\nGRANT UPDATE (updated, title,", ROLES + "a_role_has_no_right_to"),
    ("an event needs no task", "storage/sql/migrations/0001_board.sql", "    PRIMARY KEY (board, seq),\n    FOREIGN KEY (board, task) REFERENCES task (board, id)\n", "    PRIMARY KEY (board, seq)\n", SCHEMA),
    ("a note needs no task", "storage/sql/migrations/0001_board.sql", "    FOREIGN KEY (board, seq)  REFERENCES event (board, seq),\n    FOREIGN KEY (board, task) REFERENCES task (board, id)\n", "    FOREIGN KEY (board, seq)  REFERENCES event (board, seq)\n", SCHEMA),
    ("an ended lease needs no task", "storage/sql/migrations/0001_board.sql", "    FOREIGN KEY (board, task) REFERENCES task (board, id),\n    CHECK ((stint", "    CHECK ((stint", SCHEMA),
    ("the board's chain forks", "storage/sql/migrations/0001_board.sql", "CREATE UNIQUE INDEX event_of_board", "CREATE INDEX event_of_board", SCHEMA),
    ("the lock is weakened", "storage/sqlite/store.py", '"BEGIN IMMEDIATE"', '"BEGIN"', SQLITE),
    ("the queue lets everybody in", "storage/sqlite/write_lock.py", "flock(descriptor, LOCK_EX | LOCK_NB)", "pass", SQLITE),
    ("who gave up takes the lock later", "storage/sqlite/write_lock.py", "            if given_up:\n                os.close(descriptor)\n            else:\n                won.release()", "            won.release()", SQLITE),
    ("a fork keeps the lock", "storage/sqlite/write_lock.py", "flock(self._descriptor, LOCK_UN)", "pass", SQLITE),
    ("a dead blocker is named", "storage/sqlite/write_lock.py", " or machine.process(int(pid)) is None", "", SQLITE),
    ("a commit is not synced", "storage/sqlite/store.py", "PRAGMA synchronous = FULL", "PRAGMA synchronous = NORMAL", SQLITE),
    ("references are not checked", "storage/sqlite/store.py", "PRAGMA foreign_keys = ON", "PRAGMA foreign_keys = OFF", SCHEMA),
    ("a version is not compared", "storage/sql/queries.sql", "CASE version WHEN :version THEN version + 1 END", "version + 1", SQLITE),
    ("a failed transaction is kept", "storage/sqlite/store.py", "self._end(commit=error is None)", "self._end(commit=True)", SQLITE),
    ("links are followed", "storage/sqlite/store.py", "if os.path.islink(join(self.folder, name)):", "if False:", SQLITE),
    ("a linked folder is followed", "storage/sqlite/store.py", "if not stat.S_ISDIR(there.st_mode):", "if False:", SQLITE),
    ("any file system will do", "storage/sqlite/store.py", "if kind in UNSAFE_FILE_SYSTEMS:", "if False:", SQLITE),
    ("a newer schema is used", "storage/queries.py", "if found > NEWEST:", "if False:", SQLITE),
    ("a connection crosses a fork", "storage/sqlite/store.py", "if self._pid != os.getpid():", "if False:", SQLITE),
    ("the file is for everybody", "storage/sqlite/store.py", "os.O_NOFOLLOW, 0o600)", "os.O_NOFOLLOW, 0o666)", SQLITE),
    ("the folder is for everybody", "storage/sqlite/store.py", "os.chmod(self.folder, 0o700)", "os.chmod(self.folder, 0o777)", SQLITE),
    ("refusals are kept for ever", "storage/transaction.py", 'self._change("forget_refusals", kept=REFUSALS_KEPT)', "pass", LEDGER),
    ("requests are kept for ever", "storage/transaction.py", 'self._change("forget_requests", before=self.now - REQUEST_KEPT)', "pass", LEDGER),
    ("a board that was begun is a board", "storage/sqlite/store.py", "        if found == 0:\n            self.close()\n            raise errors.no_board(self.folder)\n", "", SCENARIOS + "::test_a_board_that_was_killed_while_it_was_made_can_be_made_again"),
    # The file at the path.
    ("a board that was replaced is written", "storage/sqlite/store.py", "return self._files == self._files_at_path()", "return True", REPLACED + "who_held_a_task_of_a_board_that_was_replaced_has_lost_it"),
    ("a copy over the file is not noticed", "storage/sqlite/store.py", "map(safe_files.file_id, self._names)", "map(file_id, self._names[:1])", REPLACED + "what_is_acknowledged_afterwards_is_in_the_board_that_is_there"),
    ("a replaced board is checkpointed", "storage/sqlite/store.py", "connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)", "pass", REPLACED + "who_closes_a_board_that_was_replaced_writes_nothing_to_the_new_one"),
    ("who waited writes to a replaced board", "storage/sqlite/store.py", "while not store.is_current():", "while False:", REPLACED + "a_board_that_is_replaced_while_a_writer_waits_is_not_written"),
    ("another board is taken for the one that was opened", "storage/sqlite/store.py", "if row[0] != self._uid:", "if False:", REPLACED + "another_board_at_the_same_place_is_not_taken_for_the_one_that_was_opened"),
    ("a lock file that was replaced is a lock", "storage/sqlite/write_lock.py", "if lock.is_at(path):", "if True:", REPLACED + "a_lock_file_that_was_replaced_is_no_lock"),
    ("a keeper waits for a deleted board", "workers/keeper.py", "return problem.code not in TRY_AGAIN", "return False", REPLACED + "a_run_ends_its_work_when_its_board_is_gone"),
    ("who makes a board drops locks", "storage/sqlite/store.py", "os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)", "os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)", SQLITE + "::test_who_makes_or_restores_a_board_drops_no_lock_of_its_own_process"),
    ("a board is restored from itself", "board/transfer/move.py", "exists(target.path) and samefile(target.path, path):", "False:", SQLITE + "::test_the_file_of_the_board_itself_is_no_backup"),
    ("another schema is used", "storage/sqlite/store.py", "if found and made != FINGERPRINTS[found]:", "if False:", FINGERPRINT + "a_board_that_another_schema_made_is_refused_with_the_way_out"),
    ("another schema is used on a server", "storage/postgres/store.py", "if found and made != FINGERPRINTS[found]:", "if False:", FINGERPRINT + "a_board_that_another_schema_made_is_refused_with_the_way_out"),
    ("a process writes on after a migration", "storage/sqlite/store.py", "self._store.check_schema(connection)", "pass", FINGERPRINT + "a_process_of_the_older_dibs_stops_writing_when_a_newer_one_has_migrated"),
    ("a process writes on after a migration of a server", "storage/postgres/transaction.py", "too_new(store.where, version)", "pass", FINGERPRINT + "a_process_of_the_older_dibs_stops_writing_when_a_newer_one_has_migrated"),
    ("a backup may bring anything along", "storage/sqlite/copy.py", "    if strangers:\n", "    if False:\n", FINGERPRINT + "a_backup_with_something_planted_in_it_is_refused"),
    ("a file's schema is trusted", "storage/sqlite/store.py", "connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)", "pass", FINGERPRINT + "nothing_that_a_file_brings_along_is_trusted"),
    ("a file's schema may be written", "storage/sqlite/store.py", "connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)", "pass", FINGERPRINT + "nothing_that_a_file_brings_along_is_trusted"),
    ("a part has a name that can be guessed", "board/transfer/scratch.py", "descriptor, part = locked_part(dirname(path))", 'part = f"{path}.part"; descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)', EXPORT + "nothing_that_waits_at_the_name_of_a_part_is_followed"),
    ("what a killed writer left stays", "backlogs/files.py", "_remove_unused(folder, name)\n", "pass\n", FILES + "what_a_killed_writer_left_is_removed_by_the_next_one"),
    ("what somebody writes is removed", "backlogs/files.py", "and _lock(file):", "and True:", FILES + "what_a_killed_writer_left_is_removed_by_the_next_one"),
    ("a file on its way has a name", "backlogs/files.py", "if os.path.isdir(_OWN_FILES):", "if False:", FILES + "a_writer_that_is_killed_while_it_writes_leaves_nothing"),
    ("a disk with small blocks is not looked at", "storage/sqlite/small_blocks.py", "if disk.f_bavail * disk.f_frsize < ROOM:", "if False:", DISK + "a_nearly_full_disk_with_small_blocks_ends_no_process"),
    ("an index has no blocks", "storage/sqlite/store.py", "allocate(self._names[-1])", "pass", DISK + "a_nearly_full_disk_with_small_blocks_ends_no_process"),
    ("a look that fails while it closes is a bug", "storage/sqlite/store.py", "not self._is_surely_current()", "not self.is_current()", "tests/faults/test_system_calls.py::test_a_board_that_cannot_be_looked_at_is_not_taken_for_one_that_is_not_there"),
    # The clock.
    ("the wall clock is always believed", "storage/sqlite/store.py", "believable = floor <= wall <= floor + YEAR", "believable = True", CLOCK),
    ("the wall clock may fall", "storage/sqlite/store.py", "believable = floor <= wall <= floor + YEAR", "believable = wall <= floor + YEAR", CLOCK),
    ("the wall clock may leap", "storage/sqlite/store.py", "believable = floor <= wall <= floor + YEAR", "believable = floor <= wall", CLOCK),
    ("an anchor outlives its boot", "storage/sqlite/store.py", "return anchor.boot == boot\n", "return True\n", CLOCK),
    ("the floor does not rise", "storage/transaction.py", "board.but(floor=self.now)", "board", CLOCK),
    ("leases stay when the clock is set", "storage/sqlite/store.py", "transaction.shift_leases(by)", "pass", CLOCK),
    # A server.
    ("writers do not take turns", "storage/sql/postgres.sql", "{limits}, pg_advisory_xact_lock({", "{limits}, pg_advisory_xact_lock_shared({", LOCKS + "::test_two_claims_at_once_come_one_after_the_other"),
    ("a transaction's instant is its begin", "storage/sql/postgres.sql", "clock_timestamp()", "now()", LOCKS + "::test_a_claim_that_waited_for_the_lock_has_its_full_time"),
    ("a renewal takes no lock_query", "storage/postgres/transaction.py", 'self._lock_board("lock_board_shared")', "pass", LOCKS + "::test_a_claim_that_meets_a_renewal_waits_for_it_and_gets_the_new_time"),
    ("renewals wait for each other", "storage/sql/postgres.sql", "pg_advisory_xact_lock_shared(", "pg_advisory_xact_lock(", LOCKS + "::test_renewals_of_different_tasks_do_not_wait_for_each_other"),
    ("a restore is a promotion", "storage/postgres/transaction.py", 'return "restore"', 'return "promotion"', FAILOVER + "::test_a_board_in_another_server_ends_every_lease_and_raises_the_epoch"),
    ("a promotion is not noticed", "storage/postgres/transaction.py", 'return "promotion" if timeline != timeline_now else ""', 'return ""', FAILOVER + "::test_a_restore_of_the_server_itself_raises_the_epoch_and_leases_run_on"),
    ("nothing is tried again", "board/retry.py", "if not backoff.sleep_before_retry():", "if True:", LOST + "::test_a_connection_that_is_cut_at_any_statement_is_made_anew"),
    ("a retry has another request id", "board/execute.py", "self._decided(who, command, request))", "self._decided(who, command, PendingRequest(os.urandom(12).hex(), own=own)))", LOST + "::test_whatever_is_cut_off_at_its_commit_is_done_once_and_answered"),
    ("a retry does not ask what became of the first try", "board/execute.py", "return rebuild_from_events(tx, caller, request_id, request.since) if request.own else None", "return None", LOST + "::test_whatever_is_cut_off_at_its_commit_is_done_once_and_answered"),
    ("every id is looked up at once", "board/retry.py", "return None if self.own and self.since is None else self.id", "return self.id", LOST + "::test_an_id_of_our_own_is_looked_up_only_when_it_may_be_known"),
    ("a cut commit is known", "storage/postgres/transaction.py", "unknown = committing and", "unknown = False and", LOST + "::test_who_gives_up_after_a_cut_commit_learns_that_nobody_knows_and_can_ask_again"),
    ("deadlocks are failures", "storage/postgres/transaction.py", 'if state in (*NOT_COMMITTED, "25P04") or', "if", LOST + "::test_the_victim_of_a_deadlock_tries_again"),
    ("a cancelled commit is a success", "storage/postgres/transaction.py", 'notice.sqlstate == "01000"', "False", LOST + "::test_a_commit_that_is_made_to_wait_no_longer_is_asked_for_again"),
    ("a silent writer keeps the lock", "storage/postgres/transaction.py", '"idle": IDLE', '"idle": "0"', LOCKS + "::test_a_writer_that_says_nothing_loses_the_lock"),
    ("a list needs the named board", "board/server_boards.py", 'problem.code != "no_board" or', "True or", "tests/storage/test_postgres.py::test_the_boards_of_a_database_are_listed_though_the_named_one_is_not_there"),
    ("a pooler's sessions are taken for our own", "storage/postgres/store.py", "connection.own = own is not None", "connection.own = True", "tests/faults/test_pooler.py::test_nothing_is_left_in_a_session_that_others_share"),
    ("what was not prepared is taken for prepared", "storage/postgres/pipeline.py", "self._session.prepared.discard(answer.prepares)", "pass", "tests/storage/test_postgres.py::test_what_an_error_kept_from_being_prepared_is_prepared_later"),
    ("an old record wakes a copy", "storage/sql/sqlite.sql", "AND arriving = 1 AND ticket = :ticket", "AND arriving = 1 AND :ticket <> ''", FORMER + "who_was_sent_there_by_an_earlier_move_wakes_no_copy"),
    ("an old record wakes a copy on a server", "storage/sql/migrations/0001_board.postgres.sql", "arriving = 1 AND ticket = encode(sha256(convert_to(word, 'UTF8')), 'hex')", "arriving = 1", FORMER + "who_was_sent_there_by_an_earlier_move_wakes_no_copy"),
    ("a word is its own digest", "storage/sql/migrations/0001_board.postgres.sql", "ticket = encode(sha256(convert_to(word, 'UTF8')), 'hex')", "ticket IN (word, encode(sha256(convert_to(word, 'UTF8')), 'hex'))", "tests/storage/test_roles.py::test_a_role_says_that_a_copy_has_arrived_only_with_the_word_of_its_move"),
    ("a copy that no standby has is a copy", "storage/postgres/copy.py", "        replicated_commit(store, connection),\n        connection.transaction(),", "        connection.transaction(),", LOST + "::test_a_move_whose_commit_is_made_to_wait_no_longer_can_be_run_again[target]"),
    ("a fence that no standby has is a fence", "storage/postgres/copy.py", "with guard, store.connect() as connection, replicated_commit(store, connection):", "with guard, store.connect() as connection:", LOST + "::test_a_move_whose_commit_is_made_to_wait_no_longer_can_be_run_again[source]"),
    ("who follows does not make sure", "board/retry.py", "            copier(source).wait_until_durable(source)\n", "", LOST + "::test_a_move_whose_commit_is_made_to_wait_no_longer_can_be_run_again[source]"),
    ("warnings may be switched off", "storage/sql/postgres.sql", "set_config('client_min_messages', 'warning', true)", "1", LOST + "::test_a_commit_that_is_made_to_wait_no_longer_is_asked_for_again"),
    ("the driver waits without end", "storage/postgres/pipeline.py", "elif time.monotonic() > min(last_data + self.silence, self.deadline):", "elif False:", LOST + "::test_nobody_waits_without_end_for_a_server_that_does_not_answer"),
    ("how a look ends matters", "storage/postgres/transaction.py", '        with suppress(psycopg.Error):\n            pipeline.end("COMMIT")', '        pipeline.end("COMMIT")', LOST + "::test_how_a_look_ends_matters_to_nobody"),
    ("a question is not asked again", "cli/main.py", "if not verb.looks or", "if True or", LOST + "::test_a_question_that_is_cut_off_is_asked_again"),
    ("what was tried in vain is tried again", "board/retry.py", "problem.retries_exhausted = True", "pass", LOST + "::test_a_question_that_nobody_answers_is_not_asked_twice_as_long"),
    ("a transaction's own time is a damage", "storage/postgres/transaction.py", '(*NOT_COMMITTED, "25P04")', "NOT_COMMITTED", LOST + "::test_a_server_that_ends_a_transaction_by_its_own_time_is_reported_as_an_error"),
    ("a role gives a token twice", "storage/sql/migrations/0001_board.postgres.sql", "(new.holder IS DISTINCT FROM old.holder", "(new.holder <> old.holder", "tests/storage/test_roles.py::test_a_role_cannot_let_a_token_fall_or_give_one_twice"),
    ("who meets a change listens by half", "storage/postgres/notifications.py", "    if begun:\n", "    if True:\n", HINTS + "who_meets_a_change_does_not_listen_by_half"),
    ("nobody is given a hint", "storage/postgres/notifications.py", 'Pipeline(session, 0, SILENCE).end(store.queries["notify"], {"board": store.number})', "pass", HINTS + "who_waits_looks_as_soon_as_the_board_changed"),
    ("notifications are given to nobody too", "storage/postgres/transaction.py", "self._lock is not None and not pipeline.result(self._lock)[0][-1]", "self._lock is not None", HINTS + "a_notification_follows_its_change_and_only_if_somebody_listens"),
    ("a hint that fails is a failure", "storage/postgres/notifications.py", "suppress(psycopg.Error)", "suppress(KeyError)", HINTS + "a_notification_that_is_lost_delays_and_harms_nobody"),
    ("a hint is waited for as a change is", "storage/postgres/notifications.py", "Pipeline(session, 0, SILENCE)", "Pipeline(session, 0)", HINTS + "a_server_that_takes_no_notification_is_not_waited_for_long"),
    ("every change gives a hint", "storage/postgres/notifications.py", "if now < store.last_notify + APART:", "if False:", HINTS + "many_changes_of_one_client_are_one_notification"),
    ("every hint is heeded", "storage/postgres/notifications.py", "min(end, session.last_notified + APART)", "0", HINTS + "who_is_hinted_at_all_the_time_looks_now_and_then"),
    ("who has found work listens on", "workers/next.py", "board.store.unlisten()", "pass", HINTS + "who_has_found_work_listens_no_more"),
    ("on a busy board there is no pause", "board/watch.py", "        if rest > 0:\n            board.store.listen(rest)\n        now = change_counter(board)\n        if now != counter or rest <= 0:\n            return now", "        now = change_counter(board)\n        if now != counter or rest <= 0:\n            return now\n        board.store.listen(rest)", "tests/board/test_watch.py::test_a_wait_pauses_before_it_looks_again_though_there_is_a_change"),
    ("a deadline is not kept", "storage/postgres/pipeline.py", "min(self._patience, left)", "self._patience", LOST + "::test_a_deadline_ends_the_wait_for_a_server_that_does_not_answer"),
    ("a silent server is waited for without end", "storage/postgres/pipeline.py", "ready.poll(max(0, min(self._patience, left)))", "ready.poll(40_000)", LOST + "::test_a_server_that_does_not_answer_is_given_up"),
    ("a pipeline ends with a flush", "storage/postgres/pipeline.py", "self._wire.pipeline_sync()", "self._wire.pipeline_sync(); self._wire.send_flush_request()", "tests/faults/test_pooler.py::test_nothing_is_sent_after_the_end_of_a_transaction"),
    ("an outage ends the work", "workers/keeper.py", '"busy", "unreachable", ', '"busy", ', CUT_OFF + "::test_a_keeper_outlives_a_server_that_is_unreachable_for_longer_than_a_command_waits"),
    ("nobody watches the deadline", "workers/keeper.py", "if waited and self._overdue():", "if False:", CUT_OFF + "::test_a_keeper_that_gets_no_answer_stops_the_work_before_the_lease_runs_out"),
    ("an answer is looked for behind a later event", "board/retry.py", "last if self.since is None else min(last, self.since)", "last + 1", LOST + "::test_whatever_is_cut_off_at_its_commit_is_done_once_and_answered"),
    ("a row is changed twice in a statement", "storage/postgres/transaction.py", 'return bool(changes["save_task"]["id"] != changes["settle_dependants"]["task"])', "return False", "tests/storage/test_postgres.py::test_a_row_is_changed_once_in_a_statement"),
    # Guards in front of files, commits and branches.
    ("git: a file system monitor is run", "git_runner.py", '    *("-c", "core.fsmonitor=false"),\n', "", LEFT_BEHIND + "a_work_tree_of_ours_is_looked_at_without_its_filters"),
    ("git: hooks are run", "git_runner.py", '    *("-c", f"core.hooksPath={os.devnull}"),\n', "", RUNNER + "a_work_tree_for_a_task_is_made_with_filters_and_without_hooks"),
    ("git: filters are run", "git_runner.py", "in FILTER and filters:", "in ():", LEFT_BEHIND + "a_work_tree_of_ours_is_looked_at_without_its_filters"),
    ("git: submodules are looked into", "board/former_work.py", ', "--ignore-submodules=all"', "", LEFT_BEHIND + "a_work_tree_of_ours_is_looked_at_without_its_filters"),
    ("git: variables lead elsewhere", "git_runner.py", "around = environment(tree is None, checkout)", "around = environment(True, checkout)", LEFT_BEHIND + "variables_of_git_lead_nowhere_else"),
    ("git: what is missing is fetched", "git_runner.py", '{"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}', "{}", RUNNER + "what_is_missing_of_a_partial_clone_is_not_fetched"),
    ("git: replaced objects are shown", "git_runner.py", '    "GIT_NO_REPLACE_OBJECTS": "1",\n', "", HIDDEN + "replaced_objects_hide_nothing"),
    ("git: grafts are followed", "git_runner.py", '    "GIT_GRAFT_FILE": os.devnull,\n', "", HIDDEN + "grafts_hide_nothing"),
    ("git: what it started outlives its timeout", "git_runner.py", "os.killpg(child, SIGKILL)", "os.kill(child, SIGKILL)", RUNNER + "a_git_that_takes_too_long_is_ended_with_all_that_it_started"),
    ("left behind: every folder is looked at", "board/former_work.py", "    return None\n", "    return Tree(here + '/.git', here)\n", LEFT_BEHIND + "a_folder_of_another_repository_is_not_looked_at"),
    ("left behind: what took the place of a work tree is one", "board/former_work.py", " and opens_into(root, git_dir)", "", LEFT_BEHIND + "a_folder_that_our_repository_does_not_list_is_not_looked_at"),
    ("left behind: every host is this one", "board/former_work.py", "if ending.host != machine.host():", "if False:", LEFT_BEHIND + "a_folder_on_another_host_is_not_looked_at"),
    ("left behind: what failed is nothing uncommitted", "board/former_work.py", "    if status != 0:", "    if False:", LEFT_BEHIND + "a_folder_that_git_cannot_read_is_not_looked_at"),
    ("pushes: replaced objects are taken", "integrations/git/push_guard.py", "if ref.lower().startswith(REPLACE):", "if ref.startswith(REPLACE) and False:", HIDDEN + "a_push_of_replaced_objects_is_refused"),
    ("pushes: what replaces is known", "integrations/git/push_guard.py", "for start in (*NOT_WORK, REPLACE)", "for start in NOT_WORK", HIDDEN + "a_commit_is_not_known_because_it_replaces_another"),
    ("pushes: merges change nothing", "integrations/git/push_guard.py", "        if (verdict.held or verdict.undecided) and commit.merges:\n", "        if commit.merges:\n            return []\n        if verdict.held and commit.merges:\n", HIDDEN + "what_only_a_merge_changes_is_checked"),
    ("pushes: merges undo anything", "integrations/git/push_guard.py", "undone = undone_paths(commit.id, commit.parents)", "undone = frozenset[str]()", HIDDEN + "a_merge_that_leaves_out_what_another_did_is_checked"),
    ("pushes: merges as git makes them are refused", "integrations/git/push_guard.py", "changed[place].difference(*others) & changes_between(parent, commit)", "changed[place] | changes_between(parent, commit)", HIDDEN + "a_merge_as_git_makes_it_changes_nothing_itself"),
    ("pushes: a holder cannot merge", "integrations/git/push_guard.py", "        if commit.merges:\n            found[commit.id]", "        if False:\n            found[commit.id]", HIDDEN + "a_holder_merges_what_it_holds"),
    ("pushes: a shallow clone is whole", "integrations/git/push_guard.py", "    if at is not None:\n        raise GitQueryFailed(", "    if at is None:\n        return\n    if False:\n        raise GitQueryFailed(", HIDDEN + "a_range_in_a_shallow_clone_is_no_check"),
    ("paths: any .git file is a repository", "board/locate.py", "while folder and not _is_known(folder):", "while False:", EDITED + "a_git_file_takes_nothing_out_of_the_work_tree_around_it"),
    ("paths: dots go where the text goes", "board/path_access.py", "for one in dict.fromkeys((normpath(full), full)):", "for one in (normpath(full),):", EDITED + "dots_after_a_link_lead_to_where_the_system_goes"),
    ("paths: links from outside lead nowhere", "integrations/harness/hook_input.py", "for one in spellings(full))", "for one in (full,))", EDITED + "a_link_from_outside_of_the_repository_is_followed"),
    ("paths: a file has one name", "integrations/harness/hook_input.py", "if file.st_nlink == 1 or isdir(full):", "if True:", EDITED + "another_name_of_the_same_file_is_recognised"),
    ("paths: nobody has a home", "integrations/harness/hook_input.py", "([home] if isabs(home) else [])", "[]", EDITED + "a_path_in_the_home_folder_is_recognised"),
    ("a pipe is read as settings", "integrations/install/hook_scripts.py", 'if [ -f "$board/settings.toml" ] && [ -r', "if [ -r", FENCE + "a_pipe_in_the_place_of_the_settings_keeps_no_branch_from_moving"),
    ("guards: a zombie moves branches", "integrations/git/commit_guard.py", "if not seen.verdict.lost or", "if True or", FENCE + "it_cannot_commit_not_even_without_the_other_hooks"),
    ("guards: the work of colleagues is fenced off", "integrations/git/commit_guard.py", "return status == 0 and bool(out.strip())", "return True", FENCE + "the_work_of_colleagues_is_fetched_pulled_and_rebased_onto"),
    ("guards: a zombie commits", "domain/scopes/access.py", "known.lost if action == COMMIT and not mine else ()", "()", COMMITS + "whoever_lost_its_lease_cannot_commit_until_it_says_that_it_knows"),
    ("guards: any path may be touched under a task", "domain/scopes/access.py", "outside.append(path)", "pass", COMMITS + "a_commit_outside_of_ones_own_scope_is_refused"),
    ("guards: no edit is denied", "integrations/harness/hooks.py", "if look.verdict.stops:", "if False:", HOOKS + "an_edit_of_what_another_holds_is_denied_with_a_way_on"),
    ("guards: a busy board opens what is held", "integrations/harness/hooks.py", "keys = several([task.key for task in mine])", "raise", HOOKS + "a_proven_conflict_blocks_also_while_somebody_else_writes"),
    ("guards: an edit is no sign of life", "integrations/harness/hooks.py", "if who is not None and mine else []", "if False else []", HOOKS + "every_call_renews_what_the_session_holds_with_its_own_ttl"),
    ("guards: every renewal is plain", "board/renewal.py", " if is_plain_renewal(task, caller, tx.now, rules)]", "]", RENEWING + "the_short_way_is_gone_only_where_the_rules_say_the_same"),
    ("guards: a claim after a renewal is not synced", "storage/sqlite/fast_path.py", 'self._store.opened.execute("PRAGMA synchronous = FULL")', "pass", RENEWING + "a_claim_after_a_renewal_waits_for_the_disk_as_ever"),
    # Moving.
    ("a copy is the board at once", "board/transfer/move.py", "there.arriving_from(source.where, word)", "there.is_here()", MOVING),
    ("the source is not fenced", "board/transfer/move.py", "tx.fence(target.where, word)", "pass", MOVING),
    ("leases keep the old clock", "board/execute.py", "            tx.shift_leases(event.by)\n", "            pass\n", MOVING),
    ("a restore keeps leases", "board/facts/board.py", "if why == RESTORE else ()", "if False else ()", MOVING),
    ("an epoch may be used twice", "domain/decide/board.py", "max(facts.highest + 1, facts.now // SECOND)", "facts.epoch", MOVING),
    ("any board is replaced", "storage/sqlite/copy.py", "if there != uid or not (is_elsewhere(moved_to, arriving) or replace):", "if False:", MOVING),
    ("a backup overwrites", "board/transfer/scratch.py", "        os.link(part, path)\n", "        os.rename(part, path)\n", EXPORT + "what_is_there_by_the_time_of_its_name_is_not_overwritten"),
    # Identity.
    ("a harness makes no agent", "board/identity.py", "    if harness:\n        what =", "    if False:\n        what =", IDENTITY),
    ("placeholders are names", "domain/checks.py", "in PLACEHOLDERS:", "in ():", IDENTITY),
    ("an end registers who is unknown", "board/execute.py", "is_new = is_new and (bool(decision.sessions) or not command.spec.repeatable)", "pass", REGISTRY + "the_end_of_an_unknown_actors_session_registers_nobody"),
    ("background work registers who is unknown", "domain/decide/sessions.py", "if not facts.is_registered:", "if False:", REGISTRY + "the_end_of_an_unknown_actors_session_registers_nobody"),
    ("a session of a server keeps answers", "board/execute.py", "self.store.remote and not command.spec.repeatable", "self.store.remote", REGISTRY + "the_registry_needs_no_request_ids[postgres]"),
    ("an ended session gets its process back", "board/execute.py", " or command.spec.repeatable:", ":", REGISTRY + "a_session_that_is_over_is_not_judged_by_its_process"),
    ("a sibling that holds something ends", "domain/decide/sessions.py", "if one.name not in facts.holding)", ")", REGISTRY + "after_a_succession_only_the_last_session_is_the_processs"),
    ("a subagent is registered for itself", "domain/decide/sessions.py", "met = command.place.but(actor=caller.actor.id, name=caller.holding_session)", "met = command.place.but(actor=caller.actor.id, name=caller.session)", REGISTRY + "a_subagent_is_met_as_its_parent"),
    ("a kind of name is not compared", "board/identity.py", "if actor.is_human != who.person:", "if False:", IDENTITY),
    ("a case makes another actor", "domain/model.py", "return name.lower()", "return name", IDENTITY),
    ("strict is not strict", "board/identity.py", "    if not strict:\n", "    if True:\n", IDENTITY),
    ("a pid is enough", "board/identity.py", " and s.process == process", "", IDENTITY),
    ("git's address counts everywhere", "board/identity.py", "git_email() if in_person else", "git_email() if True else", IDENTITY),
    # The command line.
    ("escapes are printed", "domain/values.py", "if _is_seen(character) or character in SPACES:", "if True:", SCENARIOS + "::test_escape_sequences_in_a_title_are_shown_not_obeyed"),
    ("held exits 0", "output/error_map.py", '"held": ErrorMapping(HELD,', '"held": ErrorMapping(DONE,', CLI),
    ("a refused command exits 0", "cli/main.py", "return mapping_of(refusal).exit", "return 0", CLI),
    # The library.
    ("an ended lease is believed in", "library/lease.py", "why = self._ended or self._kept.check(ask=ask)", "why = self._kept.check(ask=ask)", LIBRARY + "a_lease_that_was_ended_is_not_believed_in"),
    ("what this process does is not noticed", "library/board.py", "        notify_leases(outcome)\n", "", LIBRARY + "what_is_done_in_this_process_is_known_at_once"),
    ("old news ends a lease", "library/lease.py", "return tuple(token) < tuple(task.token) or (token == task.token and task.lease is None)", "return token != task.token or task.lease is None", LIBRARY + "news_that_is_older_than_the_lease_does_not_end_it"),
    ("a release states no token", "library/lease.py", "build(c.Release, task=self.key, token=self.token or None, note=", "build(c.Release, task=self.key, note=", LIBRARY + "an_old_hold_does_not_end_a_newer_lease_of_its_session"),
    ("an acknowledgement ends a newer lease", "library/lease.py", "        if seen.concerns_me:\n            return records", "        if False:\n            return records", LIBRARY + "an_old_hold_does_not_end_a_newer_lease_of_its_session"),
    ("a loss is not acknowledged at the end", "library/lease.py", "            return self._acknowledge()\n", "            seen = self._look()\n            return records.answer(Outcome(seen.caller, seen.now, seen.task, actors=seen.actors))\n", LIBRARY + "who_lost_a_lease_and_leaves_says_that_it_knows"),
    ("one session is held twice", "library/lease.py", "if other is not None and not other.is_over_in(task):", "if False:", LIBRARY + "a_second_hold_of_one_session_is_refused"),
    ("a lost hold stands in the way", "library/lease.py", "if other is not None and not other.is_over_in(task):", "if other is not None:", LIBRARY + "a_hold_that_was_lost_is_not_in_the_way"),
    ("a hold shortens the lease it found", "library/lease.py", "claimed = self._board.claim(self.key)\n", "claimed = self._board.claim(self.key, ttl=wanted)\n", LIBRARY + "a_lease_that_the_session_had_before_is_left_as_it_was"),
    ("a hold ends the lease it found", "library/lease.py", "if self._had_before and not self.lost.is_set():", "if False:", LIBRARY + "a_lease_that_the_session_had_before_is_left_as_it_was"),
    ("a lease is entered twice", "library/lease.py", "        if self._entered:\n", "        if False:\n", LIBRARY + "a_lease_is_entered_once"),
    ("the typed key is kept", "library/lease.py", "        self.key = seen.task.key\n", "", LIBRARY + "a_lease_has_the_key_that_the_board_writes"),
    ("a loss hides the exception", "library/lease.py", "    except Exception as problem:  # noqa: BLE001 - the caller's", "    except ZeroDivisionError as problem:  # the caller's", LIBRARY + "the_users_own_exception_passes_although_the_lease_is_lost"),
    ("a note to a frozen exception hides it", "library/lease.py", "with suppress(Exception):", "with suppress():", LIBRARY + "the_users_own_exception_passes_although_the_lease_is_lost"),
    ("what cannot be stored hides the exception", "library/lease.py", '.encode("utf-8", "backslashreplace").decode()', "", LIBRARY + "any_exception_can_fail_a_task"),
    ("an interrupt is a failure", "library/lease.py", "failed = isinstance(error, Exception) and not", "failed = not", LIBRARY + "who_is_interrupted_has_not_failed"),
    ("a refused end stops the keeper", "workers/keeper.py", "            outcome = act()\n            self._stopped = True\n", "            self._stopped = True\n            outcome = act()\n", LIBRARY + "an_end_that_is_refused_in_the_block_leaves_the_lease_alive"),
    ("an interrupt on the way in leaves a lease", "library/lease.py", "                run_cleanup(error, self._undo)\n", "                pass\n", LIBRARY + "an_interrupt_on_the_way_in_leaves_no_lease"),
    ("an interrupted release is not tried again", "library/lease.py", "            run_cleanup(error, self.release)\n            raise\n", "            raise\n", LIBRARY + "an_interrupt_around_a_change_leaves_no_lease"),
    ("the block ends with the keeper, then releases", "library/lease.py", "        try:\n            if self._ended is None and error is None:", "        self._kept.stop()\n        try:\n            if self._ended is None and error is None:", LIBRARY + "an_interrupt_on_the_way_out_leaves_no_lease"),
    ("on_lost is joined by itself", "workers/keeper.py", " and thread is not threading.current_thread()", "", LIBRARY + "on_lost_may_release_a_lease_that_the_board_still_has"),
    ("on_lost is called by whoever finds the loss", "workers/keeper.py", "            self.lost.set()\n            self._over.set()\n", "            self.lost.set()\n            self._over.set()\n            if self._on_lost:\n                self._on_lost(why)\n                self._on_lost = None\n", LIBRARY + "on_lost_runs_in_the_keepers_thread_whoever_finds_the_loss"),
    ("the end waits for on_lost", "workers/keeper.py", "thread.join(CALLBACK_SECONDS)", "thread.join()", LIBRARY + "the_end_of_the_block_does_not_wait_for_ever_for_on_lost"),
    ("check never asks", "workers/keeper.py", "        if ask or self._overdue():\n", "        if self._overdue():\n", LIBRARY + "check_asks_the_board_on_request"),
    ("who waited renews all the same", "workers/keeper.py", " or not wanted():", ":", LIBRARY + "who_waited_for_its_turn_looks_again_before_it_renews"),
    ("a lost lease is renewed", "workers/keeper.py", "if self._stopped or self.lost.is_set() or", "if self._stopped or", LIBRARY + "who_waited_for_its_turn_looks_again_before_it_renews"),
    ("a renewal waits past the deadline", "workers/keeper.py", "wait = min(self._patience, duration)", "wait = self._patience", LIBRARY + "a_renewal_waits_for_the_lock_no_longer_than_the_lease_is_believed_in"),
    ("a closed board is used", "library/board.py", "if self._closed and not ending:", "if False:", LIBRARY + "a_closed_board_refuses_use_and_closes_twice"),
    ("a closed board keeps its leases", "library/board.py", "if self._closed and not ending:", "if self._closed:", LIBRARY + "a_lease_can_be_given_back_after_its_board_was_closed"),
    ("a text is its letters", "board/command_builder.py", "    if isinstance(given, str):\n        return (given,)\n", "", LIBRARY + "a_text_is_one_scope_and_not_its_letters"),
    ("any type will do", "domain/checks.py", "    if not isinstance(value, kind):\n", "    if False:\n", LIBRARY + "bad_arguments_are_refused"),
    # The demo.
    ("a line of the demo wraps", "cli/demo.py", "return line[: (columns or COLUMNS) - 1]", "return line", DEMO + "a_line_takes_one_row_of_the_terminal"),
    ("a signal leaves the demo's folder", "cli/demo.py", "    for number in handled:\n        signal.signal(number, end)\n", "", DEMO + "a_signal_ends_every_agent_and_removes_the_folder[SIGTERM]"),
    ("a hangup leaves the demo's folder", "cli/demo.py", "(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)", "(signal.SIGINT, signal.SIGTERM)", DEMO + "a_signal_ends_every_agent_and_removes_the_folder[SIGHUP]"),
    ("a second signal cuts the demo's end short", "cli/demo.py", "            signal.signal(each, signal.SIG_IGN)\n", "            pass\n", DEMO + "a_signal_ends_every_agent_and_removes_the_folder[SIGTERM]"),
    ("agents of the demo outlive it", "demo/agent.py", "    die_with_parent()\n", "", DEMO + "a_signal_ends_every_agent_and_removes_the_folder[SIGKILL]"),
    ("agents of the demo hear Ctrl-C", "demo/crew.py", "            process_group=0,  # Ctrl-C in the terminal must not reach the agents\n", "", DEMO + "the_crew_leaves_no_process_and_no_pipe"),
    ("the demo leaves pipes open", "demo/crew.py", "        with process.stdout as lines:\n            for line in lines:", "        if True:\n            for line in process.stdout:", DEMO + "the_crew_leaves_no_process_and_no_pipe"),
    ("the demo does not say what git said", "cli/demo.py", 'message = f"{os.path.basename(program)} failed: {detail}"', 'message = "the demo needs git"', DEMO + "the_message_of_git_is_printed"),
    ("a full disk is a bad argument", "cli/demo.py", 'if os.strerror(ENOSPC) in detail or "disk is full" in detail:', "if False:", DEMO + "the_message_of_git_is_printed"),
    ("victims die before they worked", "demo/crew.py", "if not key or time.monotonic() - since < WORKED_SECONDS:", "if not key:", DEMO + "a_victim_has_worked_a_bit_and_holds_its_task"),
    ("who holds nothing is killed", "demo/crew.py", 'return key if self._holder(key) == name else ""', "return key", DEMO + "a_victim_has_worked_a_bit_and_holds_its_task"),
    ("two at work at once are not seen", "demo/crew.py", "found += later and other.began < one.until", "found += later and one.until < other.began", DEMO + "two_who_work_at_once_would_be_seen"),
    # A command under a lease.
    ("a failure completes the task", "workers/run.py", "        if status == 0:\n", "        if status is not None:\n", RUN + "a_command_that_fails_is_written_down_with_its_last_words"),
    ("an interrupted command has failed", "workers/run.py", "self.stopped_by or (self.interrupted if status else 0)", "self.stopped_by", RUN + "an_interrupted_command_has_not_failed"),
    ("an interrupt that was survived gives the task back", "workers/run.py", "(self.interrupted if status else 0)", "self.interrupted", RUN + "what_a_command_makes_of_a_signal_is_its_own_affair"),
    ("a rest is always the same", "workers/run.py", "uniform(1 - JITTER, 1 + JITTER)", "uniform(1, 1)", RUN + "the_backoff_doubles_up_to_an_hour_and_is_never_quite_the_same"),
    ("a rest grows for ever", "workers/run.py", "min(HOUR, MINUTE <<", "max(MINUTE, MINUTE <<", RUN + "the_backoff_doubles_up_to_an_hour_and_is_never_quite_the_same"),
    ("a failed try does not rest", "workers/run.py", "note=why, rest=backoff_after(self.task.attempts))", "note=why)", RUN + "a_try_that_did_not_succeed_is_given_back_and_backs_off_until_there_are_no_more"),
    ("a hold that may not end keeps its lease", "library/lease.py", "            run_cleanup(error, self._let_go)\n            raise\n\n    def _abandon", "            raise\n\n    def _abandon", LIBRARY + "an_end_that_is_refused_is_raised_and_the_lease_is_let_go"),
    ("a refused end keeps the lease", "workers/run.py", "                if problem.code not in TRY_AGAIN:\n                    self._give_back(", "                if problem.code not in TRY_AGAIN:\n                    str(", RUN + "an_end_that_the_rules_refuse_gives_the_task_back"),
    ("a failed start keeps the claim", "workers/run.py", '            self._give_back(f"not started: {error}")\n', "", RUN + "a_command_that_turns_out_to_be_none_gives_the_claim_back"),
    ("an end is not tried again", "workers/run.py", "self.machine.boottime() >= until or self._should_end():", "True:", RUN + "an_end_that_cannot_be_written_down_is_tried_again"),
    ("who waits to write an end down cannot be interrupted", "workers/run.py", "self.machine.boottime() >= until or self._should_end():", "self._should_end() is None or self.machine.boottime() >= until:", RUN + "an_end_that_could_not_be_written_down_is_reported"),
    ("a command that ended its lease is ended", "workers/run.py", "            with suppress(Refused):\n                self.given_up = self._own_end()\n", "            pass\n", RUN + "a_command_that_ended_its_lease_itself_may_go_on"),
    ("an own end is written down once more", "workers/run.py", "                self.given_up = self._own_end()\n                if", "                if", RUN + "a_command_may_end_its_lease_itself"),
    ("a takeover is an own end", "workers/run.py", "ended is None or ended.lost or", "ended is None or", RUN + "who_loses_the_lease_ends_with_everything_that_it_started"),
    ("a lost lease ends nothing", "workers/run.py", "            self._end_group(signal.SIGTERM)\n", "", RUN + "a_run_that_stood_still_ends_what_it_started_when_it_goes_on"),
    ("who ignores the end lives on", "workers/run.py", "                self.child.signal(signal.SIGKILL)\n", "", RUN + "a_run_that_gets_sigterm_gives_the_task_back"),
    ("who left the group lives on", "workers/run.py", "            end_survivors(self.machine, self.behind, self.options.patience)\n", "            pass\n", RUN + "who_loses_the_lease_ends_with_everything_that_it_started"),
    ("a run that is told to end passes nothing on", "workers/run.py", "            self.stopped_by = number\n            self._end_group(number)\n", "            self.stopped_by = number\n", RUN + "a_run_that_gets_sigterm_gives_the_task_back"),
    ("a stopped run leaves its command running", "workers/run.py", "            self.child.signal(signal.SIGSTOP)  #", "            pass  #", RUN + "who_is_stopped_at_the_terminal_stops_the_command_and_continues_it"),
    ("a continued run leaves its command stopped", "workers/run.py", "                self.child.signal(number)\n        elif", "                pass\n        elif", RUN + "who_is_stopped_at_the_terminal_stops_the_command_and_continues_it"),
    ("the session is not tied to the run", "workers/run.py", "self.who if keys - {named} else self.who.but(", "self.who if True else self.who.but(", RUN + "the_session_of_a_run_inside_a_run_ends_with_the_inner_one"),
    ("a session with other tasks is tied to the run", "workers/run.py", "self.who if keys - {named} else", "self.who if False else", RUN + "a_session_with_other_tasks_does_not_end_with_the_run"),
    ("a renewal unties the session", "workers/run.py", "who = self.who.but(place=None, behind=None)", "who = self.who.but(behind=None)", RUN + "the_session_of_a_run_inside_a_run_ends_with_the_inner_one"),
    ("two runs of one session are one", "domain/facts.py", "lives if lives is not None else kept.token", "False and kept.token", RUN + "two_runs_of_one_session_are_two"),
    ("who cannot be seen is not run", "domain/facts.py", "kept.token == self.task.token and self.live", "False", ORDER),
    ("a former lease of who cannot be seen is run", "domain/facts.py", "kept.token == self.task.token and self.live", "True", ORDER),
    ("a run's process is not kept", "board/execute.py", "        tx.keep_process(task, caller)\n", "        pass\n", RUN + "a_person_runs_a_task_once_at_a_time_and_learns_which_process_it_is"),
    ("a dead run stands behind the lease for good", "board/execute.py", "            if facts.lives.get(kept.behind.process) is False:\n", "            if False:\n", RUN + "a_claim_by_hand_after_the_run_was_killed_is_the_sessions_own_again"),
    ("nobody looks whether a run lives", "board/facts/task.py", "        if unseen:\n            raise", "        if False:\n            raise", RUN + "who_was_killed_can_run_its_task_again_at_once"),
    ("a run that has ended is on until its process is gone", "board/execute.py", "    elif task.lease is None:\n        tx.end_process", "    elif False:\n        tx.end_process", STATED + "a_run_that_has_ended_is_over_although_its_process_lives"),
    ("only the session's process counts", "storage/sql/queries.sql", "    AND behind.over = 0\n", "    AND behind.over = 2\n", RUN + "a_lease_ends_with_its_run_also_if_the_session_holds_another_task"),
    ("what a dead run left lives on beside the next", "board/liveness.py", "        if cause == GONE and ends_left:\n", "        if False:\n", KILLED + "what_a_killed_run_left_is_ended_before_the_same_holder_runs_again"),
    ("who hides its mark is not found", "board/liveness.py", "        found |= dict.fromkeys(members)\n", "        pass\n", KILLED + "what_hides_its_mark_is_ended_by_the_session_of_its_command"),
    ("any session of that number is the run's", "machine.py", "reused = known != started", "reused = False", KILLED + "nothing_is_ended_that_is_not_provably_of_the_run"),
    ("a number is never given again", "machine.py", "reused = not forks or self.forks() - forks >= self._pid_max() * 3 // 4", "reused = False", KILLED + "nothing_is_ended_that_is_not_provably_of_the_run"),
    ("any boot has the run's sessions", "board/liveness.py", "is_here = (run.process.boot, run.process.namespace) == here and UNKNOWN not in here", "is_here = True", KILLED + "nothing_is_ended_that_is_not_provably_of_the_run"),
    ("the board names the session that is ended", "board/liveness.py", "    if is_here and leads_for(machine, run, found):\n", "    if is_here:\n", KILLED + "the_board_cannot_name_any_process_for_the_command_of_a_run"),
    ("a child of anybody is the run's command", "board/liveness.py", "return machine.parent(run.command) == run.process.pid and ", "return ", KILLED + "the_board_cannot_name_any_process_for_the_command_of_a_run"),
    ("a dead parent is the run", "board/liveness.py", " and bool(machine.lives(run.process))", "", KILLED + "the_board_cannot_name_any_process_for_the_command_of_a_run"),
    ("the command is not known to the board", "workers/run.py", "        self._record_command(self.child.pid)\n", "", KILLED + "what_hides_its_mark_is_ended_by_the_session_of_its_command"),
    ("the run of another board is nobody's", "board/identity.py", "if is_agents_run(machine, one.pid)), 0)", "if False), 0)", RUN + "a_run_of_another_board_is_known_without_its_variables"),
    ("every run of another board is an agent's", "board/identity.py", '    return "--agent" in named or (not named and machine.has_variable(pid, "DIBS_AGENT"))', "    return True", RUN + "a_persons_run_of_another_board_makes_nobody_an_agent"),
    ("a run that a variable names is nobody's", "board/identity.py", ' or (not named and machine.has_variable(pid, "DIBS_AGENT"))', "", RUN + "a_run_of_another_board_is_known_without_its_variables"),
    ("an agent of a run may be a person", "board/identity.py", "        if part and not run.person:\n", "        if False:\n", RUN + "an_agent_that_a_run_started_is_no_person_whatever_it_says"),
    ("a person's run makes agents", "board/identity.py", "        if part and not run.person:\n", "        if part:\n", RUN + "a_persons_own_run_makes_nobody_an_agent"),
    ("a session of processes says nothing", "board/identity.py", "in above or is_in_session(machine, run.behind)", "in above", RUN + "an_agent_that_a_run_started_is_no_person_whatever_it_says"),
    ("a run of another board says nothing", "board/identity.py", "    if marked and agent and not is_known:\n", "    if False:\n", RUN + "a_run_of_another_board_is_known_by_its_variables"),
    ("a hold states no process", "library/lease.py", "pid=self._own_pid(rules))", "pid=None)", STATED + "a_script_that_was_killed_inside_a_hold_is_shown_as_stale_and_taken_over"),
    ("anybody's process may be stated", "machine.py", "return found if own and same and", "return found if same and", STATED + "the_process_of_another_user_or_namespace_is_a_usage_error"),
    ("a process of any namespace may be stated", "machine.py", "return found if own and same and", "return found if own and", STATED + "the_process_of_another_user_or_namespace_is_a_usage_error"),
    ("people have a process", "board/identity.py", '    if who.person:\n        raise bad_argument(f"{who.name} is a person', '    if False:\n        raise bad_argument(f"{who.name} is a person', STATED + "a_person_states_no_process"),
    ("a subagent runs under its parent's lease", "workers/run.py", "    if slash:\n", "    if False:\n", RUN + "a_subagent_runs_nothing_under_its_parents_lease"),
    ("a person's command is an agent's", "workers/run.py", 'if n not in ("DIBS_AGENT", "DIBS_SESSION", "DIBS_ITEM")', "if n", RUN + "a_persons_command_is_nobodys_agent"),
    ("a command outlives a killed run", "workers/child.py", "        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)\n", "", RUN + "a_run_that_is_killed_takes_its_command_with_it_and_the_rest_is_found"),
    ("the command stays in our group", "workers/child.py", "start_new_session=True", "start_new_session=False", RUN + "an_interrupted_command_has_not_failed"),
    ("output comes at the end", "workers/child.py", "        return source.read(CHUNK)\n", "        return source.readall()\n", RUN + "output_passes_through_while_the_command_runs"),
    ("who holds the output open is waited for", "workers/child.py", '            if self._status is not None and not poll.poll(0):\n                return b""\n', "            pass\n", RUN + "nobody_waits_for_what_the_command_left_behind"),
    ("slow readers miss the rest", "workers/run.py", "(self.child.has_output and not self.hurry)", "False", RUN + "who_reads_slowly_misses_nothing"),
    ("nobody reads, and the command goes on", "workers/child.py", "                if not write_all(to, chunk):\n                    break\n", "                write_all(to, chunk)\n", RUN + "who_stops_reading_stops_the_command"),
    ("a log for everybody", "workers/child.py", "os.O_CLOEXEC, 0o600, dir_fd=within", "os.O_CLOEXEC, 0o666, dir_fd=within", RUN + "output_is_kept_for_its_owner_alone"),
    ("any mark is ours", "machine.py", 'if wanted in _read(f"/proc/{pid}/environ").split("\\0")', 'if wanted in _read(f"/proc/{pid}/environ")', RUN + "a_process_of_another_run_is_not_a_survivor_of_this_one"),
    ("survivors are only asked", "board/liveness.py", "((signal.SIGTERM, patience), (signal.SIGKILL, KILLED))", "((signal.SIGTERM, patience),)", RUN + "a_run_that_is_killed_takes_its_command_with_it_and_the_rest_is_found"),
    ("options of the command are ours", "cli/main.py", "ours + given[:position] + after[len(ours) :]", "after + given[:position]", RUN + "what_is_after_the_dashes_is_the_commands_own"),
    ("who hides its mark lives on", "workers/run.py", "            self.child.signal(signal.SIGKILL)  # those", "            pass  # those", RUN + "who_hides_its_mark_ends_with_the_group"),
    ("a run is not renewed", "workers/run.py", "        self.keeper.start()\n", "", RUN + "the_lease_is_renewed_while_the_command_lives"),
    ("a claim inside a run unties the session", "board/identity.py", "return marked if marked is not None and marked in", "return marked if False and marked in", RUN + "the_session_lives_as_long_as_the_run_also_when_the_command_claims"),
    ("a mark from elsewhere ties a session", "board/identity.py", "return marked if marked is not None and marked in ancestors(around.machine) else None", "return marked", IDENTITY),
    ("a person has a process under a run", "board/identity.py", "None if person else run_above(around)", "run_above(around)", IDENTITY),
    # Dispatch.
    ("dispatch: an assignment counts as work", "storage/sql/queries.sql", "holder = :actor AND session IS NOT NULL", "holder = :actor", MATCHING + "what_is_assigned_and_not_taken_up_counts_against_no_limit"),
    ("dispatch: all together have no limit", "board/matching.py", "min(left - len(starts), ", "min(left, ", MATCHING + "each_task_is_matched_once_within_all_limits"),
    ("dispatch: who is coming does not count", "board/matching.py", "agent.max - held[agent] - waiting)", "agent.max - held[agent])", MATCHING + "who_was_started_and_has_not_claimed_yet_counts"),
    ("dispatch: overlapping scopes start at once", "board/matching.py", "other.id == task.id or meets(board, task, other, work)", "other.id == task.id", MATCHING + "two_tasks_of_overlapping_scopes_are_not_started_at_once"),
    ("dispatch: who rests is started", "board/matching.py", "free > 0 and agent.name not in resting", "free > 0", MATCHING + "nothing_is_offered_to_an_agent_in_backoff"),
    ("dispatch: a pause stops nothing", "board/matching.py", "        if paused:\n", "        if not paused and paused:\n", MATCHING + "a_paused_board_offers_nothing_and_says_who_paused_it"),
    ("dispatch: a person is registered as an agent's table says", "board/identity.py", "if kind == AGENT and folded", "if folded", MATCHING + "an_agent_is_registered_as_the_settings_say_and_a_person_is_not"),
    ("dispatch: capabilities are not in the ledger", "domain/events/board.py", "if actor.capabilities else ()", "if not actor else ()", MATCHING + "an_agent_is_registered_as_the_settings_say_and_a_person_is_not"),
    ("dispatch: a worker starts what it swept", "workers/pool.py", "line.entry.verb in STARTING_VERBS", "line.key", MATCHING + "a_worker_that_sweeps_has_not_started_what_it_swept"),
    ("dispatch: an agent never rests longer", "workers/pool.py", "FIRST_BACKOFF * 2**count", "FIRST_BACKOFF", MATCHING + "an_agent_whose_workers_cannot_begin_backs_off_ever_longer"),
    ("dispatch: trouble is said again and again", "workers/dispatch.py", "if self._trouble != problem.code:", "if True:", MATCHING + "a_board_that_cannot_be_used_is_reported_once_and_tried_again"),
    ("dispatch: two emit at a time", "workers/notify.py", "                flock(file, LOCK_EX | LOCK_NB)\n", "                pass\n", MATCHING + "only_one_notifies_at_a_time_and_nothing_is_sent_twice"),
    ("dispatch: everything is told again", "workers/notify.py", "return int(text[0]) if text and text[0].isdigit() else 0", "return 0", MATCHING + "only_one_notifies_at_a_time_and_nothing_is_sent_twice"),
    ("dispatch: what was before the first start is told", "workers/notify.py", "if os.fstat(file).st_size == 0:", "if not file:", DISPATCH + "a_command_gets_what_needs_a_person_once_also_after_a_death"),
    ("dispatch: a last try is not told", "workers/notify.py", 'entry.verb == e.Released.verb and entry.event.named()["gives_up"]', "False", DISPATCH + "a_command_gets_what_needs_a_person_once_also_after_a_death"),
    ("dispatch: who drains starts more", "workers/dispatch.py", "if not self._draining and not self._is_idle(counter):", "if not self._is_idle(counter):", DISPATCH + "who_gets_sigterm_starts_nothing_more_and_waits_for_its_workers"),
    ("dispatch: a second signal is not heard", "workers/dispatch.py", "                        elif self._draining:\n", "                        elif not self.pool:\n", DISPATCH + "who_gets_sigterm_twice_leaves_the_workers_who_carry_on_by_themselves"),
    ("dispatch: it looks all the time", "workers/dispatch.py", "if not self._draining and not self._is_idle(counter):", "if not self._draining:", MATCHING + "where_nothing_fits_a_look_is_repeated_after_a_while_or_a_change"),
    ("dispatch: a change is not looked at", "workers/dispatch.py", "return pulse == counter and ", "return ", MATCHING + "where_nothing_fits_a_look_is_repeated_after_a_while_or_a_change"),
    ("dispatch: the dead are left lying", "workers/dispatch.py", "        self._sweep()\n        if", "        if", DISPATCH + "old_claims_of_the_dead_are_healed_on_the_first_tick_with_one_line"),
    ("dispatch: a pause is said again and again", "workers/dispatch.py", "if found.paused != self._paused:", "if found.paused or self._paused:", DISPATCH + "a_paused_board_is_swept_and_nothing_is_started_until_it_is_resumed"),
    ("dispatch: wrong settings end it", "workers/dispatch.py", '            self._report("settings", f"settings not reloaded: {problem}", code=problem.code)\n            return\n', "            raise\n", DISPATCH + "settings_are_read_anew_on_a_signal_and_wrong_ones_change_nothing"),
    ("dispatch: a person is started", "board/matching.py", "if actor is not None and actor.is_human:", "if actor is not None and not actor:", DISPATCH + "a_persons_name_is_no_agent"),
    ("dispatch: logs pile up", "workers/pool.py", "                os.unlink(worker.log)", "                str(worker.log)", DISPATCH + "ready_work_is_started_within_the_agents_limit_and_carried_on"),
    ("dispatch: a worker imports what lies about", "workers/pool.py", 'sys.executable, "-P", "-m"', 'sys.executable, "-m"', DISPATCH + "what_is_in_the_repository_is_neither_imported_nor_taken_for_settings"),
    ("dispatch: settings say who a worker is", "board/settings.py", "if name.startswith(RESERVED):", "if not name:", BAD_INPUT + "settings_that_cannot_be_right_stop_every_command"),
    # Recovery.
    ("recovery: the dead need a second look", "domain/decide/recovery.py", "    if death is not None:\n        return Change(task, (lease_ended(facts, task, death.cause),))\n", "", RECOVERY + "a_dead_process_needs_no_second_look"),
    ("recovery: the living are suspected", "domain/decide/recovery.py", "    if lease.live(facts.now):\n        return None\n    if lease.suspect", "    if lease.suspect", RECOVERY + "evidence_counts_only_for_the_lease_as_it_was_seen"),
    ("recovery: one look is enough", "domain/decide/recovery.py", "return Change(task, suspect=facts.now)", "return Change(task, (lease_ended(facts, task, EXPIRED),))", RECOVERY + "who_renews_after_the_first_look_is_not_ended"),
    ("recovery: there is no grace", "domain/decide/recovery.py", "if facts.now < lease_ends(", "if False and lease_ends(", RECOVERY + "a_sweep_first_suspects_and_ends_a_grace_later"),
    ("recovery: silence is death", "domain/decide/recovery.py", "(lease.ttl if alive else 0)", "0", RECOVERY + "a_process_that_lives_is_given_one_more_ttl"),
    ("recovery: tries without end", "domain/decide/recovery.py", "gives_up=may_give_up and used_up", "gives_up=False", RECOVERY + "attempts_used_up_make_a_swept_task_failed"),
    ("recovery: a retry gives up", "domain/decide/recovery.py", "gives_up=may_give_up and used_up", "gives_up=used_up", RECOVERY + "a_retry_fails_nothing_downstream_whatever_was_tried"),
    ("recovery: to reserve is to try", "domain/decide/recovery.py", "task.state == IN_PROGRESS and task.attempts >=", "task.attempts >=", RECOVERY + "what_was_only_reserved_has_not_been_tried_once_more"),
    ("recovery: an agent's assignment outlives its lease", "domain/decide/recovery.py", "unassigns=not lease.bound and not facts.actor(lease.actor).is_human", "unassigns=False", RECOVERY + "a_persons_assignment_bars_agents_after_a_sweep_an_agents_does_not"),
    ("recovery: a person's assignment ends with its lease", "domain/decide/recovery.py", " and not facts.actor(lease.actor).is_human", "", RECOVERY + "a_persons_assignment_bars_agents_after_a_sweep_an_agents_does_not"),
    ("recovery: the dead worked on", "domain/decide/recovery.py", "silent = idle or death_evidence(task, facts.deaths) is not None", "silent = idle", RECOVERY + "a_dead_process_needs_no_second_look"),
    ("recovery: a retry ends the living", "domain/decide/recovery.py", "        not lease.live(facts.now) or death_evidence(task, facts.deaths) is not None\n", "        True\n", RECOVERY + "retry_frees_what_the_dead_hold_downstream_and_leaves_the_living " + LIFECYCLE + "retry_frees_what_the_dead_hold_downstream_and_nothing_else"),
    ("recovery: a retry leaves the late", "domain/decide/recovery.py", "not lease.live(facts.now) or death_evidence(task, facts.deaths) is not None", "death_evidence(task, facts.deaths) is not None", RECOVERY + "retry_frees_what_the_dead_hold_downstream_and_leaves_the_living"),
    ("recovery: a retry leaves the dead", "domain/decide/recovery.py", "not lease.live(facts.now) or death_evidence(task, facts.deaths) is not None", "not lease.live(facts.now)", RECOVERY + "retry_frees_what_the_dead_hold_downstream_and_leaves_the_living"),
    ("recovery: every force raises", "domain/decide/recovery.py", "raised = command.force and used_up", "raised = command.force", RECOVERY + "a_forced_retry_raises_nothing_while_attempts_are_left"),
    ("recovery: dropped is reset", "domain/decide/recovery.py", "kept = task.state == DROPPED or (", "kept = (", RECOVERY + "complete_tasks_downstream_stay_without_redo_and_dropped_ones_always"),
    ("recovery: complete is always redone", "domain/decide/recovery.py", "(task.state == COMPLETE and not command.redo)", "False", RECOVERY + "complete_tasks_downstream_stay_without_redo_and_dropped_ones_always"),
    ("recovery: complete is never redone", "domain/decide/recovery.py", "task.state == COMPLETE and not command.redo", "task.state == COMPLETE", RECOVERY + "complete_tasks_downstream_stay_without_redo_and_dropped_ones_always"),
    ("recovery: the untouched are reset", "domain/decide/recovery.py", "if not kept and e.reset_task(task) != task:", "if not kept:", RECOVERY + "complete_tasks_downstream_stay_without_redo_and_dropped_ones_always"),
    ("recovery: nobody was interrupted", "domain/decide/recovery.py", "overruled=held_by_another(task, facts.caller)", "overruled=False", RECOVERY + "everyone_interrupted_is_named"),
    ("recovery: a reset is for everybody", "domain/decide/recovery.py", "(anew, *(kept_from_others(facts, command, task) if is_named else ()))", "(anew,)", RECOVERY + "a_person_who_resets_for_herself_is_not_overrun " + LIFECYCLE + "what_a_person_reset_for_herself_is_not_started_by_agents_that_keep_asking"),
    ("recovery: all below is kept, too", "domain/decide/recovery.py", "if is_named else ()))", "))", RECOVERY + "only_the_named_tasks_are_kept_from_others"),
    ("recovery: a second parker is named", "domain/decide/recovery.py", "if command.park and task.parked_by is None:", "if command.park:", RECOVERY + "who_parked_a_task_first_stays_named"),
    ("liveness: people are looked at", "board/liveness.py", "if lease.kind != HUMAN and (key", "if (key", RECOVERY + "people_have_no_process"),
    ("liveness: every boot is this one", "board/liveness.py", "    if process.boot != here:\n", "    if False:\n", RECOVERY + "another_boot_is_death_where_there_is_one_kernel_only"),
    ("liveness: another host's boot is death", "board/liveness.py", "return REBOOTED if one_kernel and sure else None", "return REBOOTED if sure else None", RECOVERY + "another_boot_is_death_where_there_is_one_kernel_only[postgres]"),
    ("liveness: any namespace is ours", "board/liveness.py", "if process.namespace != machine.namespace() or UNKNOWN", "if UNKNOWN", RECOVERY + "another_pid_namespace_is_another_host"),
    ("liveness: doubt is death", "board/liveness.py", "return REBOOTED if one_kernel and sure else None", "return REBOOTED if one_kernel else None", RECOVERY + "when_in_doubt_another_boot_is_no_death[sqlite-boot-1-boot-2-True]"),
    ("liveness: a boot that nobody read is a boot", "machine.py", "return boot != UNKNOWN and not", "return not", RECOVERY + "when_in_doubt_another_boot_is_no_death"),
    ("liveness: a container's boot is the kernel's", "machine.py", "return boot != UNKNOWN and not boot.startswith(OWN_BOOT)", "return boot != UNKNOWN", RECOVERY + "when_in_doubt_another_boot_is_no_death"),
    ("liveness: an unknown boot is this one", "board/liveness.py", " or UNKNOWN in (here, process.namespace):", ":", RECOVERY + "when_in_doubt_another_boot_is_no_death"),
    ("a file over the boot id is the kernel's", "machine.py", 'f"{OWN_BOOT}{found}" if over else found', "found", CONFINED + "a_live_lease_with_a_process_is_neither_taken_nor_swept"),
    ("/proc of other pids is ours", "machine.py", 'return os.readlink("/proc/self") == str(os.getpid())', 'return bool(os.readlink("/proc/self"))', CONFINED + "the_processes_of_another_namespace_are_not_taken_for_ours"),
    ("a time namespace has the host's time", "machine.py", "time.clock_gettime_ns(time.CLOCK_BOOTTIME) - self._time_shift()", "time.clock_gettime_ns(time.CLOCK_BOOTTIME)", CONFINED + "the_boards_clock_goes_on_and_is_not_moved"),
    ("a time namespace has the host's starts", "machine.py", "return int(stat[19]) - round(", "return int(stat[19]) - 0 * round(", CONFINED + "a_live_lease_with_a_process_is_neither_taken_nor_swept"),
    ("who cannot tell the boot replaces the anchor", "storage/sqlite/store.py", "if anchor is not None and is_certain(anchor.boot) and not is_certain(boot):", "if False:", CLOCK),
    ("who cannot tell the boot believes any anchor", "storage/sqlite/store.py", "return floor <= shown and (", "return True or (", CLOCK),
    ("the clock of a time namespace is believed", "storage/sqlite/store.py", "(machine.knows_boottime() or shown <= machine.wall() + MINUTE)", "True", CLOCK),
    ("liveness: a pid is a process", "machine.py", "return None if shifted and self._time_shift() else found == process", "return found is not None", IDENTITY + "::test_the_processes_above_are_listed_with_their_starts"),
    ("liveness: old evidence counts", "domain/facts.py", "return death if (death.token, death.renewed) == (task.token, lease.renewed) else None", "return death", RECOVERY + "evidence_counts_only_for_the_lease_as_it_was_seen"),
    ("liveness: a claim does not look", "board/execute.py", 'if problem.code == "held" and', "if False and", RECOVERY + "a_claim_that_meets_the_dead_takes_over_at_once"),
    ("next: nobody counts what is held", "board/facts/queue.py", "held = 0 if command.most is None else", "held = 0 if True else", DEPENDENCIES + "next_does_not_exceed_the_most_that_an_actor_may_hold"),
    ("next: a pause is not looked at", "board/facts/queue.py", "paused=who_paused(tx)", 'paused=""', DEPENDENCIES + "paused_is_not_a_failure_and_a_claim_goes_on"),
    ("next: the rules are not asked", "domain/guards.py", "for offer in facts.offers if refusal_of(offer) is None", "for offer in facts.offers", DEPENDENCIES + "an_assignment_is_not_taken_up_beside_another_session_that_has_its_paths"),
    ("next: assignments wait their turn", "board/facts/queue.py", "for task in tx.tasks_assigned_to(actor.id):", "for task in ():", DEPENDENCIES + "next_gives_first_what_is_assigned_then_what_came_back_to_its_author"),
    ("next: authors wait their turn", "board/facts/queue.py", "for task in tx.tasks_preferred_by(actor.id):", "for task in ():", DEPENDENCIES + "next_gives_first_what_is_assigned_then_what_came_back_to_its_author"),
    ("next: what came back is always ready", "board/facts/queue.py", "        if tx.is_ready(task.id):\n", "        if True:\n", DEPENDENCIES + "what_came_back_to_its_author_is_not_given_before_its_time"),
    ("next: parked is ready", "storage/sql/readiness.sql", " AND parked_by IS NULL AND", " AND", DEPENDENCIES + "ready_is_one_predicate"),
    ("next: assigned is ready", "storage/sql/readiness.sql", " AND assignee IS NULL\n", "\n", DEPENDENCIES + "ready_is_one_predicate"),
    ("next: held is ready", "storage/sql/readiness.sql", "state = 'open' AND holder IS NULL AND", "state IN ('open', 'in_progress') AND", DEPENDENCIES + "ready_is_one_predicate"),
    ("next: waiting is ready", "storage/sql/readiness.sql", " AND waits_on = 0 AND", " AND", DEPENDENCIES + "ready_is_one_predicate"),
    ("next: too early is ready", "storage/sql/readiness.sql", "{ready} AND coalesce(not_before, 0) <= :now AND", "{ready} AND", DEPENDENCIES + "ready_is_one_predicate"),
    ("next: resting is ready", "storage/sql/readiness.sql", " AND coalesce(rests_until, 0) <= :now\n", "\n", DEPENDENCIES + "ready_is_one_predicate"),
    ("depend: a task waits for itself", "board/facts/queue.py", "    if on.id == task.id:\n        return (task.key, task.key)\n", "", DEPENDENCIES + "a_cycle_is_refused_and_shown"),
    ("depend: cycles are made", "board/facts/queue.py", "    if not tx.is_upstream(task.id, on.id):\n        return ()\n", "    return ()\n", DEPENDENCIES + "a_cycle_is_refused_and_shown " + LIFECYCLE + "dependencies_that_are_made_at_once_make_no_cycle"),
    ("reset: only is all", "board/facts/queue.py", "    if not command.only:\n", "    if True:\n", RECOVERY + "only_the_named_tasks_with_an_option"),
    ("reset: comes into scopes", "board/facts/queue.py", "return contested(tx, facts, subject.id) if receiver or command.mine else facts", "return facts", RECOVERY + "reset_comes_into_nobodys_scope"),
    ("reset: stands in its own way", "board/facts/queue.py", "ends = {task.id for task in facts.many}", "ends: set[TaskId] = set()", RECOVERY + "reset_comes_into_nobodys_scope"),
    ("sweep: writes for nothing", "workers/sweep.py", "    if not seen.deaths and not over and all(suspected(task) for task in expired):\n        return None\n", "", RECOVERY + "where_everybody_lives_nothing_is_written"),
    ("sweep: suspects nobody", "workers/sweep.py", " and all(suspected(task) for task in expired)", "", RECOVERY + "a_sweep_first_suspects_and_ends_a_grace_later"),
    ("sweep: the dead's children live on", "board/liveness.py", "if lease.task in evidence.deaths and", "if False and", RECOVERY + "what_is_left_of_the_dead_is_ended_before_their_lease"),
    ("sweep: a stopped run's command lives on", "workers/sweep.py", "if lease.task in over:", "if False:", RECOVERY + "what_is_stopped_too_long_loses_its_command_before_its_lease"),
    ("a claim leaves the command of the dead running", "board/execute.py", 'return kill_orphans_of_dead(self, command.named()["task"]).deaths', "from dibs.board.liveness import evidence_for, leases_of; return evidence_for(self, leases_of(self, command.task)).deaths", RECOVERY + "whoever_takes_from_the_dead_ends_what_is_left_of_them_first"),
    ("sweep: ends commands too early", "workers/sweep.py", "    return now >= lease_ends(", "    return True or lease_ends(", RECOVERY + "where_everybody_lives_nothing_is_written"),
    ("run: begins beside the former command", "workers/run.py", "            self._end_former()\n", "", KILLED + "what_a_stopped_run_left_at_work_is_ended_before_a_claim_of_its_task_begins"),
    ("processes of ended leases are kept for ever", "storage/transaction.py", 'self._change("prune_lease_processes", before=self.now - PROCESSES_KEPT)', "pass", STATED + "the_process_of_an_ended_lease_is_forgotten_after_thirty_days"),
    ("processes of running leases are pruned", "storage/sql/queries.sql", "AND ended.ended < :before)", "AND ended.ended < :before) OR board = :board", STATED + "the_process_of_an_ended_lease_is_forgotten_after_thirty_days"),
    ("a partial file stays behind", "board/transfer/scratch.py", "    remove_left_behind(dirname(path), PART, PART_END)\n", "", EXPORT + "the_partial_file_of_a_killed_process_is_removed_by_the_next_one_in_that_folder"),
    ("a partial file in use is removed", "board/transfer/scratch.py", "        with suppress(OSError):  # where files cannot be locked, nothing is removed either\n            flock(descriptor, LOCK_EX)\n", "", EXPORT + "the_partial_file_of_a_killed_process_is_removed_by_the_next_one_in_that_folder"),
    ("run: a renewal ties what the session claimed elsewhere", "workers/run.py", "who = self.who.but(place=None, behind=None)", "who = self.tied.but(behind=None)", LIFECYCLE + "what_a_session_claims_beside_its_run_does_not_end_with_the_run"),
    ("a swept holder is not named", "board/outcome.py", ', getattr(event, "former", None)', ",", LIFECYCLE + "a_killed_agents_task_is_offered_by_the_next_next_which_says_whose_it_was"),
    ("an emptied board is made anew", "storage/sqlite/store.py", 'raise errors.corrupt(self.path, "it is empty")', "pass", BAD_INPUT + "a_board_that_was_emptied_is_damaged_and_not_made_anew"),
    ("an interrupted init is damage", "storage/sqlite/store.py", ' and last_holder(self.lock) not in ("", *CREATIONS)', "", BAD_INPUT + "an_empty_file_that_an_interrupted_init_left_becomes_a_board"),
    ("a closed output is no loss", "cli/main.py", "raise OSError(EBADF, os.strerror(EBADF))", "pass", BAD_INPUT + "a_closed_standard_output_loses_the_output_of_the_real_command"),
    ("several keys are no keys", "cli/call.py", ' or each.options.get("nargs") in SEVERAL', "", BAD_INPUT + "bad_input_is_refused_clearly_and_changes_nothing"),
    ("scopes: who is late is renewed", "domain/decide/__init__.py", " or (facts.late and facts.rivals)", "", DEPENDENCIES + "a_late_renewal_is_refused_where_somebody_came_into_the_scope"),
    ("scopes: an assignment is always free", "domain/guards.py", "(facts.late or facts.may_bind) and not ends", "facts.late and not ends", DEPENDENCIES + "an_assignment_is_not_taken_up_beside_another_session_that_has_its_paths"),
    ("scopes: people widen into anything", "board/facts/task.py", "return more or command.spec.takes", "return command.spec.takes", DEPENDENCIES + "nobody_widens_the_scope_of_a_held_task_into_what_is_held"),
    # Files.
    ("files: a gate does not keep it from being offered", "storage/sql/migrations/0001_board.sql", "AND coalesce(item_gate, '') = ''", "AND 1 = 1", SYNC + "nobody_begins_an_item_before_what_it_waits_for_is_taken_in"),
    ("files: a lock does not keep it from being offered", "storage/sql/migrations/0001_board.sql", "AND coalesce(item_locked, '') = ''", "", GRAPHS + "a_claim_whose_agent_lives_is_respected"),
    ("files: a state in a file ends a lease", "domain/decide/sync.py", " or task.lease is not None else state", " else state", SYNC + "a_file_moves_only_what_nobody_holds"),
    ("files: what is behind is news", "backlogs/diff.py", "if self.behind_on_state() is not None and not self.is_lost():", "if False:", SYNC + "a_file_from_an_old_checkout_is_behind_and_is_brought_up_to_date"),
    ("files: what is behind stays behind", "backlogs/diff.py", "behind = bool(self.behind_on_state())", "behind = False", SYNC + "a_file_from_an_old_checkout_is_behind_and_is_brought_up_to_date"),
    ("files: another board is followed", "backlogs/diff.py", "if pointer is None or pointer.board == self.ground.board:", "if True:", SYNC + "a_lease_that_names_another_board_is_reported_and_never_followed"),
    ("files: an expired lease comes back", "backlogs/diff.py", "until is None or until < self.ground.now or ", "", SYNC + "an_expired_lease_in_a_file_does_not_come_back"),
    ("files: a lost token is given again", "board/execute.py", "            if isinstance(command, c.Sync):\n", "            if False:\n", SYNC + "a_lost_database_comes_back_from_the_files_with_keys_and_live_leases"),
    ("files: the file is not read before a claim", "backlogs/backlog.py", "return self.refresh(board, who, task)[1]", "return ()", SYNC + "an_item_that_was_finished_elsewhere_since_it_was_listed_cannot_be_claimed"),
    ("files: what is offered is not compared", "backlogs/backlog.py", "changed, more = self.refresh(board, who, task)", "changed, more = False, ()", SYNC + "next_offers_what_its_file_lets_begin"),
    ("files: an unknown item is not looked for", "backlogs/backlog.py", "        report = sync(self, board, who)\n", "        from dibs.backlogs.report import Report; report = Report()\n", SYNC + "an_item_that_nobody_has_read_yet_is_found_by_its_claim"),
    ("files: every renewal is written", "backlogs/writeback.py", "return 2 * (item.expires - record.now) < item.pointer.ttl", "return True", SYNC + "a_renewal_is_shown_when_half_of_the_ttl_is_over"),
    ("files: a copy is a second task", "backlogs/sync.py", "and counts[item.ref] == path", "", SYNC + "the_same_item_in_two_files_is_one_task"),
    ("files: an item is begun before what it waits for is there", "backlogs/sync.py", "item=listed.item.but(gate=NOT_YET)", "item=listed.item", SYNC + "nobody_begins_an_item_before_what_it_waits_for_is_taken_in"),
    ("files: a cycle is taken in", "backlogs/sync.py", "item.but(after=after[item.ref])", "item", SYNC + "a_cycle_in_the_files_ends_and_is_reported"),
    ("files: a cut command is not made good", "backlogs/sync.py", "shows = (self.shows | self.behind) - self.gone", "shows = self.shows - self.gone", SYNC + "a_command_cut_before_its_file_is_made_good_by_the_next_sync"),
    ("files: a step is told twice", "backlogs/formats/kano.py", "return any(tells(line, step) for line in lines)", "return False", KANO + "the_end_clears_the_record_and_keeps_the_owner_and_the_token"),
    ("files: an empty section is no gate", "backlogs/formats/kano.py", "if not document.section(title)", "if False", KANO + "an_empty_section_is_the_ready_gate"),
    ("files: claims of the dead stay in a graph", "backlogs/formats/workgraph.py", "heals = True", "heals = False", GRAPHS + "old_graphs_with_stale_claims_heal_with_one_summary_line"),
    ("files: the lock of a graph is not taken", "backlogs/formats/workgraph.py", "return locked(root, LOCK_WAIT, self._folder)", "return super().alone(root)", "tests/backlogs/test_workgraph_sync.py::test_the_graphs_own_lock_is_taken_while_it_is_written"),
    # Installed, and removed again.
    Mutant("uninstall: any name is ours", "board/board_files.py", "if re.fullmatch(pattern, name)", "if True", f"{UNINSTALL}files_of_others_in_the_boards_folder_stay_and_are_named"),
    Mutant("uninstall: others' files are ours", "board/board_files.py", "            and found.st_uid == os.geteuid()\n", "", f"{UNINSTALL}a_file_of_another_user_beside_the_board_stays"),
    Mutant("uninstall: another user's folder", "board/board_files.py", "if os.fstat(top.descriptor).st_uid != os.geteuid():", "if False:", f"{UNINSTALL}a_board_in_the_folder_of_another_user_is_refused"),
    Mutant("uninstall: a linked folder is followed", "board/board_files.py", " | os.O_NOFOLLOW", "", f"{UNINSTALL}a_folder_that_is_a_link_is_refused"),
    Mutant("uninstall: a link is a file of ours", "board/board_files.py", "follow_symlinks=False", "follow_symlinks=True", f"{UNINSTALL}a_link_beside_the_board_is_neither_followed_nor_removed"),
    Mutant("setup: a copy of settings is readable", "integrations/install/file_changes.py", "BY_UMASK if rights is None else PRIVATE", "BY_UMASK", f"{SETUP}a_setup_that_was_killed_anywhere_is_made_whole_by_the_next[fchmod]"),
    Mutant("setup: written before all is on the disk", "integrations/install/file_changes.py", "        self._steps.append(lambda: os.replace(own, path))", "        os.replace(own, path)", f"{SETUP}on_a_full_disk_a_setup_is_74_and_nothing_is_written"),
    Mutant("setup: a refused change is not taken back", "integrations/install/file_changes.py", "for undo in reversed(self._undo):", "for undo in ():", f"{SETUP}on_a_full_disk_a_setup_is_74_and_nothing_is_written"),
    Mutant("setup: what the killed wrote stays", "integrations/install/file_changes.py", "        remove_left_behind(path)\n", "", f"{SETUP}a_setup_that_was_killed_anywhere_is_made_whole_by_the_next"),
    Mutant("setup: a hook is kept twice", "integrations/install/git.py", " or is_same(join(self.folder, name), path)", "", f"{SETUP}a_setup_that_was_killed_anywhere_is_made_whole_by_the_next"),
    Mutant("setup: a board that was begun is one", "cli/setup.py", "state == MISSING and not call.place.server", "not board_folder(call) and not call.place.server", f"{SETUP}a_setup_that_was_killed_anywhere_is_made_whole_by_the_next"),
    Mutant("unreadable: every guard lets it through", "integrations/unreadable.py", 'get("guard_failure") == REFUSE', 'get("guard_failure") == "never"', f"{HOOKS}a_board_that_cannot_be_read_warns_or_refuses_as_the_setting_says"),
    Mutant("background: a claim forgets it", "storage/sql/queries.sql", "ELSE session.watched END\n", "ELSE session.watched END, background = excluded.background\n", "tests/integrations/harness/test_harness_sessions.py::test_the_end_knows_what_went_on_when_the_agent_last_rested"),
    Mutant("manifest: is written after the files", "integrations/install/harness.py", "    manifest.stage(files)\n    stage(changes, files)\n", "    stage(changes, files)\n    manifest.stage(files)\n", f"{SETUP}a_setup_that_was_killed_anywhere_is_made_whole_by_the_next[rename]"),
    Mutant("manifest: what was there counts as ours", "integrations/install/json_edit.py", "        if name not in value:\n", "        if True:\n", f"{SETTINGS}any_settings_are_merged_and_given_back_to_the_byte"),
    Mutant("manifest: without a record a file is ours", "integrations/install/text_edit.py", "created = record is not None and record.before is None", "created = record is None or record.before is None", f"{SETTINGS}without_a_record_only_our_own_lines_go_and_that_is_said"),
    Mutant("manifest: that of another setup is overwritten", "integrations/install/manifest.py", "PRIVATE, seen=self._seen)", "PRIVATE)", f"{SETTINGS}a_manifest_that_another_setup_changed_meanwhile_is_not_overwritten"),
    Mutant("manifest: everybody may read it", "integrations/install/manifest.py", "new, PRIVATE, seen", "new, seen", f"{SETTINGS}the_manifest_is_private_like_what_it_keeps_a_copy_of"),
    Mutant("manifest: a table goes with what others put in", "integrations/install/text_edit.py", " and data_of(text, path)[TABLE] == {KEY: []}:", ":", f"{SETTINGS}what_a_person_added_to_the_sandbox_stays_where_it_was_put"),
    Mutant("manifest: without a record the hooks path is lost", "integrations/install/git.py", "else self._unrecorded(forwards_to)", 'else ""', "tests/integrations/git/test_git_setup.py::test_without_the_manifest_the_folder_of_hooks_that_was_set_is_set_again"),
    Mutant("output: a lost output is nothing", "cli/main.py", "    return code or lost", "    return code", f"{CLI}::test_a_change_whose_output_cannot_be_written_is_73_and_was_made"),
    Mutant("output: a warning keeps the answer back", "cli/main.py", '    with suppress_output_errors():\n        print(f"dibs: warning', '    if True:\n        print(f"dibs: warning', f"{CLI}::test_a_warning_that_cannot_be_written_keeps_no_answer_back"),
    # Paths, guards and hours.
    Mutant("paths: a rival's live lease bars", "domain/scopes/access.py", "if barred is not None:", "if False:", f"{GUARDING}a_path_is_held_as_long_as_the_lease_is_live"),
    Mutant("paths: what is outside one's scope", "domain/scopes/access.py", "            outside.append(path)", "            pass", f"{GUARDING}an_area_means_its_globs"),
    Mutant("paths: an expired lease does not bar", "domain/facts.py", "return not own and now <= self.expires", "return not own", f"{GUARDING}a_path_is_held_as_long_as_the_lease_is_live"),
    Mutant("paths: who lost its lease does not commit", "domain/scopes/access.py", "known.lost if action == COMMIT and not mine else (),", "(),", f"{GUARDING}who_lost_its_lease_and_holds_nothing_does_not_commit_until_it_knows"),
    Mutant("paths: an allowance is for one actor", "board/path_access.py", "tuple(one for one in allowed if one.actor == actor)", "tuple(allowed)", f"{GUARDING}a_person_lets_somebody_touch_what_another_holds_for_a_while"),
    Mutant("paths: an allowance ends", "storage/sql/queries.sql", "allowance.until >= :now", "allowance.until >= 0 AND :now > 0", f"{GUARDING}a_person_lets_somebody_touch_what_another_holds_for_a_while"),
    Mutant("paths: areas are read", "domain/scopes/policy.py", "if not any(pattern in self.areas for pattern in scope):", "if True:", f"{GUARDING}an_area_means_its_globs"),
    Mutant("paths: links are followed", "board/path_access.py", ", name)), realpath(one))", ", name)),)", f"{GUARDING}a_path_is_what_it_is_within_the_repository"),
    Mutant("hours: an open stint", "domain/verbs.py", '"approval.has_nothing_open", ', "", f"{APPROVALS}nothing_is_approved_while_a_stint_of_it_is_open"),
    Mutant("hours: nobody approves the own", "domain/verbs.py", '"approval.is_anothers", ', "", f"{APPROVALS}hours_are_not_approved_by_whoever_or_too_early"),
    Mutant("hours: approved once", "domain/verbs.py", '"approval.has_nothing_open", "approval.is_not_approved",', '"approval.has_nothing_open",', f"{APPROVALS}a_period_is_approved_once_until_somebody_opens_it_again"),
    Mutant("hours: what is approved is compared", "board/stints.py", "return self.now == PeriodTotals", "return True or self.now == PeriodTotals", f"{APPROVALS}what_was_approved_is_compared_with_the_stints_as_they_are"),
    Mutant("hours: rows of approvals are verified", "board/stints.py", "[] if kept == recorded else", "[] if kept is not recorded else", f"{APPROVALS}an_approval_that_was_changed_is_found"),
    Mutant("pickling: a value", "domain/values.py", "        return tuple(self)\n", "        return (tuple(self),)\n", f"{PICKLING}every_kind_of_value_can_be_pickled_and_copied"),
    Mutant("pickling: a refusal", "domain/refusals.py", "return _without_init, (type(self), self.args), self.__dict__", "return type(self), self.args, self.__dict__", f"{PICKLING}a_refusal_of_any_kind_stays_what_it_is"),
    Mutant("scopes: steps are counted", "domain/scopes/overlap.py", "        if self.left < 0:\n", "        if self.left is None:\n", f"{LIMITS}what_was_decided_before_the_steps_were_used_up_counts"),
    Mutant("scopes: undecided counts as overlapping", "board/facts/task.py", "            doubts[one] = refusals.TOO_LONG\n", "            verdicts[one] = False\n", f"{LIMITS}an_overlap_that_takes_too_long_to_find_out_counts_as_one"),
    Mutant("scopes: undecided paths are told", "board/path_access.py", "undecided(verdict.undecided) if verdict.undecided else None", "None", f"{LIMITS}an_edit_that_cannot_be_judged_in_time_obeys_the_setting"),
    Mutant("scopes: classes are few", "domain/checks.py", "    _check_classes(path)\n", "", f"{LIMITS}a_scope_has_few_and_short_classes"),
    Mutant("limits: depth", "safe_files.py", "    raise Unreadable(DEEP)\n", "    return value\n", f"{FILE_LIMITS}a_bad_dibs_toml_is_reported_and_opens_no_guard"),
    Mutant("limits: size", "safe_files.py", "if before.st_size > limit:", "if before.st_size < 0:", f"{FILE_LIMITS}a_bad_dibs_toml_is_reported_and_opens_no_guard"),
    Mutant("limits: type", "safe_files.py", "if not stat.S_ISREG(found.st_mode):", "if False:", f"{FILE_LIMITS}only_a_regular_file_is_read"),
    Mutant("limits: depth of items", "backlogs/yaml/scalars.py", "    if depth == DEPTH:", "    if depth < 0:", f"{FILE_LIMITS}an_item_file_that_is_nested_too_deeply_is_reported_and_the_rest_goes_on"),
    Mutant("limits: depth of lines", "backlogs/formats/workgraph.py", "                shallow(fields)\n", "                pass\n", f"{FILE_LIMITS}a_line_that_is_nested_too_deeply_is_left_alone_and_the_rest_goes_on"),
    Mutant("limits: unknown areas count as overlapping", "board/facts/task.py", "            if unknown:\n", "            if not ground:\n", f"{FILE_LIMITS}nobody_knows_what_an_area_means_that_cannot_be_read"),
    Mutant("quoting: variation selectors", "domain/values.py", "character.isprintable() and character not in UNSEEN", "character.isprintable()", f"{DISPLAY}no_character_of_format_or_control_passes_by_itself"),
    Mutant("quoting: quotes inside", "domain/values.py", """.replace('"', '\\\\"')""", "", f"{DISPLAY}in_a_sentence_it_is_quoted_and_cut"),
    ("quoting: the text of the lock file", "storage/sqlite/write_lock.py", "({quoted(what)}{stopped})", "({what}{stopped})", "tests/storage/test_sqlite.py::test_what_somebody_wrote_into_the_lock_file_is_quoted"),
    ("quoting: the program that blocks a server", "storage/postgres/transaction.py", "{quoted(program) if program else 'a program'}", "{program}", "tests/faults/test_table_locks.py::test_a_locked_table_is_busy_and_names_who_has_it"),
    ("the lock file may be a pipe", "storage/sqlite/write_lock.py", " | os.O_NONBLOCK", "", "tests/storage/test_sqlite.py::test_a_pipe_in_the_place_of_the_lock_file_blocks_nobody"),
    ("what a killed run left outlives its expired lease", "board/facts/task.py", "            kill_orphans_of_dead(board, needed.task)\n", "            pass\n", KILLED + "what_a_killed_run_left_is_ended_when_its_expired_lease_is_taken"),
    ("quoting: where a board has moved", "storage/errors.py", "return text if is_plain else quoted(text)", "return text", TRUST + "what_a_forged_record_says_is_quoted_and_cut_without_a_password"),
    ("quoting: a long place", "storage/errors.py", " and len(text) <= LONGEST", "", TRUST + "what_a_forged_record_says_is_quoted_and_cut_without_a_password"),
    ("a record shows its password", "storage/errors.py", "text = without_password(to) if is_address(to) else to", "text = to", TRUST + "what_a_forged_record_says_is_quoted_and_cut_without_a_password"),
    ("quoting: a place that cannot be used", "storage/errors.py", "    where = shown_place(path)\n", "    where = short(path, 200)\n", TRUST + "a_place_that_cannot_be_used_is_quoted_and_cut"),
    ("quoting: why work is paused", "board/facts/queue.py", 'why = f": {quoted(board.paused_why)}"', 'why = f": {board.paused_why}"', "tests/board/test_dependencies.py"),
    ("a sentence may be a name", "storage/queries.py", '    if text.isprintable() and " " not in text:\n', "    if True:\n", QUOTING + "a_name_that_somebody_wrote_into_the_board_is_quoted"),
    Mutant("quoting: paths", "domain/refusals.py", "return several([quoted(text) for text in texts])", "return several(texts)", f"{QUOTING}a_denial_quotes_the_path_and_says_that_it_is_data"),
    Mutant("quoting: the label", "integrations/harness/hooks.py", "return f\"{seen} {LABEL}\" if '\"' in seen else seen", "return seen", f"{QUOTING}a_denial_quotes_the_path_and_says_that_it_is_data"),
    Mutant("text: scripts of a name", "domain/checks.py", "        _check_scripts(name)\n", "        pass\n", f"{TEXT}a_name_that_mixes_scripts_is_refused_and_says_so"),
    Mutant("text: full width", "domain/model.py", 'normalize("NFKC", normalize("NFKC", name).casefold())', 'normalize("NFC", name.casefold())', f"{TEXT}a_name_in_full_width_letters_is_the_same_person"),
    Mutant("text: items", "backlogs/items.py", "good = [item for item in items if is_text(item)]", "good = items", f"{TEXT}a_line_of_a_graph_that_is_no_text_stops_no_other"),
    Mutant("text: a message is cut", "cli/intake.py", "payload(email.MESSAGE_MAX)", "payload()", f"{TEXT}a_message_is_read_whole_or_refused"),
    Mutant("text: an export on a terminal", "cli/files.py", "self._on_screen = sys.stdout.isatty()", "self._on_screen = False", f"{TEXT}an_export_to_a_terminal_is_the_same_json_without_what_a_terminal_obeys"),
    Mutant("text: amounts", "domain/checks.py", "digits.isascii() and digits.isdigit() and len(digits) < 40", "len(digits) < 40 and digits.isdigit()", f"{TEXT}an_amount_is_written_plainly"),
]  # fmt: skip


def mutants() -> list[Mutant]:
    return [*guards_removed(), *(Mutant(*row) for row in TABLE)]


def guards_removed() -> list[Mutant]:
    """Each guard once: it finds nothing wrong with anything."""
    text = (ROOT / "src/dibs/domain/guards.py").read_text()
    heads = re.findall(r"^def ((\w+)\(facts: [\w| ]+\) -> Refusal \| None:)\n", text, re.MULTILINE)
    return [
        Mutant(
            f"guard removed: {name}",
            "domain/guards.py",
            f"def {head}\n",
            f"def {head}\n    return None\n",
            DEPENDENCIES_OF_SCOPES if name.startswith("scope_is_free_if") else ORDER,
        )
        for head, name in heads
        if name != "refusal_of"
    ]


def run(mutant: Mutant, workers: str = "0") -> str:
    """The name of the first test that goes red, or ""."""
    with tempfile.TemporaryDirectory(prefix="dibs-mutant-") as folder:
        copy = Path(folder)
        for name in ("src", "tests"):  # with what is compiled: only the mutant is compiled anew
            shutil.copytree(ROOT / name, copy / name)
        shutil.copy(ROOT / "pyproject.toml", copy)
        path = copy / "src/dibs" / mutant.file
        text = path.read_text()
        path.write_text(text.replace(mutant.before, mutant.after))
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
            compiled.unlink()
        # The rules are the same on every store: a server is started only where it is what is broken.
        served = "postgres" in mutant.file or "postgres" in mutant.tests
        only = [] if served else ["-k", "not postgres"]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-n", workers, "-x", "-q", *only, "-p", "no:cacheprovider", f"--basetemp={copy / 'tmp'}", *mutant.tests.split()],
                cwd=copy, capture_output=True, text=True, check=False, timeout=PATIENCE,
                env={**os.environ, "PYTHONPATH": str(copy / "src")},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return TIMED_OUT
    red = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    if done.returncode == 1 and red:
        return red.group(1)
    assert done.returncode == 0, f"{mutant.name}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return ""


def compile_once() -> None:
    """Tests and code are compiled here, and copied: a copy compiles only what is broken in it."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0"]
    around = {name: value for name, value in os.environ.items() if name != NO_BYTECODE}
    subprocess.run(command, cwd=ROOT, env=around, stdout=subprocess.DEVNULL, check=True)


def main(wanted: list[str]) -> int:
    chosen = [m for m in mutants() if not wanted or any(word in m.name for word in wanted)]
    for mutant in chosen:
        text = (ROOT / "src/dibs" / mutant.file).read_text()
        assert mutant.before in text, f"{mutant.name}: its text is not in {mutant.file} any more"
    tests = sorted({file for mutant in chosen for file in mutant.tests.split()})
    compile_once()
    if red := run(
        Mutant("nothing broken", "storage/postgres/store.py", "", "", " ".join(tests)), "auto"
    ):
        print(f"without any mutant {red} is red: mend it first")
        return 1
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        survivors = 0
        for mutant, red in zip(chosen, pool.map(run, chosen)):
            killed = red not in ("", TIMED_OUT)
            survivors += not killed
            verdict = "killed  " if killed else "SURVIVED"
            print(f"{verdict}  {mutant.name}  {red.rpartition('::')[2]}", flush=True)
    print(f"{len(chosen) - survivors} killed, {survivors} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
