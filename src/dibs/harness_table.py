"""The table of agent harnesses: everything that differs between them is data here, and nowhere else.

A harness with `hooks` can be set up; of the others only the environment variables are known, by which an
agent is distinguished from a person. Every command reads those, so this module imports nothing but `Value`.
"""

from __future__ import annotations

from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

START, END, BEFORE, CALL, STOP = "start", "end", "before", "call", "stop"
"""Meanings of events: session start, session end, before an edit, sign of life, agent idle."""

CLEAR = "clear"
"""Source of a session start or reason of an end: the same process continues with an empty context."""

PATCH = "*patch*"
"""Marks fields that hold a patch naming its files, instead of a path."""

NESTED, FLAT = "nested", "flat"
"""Layout of a settings file: handlers in groups with a matcher, or by themselves."""

SPECIFIC, DECISION, PERMISSION = "hookSpecificOutput", "decision", "permission"
"""Formats of replies to a hook event."""

TIMEOUT = 10
"""Seconds that a harness waits for a hook; longer than a writer waits for the board's lock."""


class Hook(Value):
    """A subscription to one event."""

    event: str
    means: str
    matcher: str = ""
    in_background: bool = False
    """The harness need not wait for the reply, if it supports that."""


class Harness(Value):
    """One harness: variables, events, formats and files."""

    name: str
    marks: tuple[str, ...] = ()
    """Environment variables that show that a process runs inside it."""
    session: str = ""
    """The variable with the session id."""
    parent_session: str = ""
    """The variable with the id of the parent session, if the harness has subsessions."""
    title: str = ""
    # Hook events.
    hooks: tuple[Hook, ...] = ()
    edits: Mapping[str, tuple[str, ...]] = {}
    """Tools that change files, and the input fields that hold paths."""
    session_fields: tuple[str, ...] = ("session_id",)
    subagent_fields: tuple[str, ...] = ("agent_id",)
    """Fields that name the session, and a subagent in it; the first one present counts."""
    reply_format: str = SPECIFIC
    empty_reply: str = ""
    """The reply when there is nothing to report."""
    shell_file: str = ""
    """The variable with the path of a file that later shell commands source."""
    session_in_shells: bool = False
    """Whether `session` is set in its shell commands, not only in its hooks."""
    binaries: tuple[str, ...] = ()
    """Names of its executables."""
    packages: tuple[str, ...] = ()
    """Folders in the path of its script."""
    # Setup.
    folder: str = ""
    """Its folder in the home folder and in a project."""
    home: str = ""
    """The variable that moves the folder in the home folder."""
    file: str = "settings.json"
    layout: str = NESTED
    argument_lists: bool = False
    """Whether commands are lists of arguments, run without a shell."""
    background_hooks: bool = False
    """Whether it can run a hook without waiting for it."""
    timeout_second: int = 1
    """One second in the unit of its timeouts."""
    instructions: str = "AGENTS.md"
    sandbox: str = ""
    """The file in its home folder that lists the folders that its sandbox may write to."""
    trust: str = ""
    """What a person must do before hooks run."""

    def meaning(self, event: str) -> str:
        """The meaning of an event; "" if it has none for us."""
        return next((hook.means for hook in self.hooks if hook.event == event), "")


FILE = ("file_path",)
ANY_FILE = ("file_path", "path", "target_file", "notebook_path", "target_notebook")


def claude_hooks(edits: str) -> tuple[Hook, ...]:
    """The events of Claude Code, which Codex shares. The names of edit tools differ."""
    return (
        Hook("SessionStart", START),
        Hook("PreToolUse", BEFORE, edits),
        Hook("PostToolUse", CALL, in_background=True),
        Hook("UserPromptSubmit", CALL, in_background=True),
        Hook("Stop", STOP, in_background=True),
        Hook("SubagentStop", CALL, in_background=True),
        Hook("SessionEnd", END),
    )


