"""Item files as people and tools write them, and files that are none: the same every time.

Three are from real backlogs, word for word (`STORY`, `TASK`, `WRK`); the others are variations of
them, one oddity each, with its reason.
"""

# ruff: noqa: RUF001 - quotes and dashes as people write them

from __future__ import annotations

from typing import NamedTuple


class CorpusFile(NamedTuple):
    """`marks`: `not_yaml` (a YAML reader refuses it), `other_id` (its name says another id)."""

    name: str
    dialect: str
    data: bytes
    why: str
    marks: frozenset[str] = frozenset()


STORY = """\
---
id: KABSD-USR-0026
uid: 019ba3c3-ee9a-7124-9fd0-78d03c965a35
type: UserStory
title: "Assignment record and conflict isolation for dispatched work"
state: Proposed
priority: P1
parent: KABSD-FTR-0027
area: dispatch
iteration: null
tags: ["dispatcher", "assignment", "coordination", "claim", "lease"]
created: 2026-01-10
updated: 2026-01-10
owner: null
external:
  azure_id: null
  jira_key: null
links:
  relates: []
  blocks: []
  blocked_by: []
decisions: []
---

# Context

Dispatching is meaningless if two agents can still work the same item at the same time.
We need an explicit assignment record and basic conflict isolation primitives that integrate with the existing coordination layer (claim/lease).

# Goal

Define how “assigned to agent X” is represented, enforced, and audited, so that dispatched work is exclusive by default and recoverable when agents crash or abandon work.

# Non-Goals

- Do not build distributed locking across machines; start with file-first coordination.
- Do not require a central server; this must work in local-first repos.
- Do not guarantee perfect enforcement against malicious actors; focus on preventing accidental conflicts.

# Approach

- Define an assignment record (fields: assignee agent id, tier, scope, lease TTL, acquisition timestamp, renewal).
- Integrate with claim/lease:
  - Assignment implies claim acquisition.
  - Only the assignee can transition the item to `InProgress` (unless forced by a human).
- Define conflict recovery:
  - Lease expiry and takeover protocol.
  - Manual override / force paths that remain auditable.

# Alternatives

- “Just communicate in chat” (does not scale).
- Git-level locking (not portable; still not tied to work item state).

# Acceptance Criteria

- A documented assignment record schema and lease rules.
- A documented enforcement policy tying assignment -> allowed state transitions.
- A minimal CLI/spec plan for: claim, renew, release, takeover (or mapping to existing tools).

# Risks / Dependencies

- Requires reliable agent identity injection into Worklog records.
- Needs careful UX to avoid deadlocks when leases expire mid-work.

# Worklog

2026-01-10 02:05 [agent=codex] Added assignment/lease enforcement scope and recovery expectations.

2026-01-10 01:18 [agent=codex] Created to define assignment records and isolation/coordination integration.
"""

TASK = """\
---
id: KABSD-TSK-0141
uid: 019ba3c4-6d62-7ca6-b194-85f4752b9a45
type: Task
title: "Define assignment records and coordination integration (claim/lease)"
state: Proposed
priority: P1
parent: KABSD-USR-0026
area: dispatch
iteration: null
tags: ["dispatcher", "assignment", "claim", "lease", "coordination"]
created: 2026-01-10
updated: 2026-01-10
owner: null
external:
  azure_id: null
  jira_key: null
links:
  relates: []
  blocks: []
  blocked_by: []
decisions: []
---

# Context

Dispatch decisions must translate into concrete coordination primitives so agents don’t collide.
This task defines the assignment record schema and how it integrates with claim/lease coordination.

# Goal

Define an assignment + lease design that supports:
- exclusive work ownership,
- safe takeover after expiry,
- auditability for overrides.

# Non-Goals

- No distributed locking service.
- No enforcement against malicious actors; focus on preventing accidental conflicts.

# Approach

- Define “assignment record” fields (suggested):
  - `assignee_agent`, `assignee_tier`, `assigned_at`, `lease_ttl`, `lease_expires_at`
  - `scope` (files/areas) and `constraints` (allowed actions)
  - `handoff_reason` for takeovers
- Map assignment to claim/lease:
  - assignment implies claim acquisition,
  - only assignee can renew/release,
  - takeover requires lease expiry (or explicit force with audit).
- Define storage:
  - canonical frontmatter minimal pointer + derived lease state in index, or
  - canonical fields only (simple but noisier).

# Alternatives

- Rely on Git conflicts (too late; expensive).
- Human coordination only (does not scale).

# Acceptance Criteria

- A documented assignment schema and lease lifecycle.
- A documented interaction with state transitions (`InProgress`, `Done`, `Dropped`).
- A recovery flow for abandoned work (expiry + takeover).

# Risks / Dependencies

- Depends on stable agent identity conventions (`--agent` required everywhere).
- Needs clarity on where to store canonical vs derived lease data.

# Worklog

2026-01-10 01:18 [agent=codex] Planning task: define assignment fields and coordination/claim integration for exclusive work.
2026-01-10 02:06 [agent=codex] Added assignment/lease schema outline, lifecycle, and recovery expectations.
"""

