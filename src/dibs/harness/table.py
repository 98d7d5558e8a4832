"""The harnesses: what each calls its events, fields and tools, how it is answered, where it is set up.

Everything that differs between them stands here, as data. The rest is one code for all.
"""

from __future__ import annotations

from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

START, END, BEFORE, CALL, STOP = "start", "end", "before", "call", "stop"
"""What an event means to us: a session begins, ends; an edit is about to be made; a sign of life; the
agent rests."""

CLEAR = "clear"
"""Why a session ends, or how one begins, when the same process goes on with an empty memory."""

PATCH = "*patch*"
"""In the place of a field that holds a path: the field holds a patch that names its files."""

NESTED, FLAT = "nested", "flat"
"""Handlers stand in groups with a matcher, or by themselves."""

TIMEOUT = 10
"""Seconds that a harness waits for us; longer than a board lets a writer wait."""


class Hook(Value):
    """One event that is to be told to us."""

    event: str
    means: str
    matcher: str = ""
    aside: bool = False
    """The harness need not wait for the answer."""


class Harness(Value):
    """One harness."""

    name: str
    title: str
    hooks: tuple[Hook, ...]
    edits: Mapping[str, tuple[str, ...]]
    """Its tools that change files, and the fields of their input that hold paths."""
    session: tuple[str, ...] = ("session_id",)
    agent: tuple[str, ...] = ("agent_id",)
    """Fields that name the session, and a subagent in it: the first that is there."""
    said: str = "hookSpecificOutput"
    """How it is answered: the key of `ANSWERS`."""
    nothing: str = ""
    """What is printed when there is nothing to say."""
    folder: str = ""
    """Where its files are, at home and in a project."""
    file: str = "settings.json"
    layout: str = NESTED
    words: bool = False
    """Commands are given as a list of words, without a shell between."""
    aside: bool = False
    """It knows handlers that it does not wait for."""
    second: int = 1
    """A second in its unit of time."""
    instructions: str = "AGENTS.md"
    shell_file: str = ""
    """The variable with the file whose lines later shell calls begin with."""
    names_session: bool = False
    """Its shells have a variable that names the session."""
    binaries: tuple[str, ...] = ()
    """Programs that are it."""
    packages: tuple[str, ...] = ()
    """Folders in the path of a script that is it."""
    trust: str = ""
    """What a person still has to do before hooks run."""

    def meaning(self, event: str) -> str:
        """What an event means to us, or "" if nothing."""
        return next((hook.means for hook in self.hooks if hook.event == event), "")


FILE = ("file_path",)
ANY_FILE = ("file_path", "path", "target_file", "notebook_path", "target_notebook")


def as_claude(edits: str) -> tuple[Hook, ...]:
    """The events of Claude Code, which Codex has by the same names; which of its tools edit differs."""
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
        "MultiEdit": FILE,  # of earlier versions
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
)  # its hooks are started by the editor, which outlives sessions: no process is it

HARNESSES = {each.name: each for each in (CLAUDE, CODEX, GEMINI, CURSOR)}


# How each is answered. All of them with exit code 0: then what is printed is read as JSON.


def denied(harness: Harness, event: str, reason: str) -> dict[str, Any]:
    """The tool is not run, and the model reads the reason."""
    if harness.said == "permission":
        return {"permission": "deny", "user_message": reason, "agent_message": reason}
    if harness.said == "decision":
        return {"decision": "deny", "reason": reason}
    said = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": {"hookEventName": event, **said}}


def warned(harness: Harness, event: str, text: str) -> dict[str, Any]:
    """The tool is run; the model, or where it cannot be told the person, reads the text."""
    if harness.said == "permission":
        return {"permission": "allow", "user_message": text, "agent_message": text}
    if harness.said == "decision":
        return {"systemMessage": text}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def begun(harness: Harness, event: str, text: str) -> dict[str, Any]:
    """What the model reads when its session begins."""
    if harness.said == "permission":
        return {"additional_context": text}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
