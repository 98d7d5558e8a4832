"""Writes the reference pages that can be read off the code, so that they cannot lie.

python scripts/reference.py            writes docs/reference/*.md and the fingerprints of the schema anew
python scripts/reference.py --check    writes nothing; fails if a page is not current
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

from dibs.board.settings import AGENT, PERSONAL, SETTINGS, Agent, Settings, field_of
from dibs.cli import verbs
from dibs.cli.main import typed_verb
from dibs.domain import checks, model
from dibs.domain.guards import CONDITIONS, named
from dibs.domain.scopes.policy import HOOK_TIMEOUT, HOOK_TIMEOUT_MAX
from dibs.domain.values import exact
from dibs.domain.verbs import SAME, VerbSpec, commands, typed_verbs
from dibs.harness_table import KNOWN
from dibs.output.error_map import ERROR_MAP, EXITS, HTTP, MCP
from dibs.storage.queries import computed

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
QUERIES = Path(__file__).parent.parent / "src/dibs/storage/queries.py"
GENERATED = "<!-- Written by scripts/reference.py. To renew it: make docs -->"


def typed(spec: VerbSpec) -> str:
    return f"dibs {spec.typed}"


def code(*words: object) -> str:
    return ", ".join(f"`{word}`" for word in words)


def table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> list[str]:
    """A Markdown table; a bar in a cell is escaped."""
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in [head, *rows]]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return [lines[0], "|" + "---|" * len(head), *lines[1:], ""]


# States.


def states() -> list[str]:
    return [
        "# States",
        "",
        f"A task is in one of {len(model.STATES)} states: {code(*model.STATES)}.",
        f"A new task is `open`. {code(*model.FINAL)} are final: only `reset` leads out of them. A task",
        "in `in_progress` always has a lease that has not ended. A lease that has not ended can",
        f"stand on a task in {code(*model.HOLDABLE)}, and in no other state.",
        "",
        "## From where to where",
        "",
        *table(
            ("verb", "from", "to", "means"),
            [
                (f"`{typed(spec)}`", from_(spec.sources), f"`{spec.target}`", spec.title)
                for spec in commands()
                if spec.target
            ],
        ),
        f"`{SAME}` means that the state stays as it is. `dibs claim --reserve` takes the lease and",
        "leaves the state as it is. `dibs release` of a blocked task leaves it `blocked`.",
        "",
        "## What each verb asks, in this order",
        "",
        "The first question that is answered with no is the refusal. The codes are in",
        "[errors.md](errors.md).",
        "",
        *[line for group in alike() for line in guards_of(group)],
    ]


def from_(sources: tuple[str, ...]) -> str:
    known = {model.STATES: "any", model.NOT_FINAL: "any that is not final"}
    return known.get(sources) or code(*sources)


def questions(spec: VerbSpec) -> tuple[str, ...]:
    """Subagents are asked about only where they may not act."""
    return tuple(
        name for name in spec.guards if name != "caller_is_no_subagent" or spec.parent_only
    )


def alike() -> list[list[VerbSpec]]:
    """Verbs that ask the same questions in the same order."""
    groups: dict[object, list[VerbSpec]] = {}
    for spec in commands():
        if typed_verb(spec.typed.partition(" ")[0]) is None:
            continue  # no verb of the command line gives it
        groups.setdefault((questions(spec), spec.own_guards), []).append(spec)
    return list(groups.values())


def guards_of(group: list[VerbSpec]) -> list[str]:
    lines = [f"### {', '.join(map(typed, group))}", ""]
    if group[0].own_guards:
        lines += [
            "If the caller's own lease has not ended, or the task was assigned to the caller and",
            "not taken up yet, only this is asked:",
            "",
            *numbered(group[0].own_guards),
            "",
            "Otherwise:",
            "",
        ]
    return [*lines, *(numbered(questions(group[0])) or ["Nothing is asked."]), ""]


def numbered(guards: tuple[str, ...]) -> list[str]:
    return [
        f"{n}. `{named(name).__name__}`: {named(name).__doc__}" for n, name in enumerate(guards, 1)
    ]


# Rights.


def rights() -> list[str]:
    return [
        "# Rights",
        "",
        "Who may do what. A verb that is not in this table may be used by any registered actor,",
        "as far as [states.md](states.md) allows it. A missing right is exit 1 (`people_only`); a",
        "missing reason is exit 2 (`reason_missing`).",
        "",
        *table(
            ("verb", "people only", "needs a reason", "when"),
            [
                (f"`{typed(spec)}`", yes(spec.people_only), yes(spec.needs_reason), when(spec))
                for spec in commands()
                if spec.people_only or spec.needs_reason
            ],
        ),
        "An agent is never a person, and nobody is a person inside an agent's harness: see",
        "[settings.md](settings.md) for the variables that mark one.",
        "",
        "## Subagents",
        "",
        "A session with a `/` in its name (`s1/a2`) is a subagent of the session before the `/`",
        "(`s1`). It acts under its parent's leases. These verbs belong to the parent; from a",
        "subagent they are exit 1 (`parent_only`):",
        "",
        f"{code(*(spec.name for spec in commands() if spec.parent_only))}.",
        "",
        "A subagent may `drop` a task that its parent does not hold.",
        "",
    ]


def when(spec: VerbSpec) -> str:
    return CONDITIONS[spec.when].__doc__ or "" if spec.when else "always"


def yes(flag: bool) -> str:
    return "yes" if flag else ""


# Errors.


def errors() -> list[str]:
    return [
        "# Exit codes and refusals",
        "",
        "## Exit codes",
        "",
        *table(
            ("exit", "means", "HTTP", "MCP"),
            [(number, means, HTTP.get(number, 200), MCP.get(number, "")) for number, means in
             EXITS.items()],
        ),
        "dibs has a command line and no server. The HTTP status and the MCP error are for programs",
        "that pass a refusal on. A command that is interrupted with Ctrl-C exits with 130;",
        "`dibs run` with 128 and the number of the signal that ended it. `dibs intake --from` says",
        "what it took in before it ends so: with 130, or with 143 after SIGTERM. `dibs hook` that is",
        "called wrongly exits with 1: a harness reads 2 as a denial.",
        "",
        "## Codes",
        "",
        "Each refusal has a stable code. `dibs` prints one sentence and what to do next; with",
        "`--json` it prints an object, see [json.md](json.md#a-refusal). Words in braces are",
        "replaced by the facts of the refusal.",
        "",
        *table(
            ("code", "exit", "HTTP", "MCP", "what to do next"),
            [(f"`{name}`", s.exit, s.http, s.mcp, s.advice) for name, s in ERROR_MAP.items()],
        ),
    ]  # fmt: skip


# Command line.


def cli() -> list[str]:
    lines = [
        "# Command line",
        "",
        "    dibs VERB [ARGUMENTS] [OPTIONS]",
        "",
        "`dibs help` lists the verbs, `dibs help VERB` tells what one takes. Durations are typed",
        "like `90s`, `30m`, `2h`, `7d`. Instants are typed like `2026-11-15T14:30:00Z`,",
        "`2026-11-15 15:30` (local), `15:30` (today, local) or `2h` (two hours ago).",
        "",
        "```text",
        verbs.FOOTER.strip(),
        "```",
        "",
    ]
    group = ""
    for spec in typed_verbs():
        if spec.group != group:
            group = spec.group
            lines += [f"## {group}", ""]
        lines += described(spec.name, spec.title)
    return lines


def described(name: str, means: str) -> list[str]:
    verb = import_module(verbs.MODULES[name]).VERBS[name]
    shown = [(shape(a.names, a.options), a.options) for a in verb.arguments]
    usage = " ".join([f"dibs {name}", *(optional(text, options) for text, options in shown)])
    rows = [(f"`{text}`", options["help"]) for text, options in shown]
    head = [f"### dibs {name}", "", f"{means[0].upper()}{means[1:]}.", "", f"    {usage}", ""]
    return head + (table(("argument", "means"), rows) if rows else [])


def shape(names: tuple[str, ...], options: dict[str, object]) -> str:
    """`KEY`, `--force`, `--ttl TIME`."""
    metavar = str(options.get("metavar", ""))
    return f"{names[0]} {metavar}".rstrip() if names[0].startswith("-") else metavar


def optional(text: str, options: dict[str, object]) -> str:
    needed = options.get("required") or not (text.startswith("-") or options.get("nargs") == "?")
    return text if needed else f"[{text}]"


# Settings.


def names(keys: tuple[str, ...]) -> str:
    return ", ".join(f"`{key}`" for key in keys)


def settings() -> list[str]:
    return [
        "# Settings, variables, limits",
        "",
        "## Settings",
        "",
        "A board's settings are in `settings.toml`, in the folder of the board. The file need not",
        "exist. An unknown name or a value that makes no sense is an error (exit 2). `dibs config`",
        "prints every setting, its value and where it comes from. A board on a server keeps its",
        "settings there, for all machines alike: a person loads them with `dibs config --load FILE`.",
        "",
        "`dibs config SETTING VALUE` changes one, and `dibs config --unset SETTING` takes it back. Both",
        "write to the right file, and only if all of it is right then; other lines and comments stay. This",
        "is for people: an agent is refused.",
        "",
        "What starts programs or names servers is read only from your own configuration folder,",
        "`$XDG_CONFIG_HOME/dibs` or `~/.config/dibs`: " + names(PERSONAL) + ". An agent's",
        "sandbox may be able to write to the board's folder; it cannot write there.",
        "",
        *table(
            ("file", "holds"),
            [
                ("`boards/ID.toml`", "these settings for the board with that id, but for `url`"),
                (
                    "`servers.toml`",
                    "`[clones]`: the `url` of each clone, by the folder of its board; `accepted`: other servers that a person has accepted",
                ),
            ],
        ),
        "Found beside the board, on its server or in `dibs.toml`, they are ignored with a warning.",
        "`dibs config --adopt` shows them and copies them, after a person has agreed (`--yes` where nobody",
        "can be asked). The folder must belong to you, and nobody else may be able to write to it. A file",
        "has at most 1 MiB.",
        "",
        *table(
            ("setting", "default", "means"),
            [
                (f"`{name}`", f"`{shown(name)}`", setting.means)
                for name, setting in SETTINGS.items()
            ],
        ),
        "A name with a dot is in a table: `tick` in `[dispatch]`, `command` in `[notify]`.",
        "",
        "## Agents",
        "",
        "Each agent that `dibs dispatch` starts has a table of its own, `[agents.NAME]`. What a",
        "table states of tier and capabilities counts when the agent is registered, at its first",
        "use; later a person changes them with `dibs actor set`.",
        "",
        *table(
            ("setting", "default", "means"),
            [(f"`{name}`", agents_default(name), setting.means) for name, setting in AGENT.items()],
        ),
        "## Environment variables",
        "",
        *table(
            ("variable", "means"),
            [
                ("`DIBS_AGENT`", "the agent that acts, as `--agent`"),
                ("`DIBS_SESSION`", "the agent's session, as `--session`; people do not use it"),
                ("`DIBS_BOARD`", "the folder of the board, an absolute path"),
                ("`DIBS_URL`", "the address of a board on a server, in place of a folder"),
                ("`DIBS_TASK`, `DIBS_TOKEN`", "set by `dibs run` for its command: task and token"),
                ("`DIBS_RUN`", "set by `dibs run`: marks all processes of that run"),
                (
                    "`DIBS_HOOK_SECONDS`",
                    f"how long a hook waits for a server: 1 to {HOOK_TIMEOUT_MAX} seconds, else {HOOK_TIMEOUT}",
                ),
                ("`DIBS_DEBUG`", "if set, a bug in dibs prints its traceback"),
                ("`NO_COLOR`", "if set, nothing is coloured"),
            ],
        ),
        "## Variables of harnesses",
        "",
        "If one of the marks is set, the caller is inside an agent's harness: it can act as an",
        "agent, and never as a person. If the harness names its session, that name is used where",
        "neither `--session` nor `DIBS_SESSION` is given and `identity` is `normal`.",
        "",
        *table(
            ("harness", "marks", "names the session"),
            [(h.name, code(*h.marks), code(h.session) if h.session else "") for h in KNOWN],
        ),
        "## Limits",
        "",
        *table(
            ("what", "limit"),
            [
                ("the ttl of a lease", f"{exact(model.TTL_MIN)} to {exact(model.TTL_MAX)}"),
                ("title", f"{checks.TITLE_LENGTH} characters"),
                ("note", f"{checks.NOTE_LENGTH} characters"),
                ("reason", f"{checks.REASON_LENGTH} characters"),
                ("key", f"{checks.KEY_LENGTH} characters"),
                ("name of an actor", f"{checks.NAME_LENGTH} characters"),
                ("name of a session", f"{checks.SESSION_LENGTH} characters"),
                ("scope", f"{checks.SCOPES} entries of {checks.SCOPE_LENGTH} characters"),
                ("priority", f"0 to {model.PRIORITY_MAX}; 0 is first"),
                ("tier", f"0 to {model.TIER_MAX}"),
                ("request ids", f"kept for {exact(model.REQUEST_KEPT)}"),
                ("log of refusals", f"the last {model.REFUSALS_KEPT}"),
            ],
        ),
    ]


def shown(name: str) -> str:
    return SETTINGS[name].show(Settings.defaults[field_of(name)])


def agents_default(name: str) -> str:
    """The command has none; the tier is that of every newcomer."""
    value = Agent.defaults.get(name)
    known = {"command": "", "tier": "`default_tier`", "capabilities": "`none`"}
    return known[name] if name in known else f"`{AGENT[name].show(value)}`"


PAGES = {page.__name__: page for page in (states, rights, errors, cli, settings)}


def text_of(name: str) -> str:
    return "\n".join([GENERATED, "", *PAGES[name]()]).rstrip() + "\n"


# The fingerprints of the schema.


def fingerprints() -> str:
    """The module that has them, as the migrations say."""
    lines = "".join(f"    {number}: 0x{found:08X},\n" for number, found in computed().items())
    text = QUERIES.read_text(encoding="utf-8")
    return re.sub(r"(?<=^FINGERPRINTS = \{\n)(.*\n)*?(?=\}$)", lines, text, flags=re.MULTILINE)


def main() -> int:
    stale = []
    if QUERIES.read_text(encoding="utf-8") != fingerprints():
        stale.append("src/dibs/storage/queries.py")
        if "--check" not in sys.argv:
            QUERIES.write_text(fingerprints(), encoding="utf-8")
    for name in PAGES:
        path, wanted = FOLDER / f"{name}.md", text_of(name)
        if path.is_file() and path.read_text(encoding="utf-8") == wanted:
            continue
        stale.append(f"docs/reference/{path.name}")
        if "--check" not in sys.argv:
            FOLDER.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted, encoding="utf-8")
    if "--check" not in sys.argv:
        print("\n".join(f"written: {page}" for page in stale) or "everything was current")
        return 0
    if stale:
        print(f"not current: {', '.join(stale)}; to renew them: make docs")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