WRK = """\
---
id: WRK-157
title: Session locking — prevent WRK item collision across terminals
status: pending
priority: high
complexity: moderate
compound: false
created_at: 2026-02-16T19:30:00Z
target_repos:
  - workspace-hub
commit:
spec_ref:
related: [WRK-094, WRK-118, WRK-139]
blocked_by: []
synced_to: []
provider: claude
---

## What

Add session-level locking to WRK items so that multiple Claude Code sessions cannot claim the same work item simultaneously.

## Why

With 8 concurrent Claude sessions observed on 2026-02-16, there is no mechanism to prevent two sessions from executing the same WRK item. This risks merge conflicts, duplicate commits, and wasted compute.

## Acceptance Criteria

- [ ] `locked_by` and `locked_at` fields added to WRK frontmatter schema
- [ ] `workflow-guards.sh` gains `claim_wrk <wrk_id>` and `release_wrk <wrk_id>` functions
- [ ] `claim_wrk` is atomic (uses temp file + `mv` pattern from session-store.sh)
- [ ] `claim_wrk` fails with exit code 4 if item already locked by another session
- [ ] Stale lock recovery: locks older than 2 hours are auto-released with warning
- [ ] `execute.sh` calls `claim_wrk` before dispatch, `release_wrk` after completion
- [ ] `review.sh` calls `release_wrk` on archive
- [ ] Tests: concurrent claim attempt (two rapid claims), stale lock recovery, claim-release round-trip
- [ ] No regressions in existing gate exit codes (1, 2, 3)

## Plan

### Phase 1: Schema extension
1. Add `locked_by: ""` and `locked_at: ""` to WRK frontmatter template
2. Add `wrk_claim()` and `wrk_release()` to `scripts/agents/lib/workflow-guards.sh`
3. Claim uses `session_get session_id` as lock value, `session_now_iso` as timestamp

### Phase 2: Gate integration
4. Wire `wrk_claim` into `execute.sh` pre-dispatch check
5. Wire `wrk_release` into `review.sh` post-archive and error paths
6. Add exit code 4 documentation to workflow-visual.html gate table

### Phase 3: Stale lock recovery
7. `wrk_claim` checks `locked_at` — if > 2h old, overwrite with warning to stderr
8. Dead session detection: if `locked_by` session ID not in active `session-state.yaml`, release

### Phase 4: Testing
9. Unit tests for claim/release/stale-recovery (bash test scripts)
10. Integration test: simulate concurrent claim from two session IDs

*Promoted from workflow-visual.html section 7 refinement candidates (2026-02-16)*
"""

KANO_WORDS = {"Task": "TSK", "UserStory": "USR", "Bug": "BUG", "Feature": "FTR", "Epic": "EPIC"}
KINDS = tuple(KANO_WORDS)
QUEUES = {
    "pending": "pending", "working": "working", "blocked": "blocked", "done": "done",
    "archive": "archived",
}  # fmt: skip

NOT_YAML = ("a title with a bare colon", "a tab after the value")
"""PyYAML refuses these; a line by line reader does not."""

Change = tuple[str, str]
Variation = tuple[str, tuple[Change, ...]]