CLAUDE = Harness(
    name="claude",
    marks=("CLAUDECODE", "CLAUDE_CODE", "CLAUDE_CODE_SESSION_ID"),
    session="CLAUDE_CODE_SESSION_ID",
    title="Claude Code",
    hooks=claude_hooks("Edit|MultiEdit|Write|NotebookEdit"),
    edits={
        "Edit": FILE,
        "MultiEdit": FILE,  # earlier versions
        "Write": FILE,
        "NotebookEdit": ("notebook_path",),
    },
    shell_file="CLAUDE_ENV_FILE",
    session_in_shells=True,
    binaries=("claude",),
    packages=("claude-code",),
    folder=".claude",
    home="CLAUDE_CONFIG_DIR",
    argument_lists=True,
    background_hooks=True,
    instructions="CLAUDE.md",
)
CODEX = Harness(
    name="codex",
    marks=(
        "CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_SANDBOX", "CODEX_CI",
        "CODEX_SANDBOX_NETWORK_DISABLED",
    ),
    session="CODEX_THREAD_ID",
    parent_session="CODEX_SESSION_ID",
    title="Codex CLI",
    hooks=claude_hooks("apply_patch|Edit|Write"),
    edits={"apply_patch": (PATCH, "command", "input"), "Edit": FILE, "Write": FILE},
    session_in_shells=True,
    binaries=("codex",),
    folder=".codex",
    home="CODEX_HOME",
    file="hooks.json",
    background_hooks=True,
    sandbox="config.toml",
    trust="Codex runs hooks only after you have reviewed and trusted them: start codex, then /hooks",
)  # fmt: skip
GEMINI = Harness(
    name="gemini",
    marks=("GEMINI_CLI", "GEMINI_SESSION_ID"),
    session="GEMINI_SESSION_ID",
    title="Gemini CLI",
    hooks=(
        Hook("SessionStart", START),
        Hook("BeforeTool", BEFORE, "write_file|replace"),
        Hook("AfterTool", CALL),
        Hook("BeforeAgent", CALL),
        Hook("AfterAgent", STOP),
        Hook("SessionEnd", END),
    ),
    edits={"write_file": FILE, "replace": FILE},
    reply_format=DECISION,
    empty_reply="{}",
    binaries=("gemini",),
    packages=("gemini-cli",),
    folder=".gemini",
    timeout_second=1000,
    instructions="GEMINI.md",
)
CURSOR = Harness(
    name="cursor",
    marks=("CURSOR_AGENT",),  # CURSOR_TRACE_ID is set in a person's terminal too
    title="Cursor",
    hooks=(
        Hook("sessionStart", START),
        Hook("preToolUse", BEFORE, "Write|Edit|StrReplace|Delete|EditNotebook"),
        Hook("postToolUse", CALL),
        Hook("beforeSubmitPrompt", CALL),
        Hook("stop", STOP),
        Hook("subagentStop", CALL),
        Hook("sessionEnd", END),
    ),
    edits=dict.fromkeys(("Write", "Edit", "StrReplace", "Delete", "EditNotebook"), ANY_FILE),
    session_fields=("conversation_id", "session_id"),
    subagent_fields=("subagent_id",),
    reply_format=PERMISSION,
    empty_reply="{}",
    folder=".cursor",
    file="hooks.json",
    layout=FLAT,
)  # no binaries: the editor starts its hooks and outlives sessions, so no process identifies one

KNOWN = (
    CLAUDE,
    CODEX,
    GEMINI,
    CURSOR,
    Harness("cline", ("CLINE_ACTIVE",)),
    Harness("augment", ("AUGMENT_AGENT",)),
    Harness("opencode", ("OPENCODE", "OPENCODE_CLIENT")),
    Harness("antigravity", ("ANTIGRAVITY_AGENT",)),
    Harness("junie", ("JUNIE_DATA",)),
    Harness("any", ("AI_AGENT",)),
)
"""All harnesses, in the order in which their variables count."""

HARNESSES = {each.name: each for each in KNOWN if each.hooks}
"""Harnesses that can be set up, by name."""
