"""Table of harnesses: events, fields, tools, reply formats and configuration files of each.

All differences between harnesses are data here; the rest of the code is the same for all.
"""

from __future__ import annotations

from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

START, END, BEFORE, CALL, STOP = "start", "end", "before", "call", "stop"
"""Meanings of events: session start, session end, before an edit, sign of life, agent idle."""

CLEAR = "clear"
"""Source of a session start or reason of an end: the same process continues with an empty context."""

PATCH = "*patch*"
"""Marks fields that hold a patch naming its files, instead of a path."""

NESTED, FLAT = "nested", "flat"
"""Layout of a settings file: handlers in groups with a matcher, or by themselves."""

TIMEOUT = 10
"""Seconds that the harness waits for a hook; longer than a writer waits for the board's lock."""


class Hook(Value):
    """A subscription to one event."""

    event: str
    means: str
    matcher: str = ""
    aside: bool = False
    """The harness need not wait for the reply (asynchronous)."""


class Harness(Value):
    """One harness: names, formats and files."""

    name: str
    title: str
    hooks: tuple[Hook, ...]
    edits: Mapping[str, tuple[str, ...]]
    """Tools that change files, and the input fields that hold paths."""
    session: tuple[str, ...] = ("session_id",)
    agent: tuple[str, ...] = ("agent_id",)
    """Fields that name the session, and a subagent in it; the first one present counts."""
    said: str = "hookSpecificOutput"
    """Format of its replies; see `denied`, `warned` and `begun`."""
    nothing: str = ""
    """The reply when there is nothing to report."""
    folder: str = ""
    """Its folder in the home folder and in a project."""
    file: str = "settings.json"
    layout: str = NESTED
    words: bool = False
    """Whether commands are lists of arguments, run without a shell."""
    aside: bool = False
    """Whether it supports asynchronous handlers."""
    second: int = 1
    """One second in the unit of its timeouts."""
    instructions: str = "AGENTS.md"
    shell_file: str = ""
    """The variable with the path of a file that is sourced by later shell commands."""
    names_session: bool = False
    """Whether its shells have a variable that names the session."""
    binaries: tuple[str, ...] = ()
    """Names of its executables."""
    packages: tuple[str, ...] = ()
    """Folders in the path of its script."""
    trust: str = ""
    """What a person must do before hooks run."""

    def meaning(self, event: str) -> str:
        """The meaning of an event; "" if it has none for us."""
        return next((hook.means for hook in self.hooks if hook.event == event), "")


FILE = ("file_path",)
ANY_FILE = ("file_path", "path", "target_file", "notebook_path", "target_notebook")


def as_claude(edits: str) -> tuple[Hook, ...]:
    """The events of Claude Code, which Codex shares. The names of edit tools differ."""
    return (
        Hook("SessionStart", START),
        Hook("PreToolUse", BEFORE, edits),
        Hook("PostToolUse", CALL, aside=True),
        Hook("UserPromptSubmit", CALL, aside=True),
        Hook("Stop", STOP, aside=True),
        Hook("SubagentStop", CALL, aside=True),
        Hook("SessionEnd", END),
    )


CLAUDE = Harness(
    name="claude",
    title="Claude Code",
    hooks=as_claude("Edit|MultiEdit|Write|NotebookEdit"),
    edits={
        "Edit": FILE,
        "MultiEdit": FILE,  # earlier versions
        "Write": FILE,
        "NotebookEdit": ("notebook_path",),
    },
    folder=".claude",
    words=True,
    aside=True,
    instructions="CLAUDE.md",
    shell_file="CLAUDE_ENV_FILE",
    names_session=True,
    binaries=("claude",),
    packages=("claude-code",),
)
CODEX = Harness(
    name="codex",
    title="Codex CLI",
    hooks=as_claude("apply_patch|Edit|Write"),
    edits={"apply_patch": (PATCH, "command", "input"), "Edit": FILE, "Write": FILE},
    folder=".codex",
    file="hooks.json",
    aside=True,
    names_session=True,
    binaries=("codex",),
    trust="Codex runs hooks only after you have reviewed and trusted them: start codex, then /hooks",
)
GEMINI = Harness(
    name="gemini",
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
    said="decision",
    nothing="{}",
    folder=".gemini",
    second=1000,
    instructions="GEMINI.md",
    binaries=("gemini",),
    packages=("gemini-cli",),
)
CURSOR = Harness(
    name="cursor",
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
    session=("conversation_id", "session_id"),
    agent=("subagent_id",),
    said="permission",
    nothing="{}",
    folder=".cursor",
    file="hooks.json",
    layout=FLAT,
)  # no binaries: the editor starts its hooks and outlives sessions, so no process identifies one

HARNESSES = {each.name: each for each in (CLAUDE, CODEX, GEMINI, CURSOR)}


# Replies, all with exit code 0: then the harness parses stdout as JSON.


def denied(harness: Harness, event: str, reason: str) -> dict[str, Any]:
    """The reply that denies a tool call; the model reads the reason."""
    if harness.said == "permission":
        return {"permission": "deny", "user_message": reason, "agent_message": reason}
    if harness.said == "decision":
        return {"decision": "deny", "reason": reason}
    said = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": {"hookEventName": event, **said}}


def warned(harness: Harness, event: str, text: str) -> dict[str, Any]:
    """The reply that allows a tool call with a warning to the model (or to the person, if it cannot)."""
    if harness.said == "permission":
        return {"permission": "allow", "user_message": text, "agent_message": text}
    if harness.said == "decision":
        return {"systemMessage": text}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def session_context(harness: Harness, event: str, text: str) -> dict[str, Any]:
    """The reply that gives the model its context at session start."""
    if harness.said == "permission":
        return {"additional_context": text}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