TITLE = 'title: "Define assignment records and coordination integration (claim/lease)"'
TAGS = 'tags: ["dispatcher", "assignment", "claim", "lease", "coordination"]'
LINKS = "links:\n  relates: []\n  blocks: []\n  blocked_by: []\n"
EXTERNAL = "external:\n  azure_id: null\n  jira_key: null\n"
WORKLOG = TASK[TASK.index("# Worklog") :]
LOOKALIKE = """
Never write the fields by hand:

locked_by: "s1"
locked_at: 2026-02-16T19:30:00Z
owner: mallory
state: Done
---
state: Done
---
"""

KANO: tuple[Variation, ...] = (
    ("as the tool writes it", ()),
    ("single quotes", (("state: Proposed", "state: 'Proposed'"),)),
    ("double quotes", (("state: Proposed", 'state: "Proposed"'),)),
    ("a quoted key", (("state: Proposed", '"state": Proposed'),)),
    ("a key in single quotes", (("owner: null", "'owner': null"),)),
    ("a comment after the value", (("state: Proposed", "state: Proposed  # was New"),)),
    ("a comment after a list", ((TAGS, TAGS + " # five of them"),)),
    ("comments of their own", (("state: Proposed", "# the state\nstate: Proposed\n# the end"),)),
    ("blank lines between keys", (("state: Proposed\n", "\nstate: Proposed\n\n"),)),
    ("spaces before the colon and after it", (("state: Proposed", "state :   Proposed"),)),
    ("trailing spaces", (("state: Proposed", "state: Proposed   "),)),
    ("a tab after the value", (("priority: P1", "priority: P1\t"),)),
    ("a state of another word", (("state: Proposed", "state: InProgress"),)),
    ("a state in small letters", (("state: Proposed", "state: ready"),)),
    ("an unknown state", (("state: Proposed", "state: Someday"),)),
    ("an empty state", (("state: Proposed", "state:"),)),
    ("no state", (("state: Proposed\n", ""),)),
    ("the text None as owner", (("owner: null", "owner: None"),)),
    ("a tilde as owner", (("owner: null", "owner: ~"),)),
    ("nothing as owner", (("owner: null", "owner:"),)),
    ("empty quotes as owner", (("owner: null", 'owner: ""'),)),
    ("assistant as owner", (("owner: null", "owner: assistant"),)),
    ("Codex as owner", (("owner: null", "owner: Codex"),)),
    ("no owner", (("owner: null\n", ""),)),
    ("an agent as owner, at work", (("owner: null", "owner: codex"), ("Proposed", "InProgress"))),
    ("a list below its key", ((TAGS, "tags:\n  - dispatcher\n  - 'assignment'\n  - \"claim\""),)),
    ("a list in the key's own column", ((TAGS, "tags:\n- dispatcher\n- claim"),)),
    ("a list with comments", ((TAGS, "tags:\n  # two\n  - a # one\n\n  - b\n  # after"),)),
    ("a list over several lines", ((TAGS, 'tags: [\n  "a",  # one\n  b,\n  "c, d"\n]'),)),
    ("a list without spaces", ((TAGS, "tags: [a,b,'c']"),)),
    ("an empty list", ((TAGS, "tags: []"),)),
    ("one text for a list", ((TAGS, "tags: dispatcher"),)),
    ("no tags", ((TAGS + "\n", ""),)),
    (
        "links in brackets",
        ((LINKS, "links: {relates: [], blocks: [], blocked_by: [KABSD-TSK-0002]}\n"),),
    ),
    (
        "links with items",
        (
            (
                LINKS,
                "links:\n  relates: []\n  blocked_by:\n    - KABSD-TSK-0002\n    - KABSD-USR-0026\n",
            ),
        ),
    ),
    (
        "links deeper and with comments",
        (
            (
                LINKS,
                'links: # all\n    # none yet\n    relates: []\n    blocked_by: [KABSD-TSK-0002, "KABSD-BUG-0003"]\n',
            ),
        ),
    ),
    (
        "links that wait for a person",
        (("  blocked_by: []", '  blocked_by: ["KABSD-TSK-0002"] # ask ana'),),
    ),
    ("empty links", ((LINKS, "links:\n"),)),
    ("no links", ((LINKS, ""),)),
    (
        "external ids",
        (
            (
                EXTERNAL,
                'external:\n  azure_id: 4711\n  jira_key: "AB-1"\n  more:\n    - {a: 1}\n    - [x, [y]]\n',
            ),
        ),
    ),
    (
        "keys that nobody knows",
        (
            (
                "decisions: []",
                "decisions: []\nx-team: {a: [1, 2], b: {c: d}}\nestimate: 3.5\nwhen: 2026-01-10 10:00:00\nempty:",
            ),
        ),
    ),
    (
        "anchors and tags in other keys",
        (("decisions: []", "decisions: &d [a, !!str b]\nalso: *d\nset: !!set {a, b}"),),
    ),
    (
        "a text of several lines",
        (
            (
                "decisions: []",
                "decisions: []\nsummary: |\n  Two lines.\n  # not a comment\n\n  state: Done\n  --- not the end",
            ),
        ),
    ),
    (
        "a folded text",
        (("decisions: []", "decisions: []\nsummary: >-\n  One\n  sentence.\n\n    code\n"),),
    ),
    (
        "a text kept with its end",
        (("decisions: []", "decisions: []\nsummary: |+\n  text\n\n# end\nlast: 1"),),
    ),
    ("a title of two lines", ((TITLE, 'title: "Define assignment\n  records"'),)),
    ("a plain title of two lines", ((TITLE, "title: Define assignment\n  records"),)),
    ("a title below its key", ((TITLE, "title:\n  Define assignment records"),)),
    ("escapes in a title", ((TITLE, r'title: "Say \"hi\"\tto \u00e9 \\ and \U0001F600"'),)),
    ("apostrophes in a title", ((TITLE, "title: 'It''s done: really # yes'"),)),
    ("quotes that are not ASCII", ((TITLE, "title: “Define” assignment – ‘records’ … done"),)),
    (
        "another script",
        ((TITLE, "title: 割り当て記録を定義する 🎉 Ünïcödé"), ("owner: null", "owner: José")),
    ),
    ("a colon without a space", ((TITLE, "title: see https://example.org/a#b or a:b"),)),
    ("a very long title", ((TITLE, "title: " + "long " * 800 + "end"),)),
    ("a date in quotes", (("updated: 2026-01-10", "updated: '2026-01-10'"),)),
    ("a time", (("updated: 2026-01-10", "updated: 2026-01-10T10:00:00Z"),)),
    ("duplicates of", (("state: Proposed", "state: Duplicate\nduplicate_of: KABSD-TSK-0002"),)),
    (
        "a lease record",
        (
            (
                "decisions: []",
                'decisions: []\nassignee_agent: codex\nlease_ttl: 2h\nlease_expires_at: 2026-01-10T12:00:00Z\nscope: ["src/**"]\nconstraints: []',
            ),
        ),
    ),
    ("the end as three dots", (("decisions: []\n---", "decisions: []\n..."),)),
    ("spaces after the markers", (("decisions: []\n---", "decisions: []\n---  "),)),
    ("no Worklog", ((WORKLOG, ""),)),
    ("an empty Worklog", ((WORKLOG, "# Worklog\n"),)),
    ("an empty Worklog with a blank line", ((WORKLOG, "# Worklog\n\n"),)),
    ("a Worklog that is not last", ((WORKLOG, WORKLOG + "\n# Notes\n\nLater.\n"),)),
    ("a Worklog of the second level", ((WORKLOG, WORKLOG.replace("# Worklog", "## Worklog")),)),
    ("a Worklog in code, and a real one", ((WORKLOG, "```md\n# Worklog\n```\n\n" + WORKLOG),)),
    (
        "empty sections",
        (
            ("No distributed locking service.", ""),
            ("# Alternatives\n\n", "# Alternatives\n\n<!-- none -->\n\n# More\n\n"),
        ),
    ),
    ("lines and lookalikes in the text", (("# Alternatives\n", "# Alternatives\n" + LOOKALIKE),)),
    (
        "frontmatter in code",
        (("# Alternatives\n", "# Alternatives\n\n```yaml\n---\nid: X\nstate: Done\n---\n```\n"),),
    ),
    ("markers around the text", (("# Context\n", "---\n\n# Context\n\n---\n"),)),
    ("no text at all", ((TASK[TASK.index("\n# Context") :], ""),)),
)

STATUS, RELATED = "status: pending", "related: [WRK-094, WRK-118, WRK-139]"
REPOS = "target_repos:\n  - workspace-hub\n"

QUEUE: tuple[Variation, ...] = (
    ("as the tool writes it", ()),
    ("free", (("provider: claude", 'provider: claude\nlocked_by: ""\nlocked_at: ""'),)),
    ("held", (("provider: claude", 'provider: claude\nlocked_by: "s1"\nlocked_at: 2026-02-16T19:30:00Z'),)),
    ("held, without quotes", (("provider: claude", 'provider: claude\nlocked_by: s1\nlocked_at: "2026-02-16T19:30:00Z"'),)),
    ("held since the future", (("provider: claude", "provider: claude\nlocked_by: s1\nlocked_at: 2099-01-01T00:00:00Z"),)),
    ("held since nonsense", (("provider: claude", "provider: claude\nlocked_by: s1\nlocked_at: yesterday"),)),
    ("held since never", (("provider: claude", "provider: claude\nlocked_by: s1\nlocked_at:"),)),
    ("the lock first", (("id: WRK-157\n", 'locked_at: ""\nlocked_by: ""\nid: WRK-157\n'),)),
    ("single quotes", ((STATUS, "status: 'pending'"),)),
    ("a comment", ((STATUS, "status: pending # not yet"),)),
    ("a quoted key", ((STATUS, '"status": pending'),)),
    ("another status than its folder", ((STATUS, "status: done"),)),
    ("an unknown status", ((STATUS, "status: parked"),)),
    ("no status", ((STATUS + "\n", ""),)),
    ("blocked by others", (("blocked_by: []", "blocked_by: [WRK-001, 'WRK-002']"),)),
    ("blocked by a list below", (("blocked_by: []", "blocked_by:\n  - WRK-001\n  - WRK-002 # both"),)),
    ("blocked by a list in its column", (("blocked_by: []", "blocked_by:\n- WRK-001"),)),
    ("blocked by one", (("blocked_by: []", "blocked_by: WRK-001"),)),
    ("blocked by an empty item", (("blocked_by: []", "blocked_by:\n  -"),)),
    ("related over lines", ((RELATED, "related: [WRK-094,\n  WRK-118,\n  WRK-139,\n  ]"),)),
    ("repositories in brackets", ((REPOS, 'target_repos: ["workspace-hub", other]\n'),)),
    ("no repositories", ((REPOS, ""),)),
    ("a commit", (("commit:\n", "commit: 29ff375\n"),)),
    ("a plan of lines", (("spec_ref:\n", 'spec_ref:\nplan: |\n  1. locked_by: "me"\n  2. done\nnotes: >\n  folded\n  text\n'),)),
    ("a title in quotes", (("title: Session locking — prevent WRK item collision across terminals", 'title: "Session locking: prevent collisions"'),)),
    ("a title with a bare colon", (("title: Session locking — prevent", "title: Session locking: prevent"),)),
    ("the text None", (("provider: claude", "provider: None\nassignee: None"),)),
    ("trailing spaces", ((STATUS, "status: pending  "), ("commit:", "commit: "))),
    ("comments and blank lines", ((STATUS, "# state\n\nstatus: pending\n\n  # deeper"),)),
    ("lookalikes in the text", (("## Why\n", "## Why\n" + LOOKALIKE),)),
    ("markers in the text", (("## Why\n", "---\n\n## Why\n\n---\n\n***\n"),)),
    ("a text that ends in code", (("*Promoted from", "```\n---\nlocked_by: x\n```\n\n*Promoted from"),)),
    ("a resolution", (("provider: claude", "provider: claude\ncompleted_at: 2026-02-17T00:00:00Z\npercent_complete: 100"),)),
    ("no text at all", ((WRK[WRK.index("\n## What") :], ""),)),
)  # fmt: skip


def _encodings(text: str) -> tuple[tuple[str, bytes], ...]:
    lines = text.split("\n")
    mixed = "".join(
        line + ("\r\n" if number % 3 == 0 else "\n") for number, line in enumerate(lines[:-1])
    )
    crlf = text.replace("\n", "\r\n")
    return (
        ("CRLF", crlf.encode()),
        ("a BOM", b"\xef\xbb\xbf" + text.encode()),
        ("no final newline", text.rstrip("\n").encode()),
        ("a BOM and CRLF, no final newline", b"\xef\xbb\xbf" + crlf.rstrip("\r\n").encode()),
        ("both kinds of newlines", (mixed + lines[-1]).encode()),
    )


def _changed(text: str, changes: tuple[Change, ...]) -> str:
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def _reordered(text: str, turn: int) -> str:
    """The blocks of the keys in another order; `turn` 0: backwards."""
    opening, block, body = text.split("---\n", 2)
    keys: list[str] = []
    for line in block.splitlines(keepends=True):
        if line[0] in " -":
            keys[-1] += line
        else:
            keys.append(line)
    keys = keys[::-1] if turn == 0 else keys[turn:] + keys[:turn]
    return f"{opening}---\n{''.join(keys)}---\n{body}"


def _kano_name(number: int, kind: str) -> tuple[str, str]:
    key = f"KABSD-{KANO_WORDS[kind]}-{number:04}"
    folder = f"_kano/backlog/products/demo/items/{kind.lower()}/{number // 100 * 100:04}"
    return key, f"{folder}/{key}_define-records.md"


def _kano() -> list[CorpusFile]:
    story = "_kano/backlog/products/demo/items/userstory/0000/KABSD-USR-0026_assignment-record.md"
    task = "_kano/backlog/products/demo/items/task/0100/KABSD-TSK-0141_define-assignment-records.md"
    files = [
        CorpusFile(story, "kano", STORY.encode(), "a user story, word for word"),
        CorpusFile(task, "kano", TASK.encode(), "a task, word for word"),
    ]
    orders = [(f"keys in another order ({turn})", _reordered(TASK, turn)) for turn in range(6)]
    shapes = [(why, _changed(TASK, changes)) for why, changes in KANO]
    for number, (why, text) in enumerate([*shapes, *orders], 201):
        marks = frozenset({"not_yaml"}) if why in NOT_YAML else frozenset()
        kind = KINDS[number % len(KINDS)]
        key, name = _kano_name(number, kind)
        own = text.replace("KABSD-TSK-0141", key).replace("type: Task", f"type: {kind}")
        files.append(CorpusFile(name, "kano", own.encode(), why, marks))
        key, name = _kano_name(number + 200, kind)
        own = text.replace("KABSD-TSK-0141", key).replace("type: Task", f"type: {kind}")
        how, data = _encodings(own)[number % 5]
        files.append(CorpusFile(name, "kano", data, f"{why}; {how}", marks))
    _, name = _kano_name(900, "Task")
    other = frozenset({"other_id"})
    files.append(CorpusFile(name, "kano", TASK.encode(), "its name says another id", other))
    return files


def _queue() -> list[CorpusFile]:
    folder = ".claude/work-queue"
    files = [CorpusFile(f"{folder}/pending/WRK-157.md", "wrk", WRK.encode(), "word for word")]
    orders = [(f"keys in another order ({turn})", _reordered(WRK, turn)) for turn in range(6)]
    shapes = [(why, _changed(WRK, changes)) for why, changes in QUEUE]
    for number, (why, text) in enumerate([*shapes, *orders], 201):
        marks = frozenset({"not_yaml"}) if why in NOT_YAML else frozenset()
        place, word = list(QUEUES.items())[number % len(QUEUES)]
        own = text.replace("id: WRK-157", f"id: WRK-{number}").replace(STATUS, f"status: {word}")
        files.append(
            CorpusFile(f"{folder}/{place}/WRK-{number}.md", "wrk", own.encode(), why, marks)
        )
        how, data = _encodings(own.replace(f"WRK-{number}", f"WRK-{number + 200}"))[number % 5]
        name = f"{folder}/{place}/WRK-{number + 200}.md"
        files.append(CorpusFile(name, "wrk", data, f"{why}; {how}", marks))
    other = frozenset({"other_id"})
    files.append(
        CorpusFile(
            f"{folder}/done/WRK-900.md", "wrk", WRK.encode(), "its name says another id", other
        )
    )
    return files


def corpus() -> list[CorpusFile]:
    """Files that are items, each odd in one way."""
    return [*_kano(), *_queue()]


NOT_ITEMS: tuple[tuple[str, bytes], ...] = (
    ("no bytes", b""),
    ("a BOM and nothing else", b"\xef\xbb\xbf"),
    ("only blank lines", b"\n\n\n"),
    ("no frontmatter", b"# Context\n\nstate: Done\n"),
    ("frontmatter that is not at the beginning", b"\n---\nid: WRK-1\nstatus: pending\n---\n"),
    ("frontmatter below a title", b"# Title\n---\nid: WRK-1\n---\n"),
    ("an opening line only", b"---"),
    ("an opening line and a newline", b"---\n"),
    ("not closed", b"---\nid: WRK-1\nstatus: pending\n\n## What\n"),
    ("closed by an indented line", b"---\nid: WRK-1\n ---\n"),
    ("four dashes", b"----\nid: WRK-1\n----\n"),
    ("keys in brackets", b"---\n{id: WRK-1, status: pending}\n---\n"),
    ("a list for keys", b"---\n- id: WRK-1\n---\n"),
    ("a text for keys", b"---\njust a sentence\n---\n"),
    ("indented keys", b"---\n  id: WRK-1\n  status: pending\n---\n"),
    ("a tab for indentation", b"---\nid: WRK-1\nlinks:\n\tblocks: []\n---\n"),
    ("no space after the colon", b"---\nid: WRK-1\nstatus:pending\n---\n"),
    ("a quote that is not closed", b'---\nid: WRK-1\ntitle: "open\nstatus: pending\n---\n'),
    ("a quote that is closed in the text", b'---\nid: WRK-1\ntitle: "open\n---\n\n"\n'),
    ("a bracket that is not closed", b"---\nid: WRK-1\nrelated: [a, b\nstatus: pending\n---\n"),
    ("a quote open in a list", b'---\nid: WRK-1\ntags:\n  - "a\nstatus: x"\n---\n'),
    ("a complex key", b"---\n? id\n: WRK-1\n---\n"),
    ("merged keys", b"---\nbase: &b {status: done}\n<<: *b\n---\n"),
    ("a second document", b"---\nid: WRK-1\n--- # again\nid: WRK-2\n---\n"),
    ("a second document with a key", b"---\nid: WRK-1\n--- status: done\n---\n"),
    ("the end of a document with a key", b"---\nid: WRK-1\n... status: done\n---\n"),
    ("classic newlines", b"---\rid: WRK-1\rstatus: pending\r---\r"),
    ("a lone carriage return", b"---\nid: WRK-1\ntitle: a\rstatus: done\nstatus: pending\n---\n"),
    ("a line separator", "---\nid: WRK-1\ntitle: a\u2028status: done\n---\n".encode()),
    ("Latin-1", "---\nid: WRK-1\ntitle: Café\n---\n".encode("latin-1")),
    ("UTF-16", "---\nid: WRK-1\nstatus: pending\n---\n".encode("utf-16")),
    ("a NUL", b"---\nid: WRK-1\nstatus: pend\0ing\n---\n"),
    ("a picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
)

TWICE = b"---\nid: WRK-1\nstatus: pending\ntitle: a\nstatus: done\n---\n\n## What\n"
TWICE_QUOTED = b"---\nid: WRK-1\nstatus: pending\n'status': done\n---\n"


def broken() -> list[CorpusFile]:
    """Files that must be refused: as a whole, or (`twice`) where `status` is concerned."""
    folder = ".claude/work-queue/pending"
    files = [
        CorpusFile(f"{folder}/WRK-{number}.md", "wrk", data, why)
        for number, (why, data) in enumerate(NOT_ITEMS, 701)
    ]
    twice = frozenset({"twice"})
    files.append(CorpusFile(f"{folder}/WRK-798.md", "wrk", TWICE, "status twice", twice))
    files.append(
        CorpusFile(
            f"{folder}/WRK-799.md", "wrk", TWICE_QUOTED, "status twice, once in quotes", twice
        )
    )
    return files
