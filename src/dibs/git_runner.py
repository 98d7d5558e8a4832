"""The only place that starts git: with a timeout, and with everything off by which it starts programs.

A repository's configuration can name programs: hooks, a file system monitor, filters, diff and credential
helpers. Its objects can be replaced by others. None of that is obeyed here, whoever's repository it is.

Guards run before every commit: `posix_spawn` costs a third of what `subprocess` costs to load.
"""

from __future__ import annotations

import os
import time

from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 60
"""How long git may take, unless somebody says otherwise."""

CHUNK = 1 << 16
TIMED_OUT, NO_GIT, NO_STATUS = 124, 127, 1

OFF = (
    "--no-pager",
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "log.showSignature=false"),
)
"""Options of git itself, before every command but `config`, which starts nothing."""

FIXED = {
    "GIT_OPTIONAL_LOCKS": "0",  # nothing is written only because somebody looked
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
}
OFFLINE = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
"""Objects that are missing are not fetched, which would start helpers."""

OBJECTS_ONLY = (
    "--version", "rev-parse", "rev-list", "log", "merge-base", "diff-tree", "ls-tree",
    "interpret-trailers",
)  # fmt: skip
FILTER = ("clean", "smudge", "process", "required")

EMPTY = "DIBS_EMPTY"
"""A variable without a value: `--config-env` takes names of settings that contain `=`."""

CONFIGURED = (
    "GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_",
)  # fmt: skip
"""How variables begin with which the caller chose a git and its configuration."""

REDIRECTS = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH", "GIT_SHALLOW_FILE", "GIT_NAMESPACE",
    "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM",
)  # fmt: skip
"""Variables with which git names the repository to its hooks. Nothing else of git's is passed on."""


class Tree(Value):
    """A work tree and its git directory, both stated: git looks for neither."""

    git_dir: str
    work_tree: str

    @property
    def options(self) -> tuple[str, ...]:
        stated = (f"--git-dir={self.git_dir}",)
        return (*stated, f"--work-tree={self.work_tree}") if self.work_tree else stated


def git(
    *words: str,
    tree: Tree | None = None,
    seconds: float = SECONDS,
    errors: bool = False,
    checkout: bool = False,
) -> tuple[int, bytes]:
    """Exit code and output, with the complaints in it if `errors`.

    In the repository around the current directory, or the one that git named to a hook; or in `tree`.
    `checkout`: files are written as the repository is configured to have them, which takes its filters,
    and what must be fetched.
    """
    options = () if reads_objects_only(words) else tuple(drivers_off(tree, filters=not checkout))
    where = tree.options if tree is not None else ()
    around = environment(tree is None, checkout)
    return start((*OFF, *options, *where, *words), around, seconds, errors)


def reads_objects_only(words: tuple[str, ...]) -> bool:
    """Whether no file of a work tree is read or written, so that no filter could be run."""
    return words[0] in OBJECTS_ONLY or words[:2] == ("diff", "--cached")


def config(*words: str, tree: Tree | None = None, folder: str = "") -> tuple[int, bytes]:
    """What `git config` says: of the repository around the current directory, of `tree`, or of `folder`."""
    where = ("-C", folder) if folder else () if tree is None else tree.options
    around = environment(tree is None and not folder)
    return start((*where, "config", *words), around, SECONDS, errors=False)


def line(*words: str) -> str:
    """One line of output; "" if git failed."""
    return text_of(*git(*words))


def setting(name: str) -> str:
    """A setting, as the caller's git sees it; "" if there is none."""
    return text_of(*config("--get", name))


def text_of(status: int, out: bytes) -> str:
    return os.fsdecode(out).strip("\n") if status == 0 else ""


def drivers_off(tree: Tree | None, *, filters: bool) -> Iterator[str]:
    """Options that switch off every hook that a configuration names, and the filters too if asked to."""
    _, names = config("--list", "--name-only", "-z", tree=tree)
    for name in dict.fromkeys(os.fsdecode(names).split("\0")):
        section, _, rest = name.partition(".")
        driver, _, key = rest.rpartition(".")
        if section == "filter" and key in FILTER and filters:
            yield f"--config-env={name}={EMPTY}"
        elif section == "hook" and key == "command":
            yield f"--config-env=hook.{driver}.enabled={EMPTY}"


def environment(redirects: bool, checkout: bool = False) -> dict[str, str]:
    """The caller's, of git's own variables only what is needed. `redirects`: also which repository."""
    kept = CONFIGURED + REDIRECTS if redirects else CONFIGURED
    around = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_")
        or name.startswith(kept)
        or (checkout and name not in REDIRECTS)
    }
    return {**around, **FIXED, **({} if checkout else OFFLINE), EMPTY: ""}


def start(
    words: tuple[str, ...], around: dict[str, str], seconds: float, errors: bool
) -> tuple[int, bytes]:
    """Starts git in a process group of its own, and kills that when the time is over."""
    ours, theirs = os.pipe()
    complaints = (
        (os.POSIX_SPAWN_DUP2, 1, 2)
        if errors
        else (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)
    )
    try:
        child = os.posix_spawnp(
            "git",
            ["git", *words],
            around,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, theirs, 1),  # first: one of the others may take its place
                complaints,
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            ],
            setpgroup=0,
        )
    except (OSError, ValueError):  # not there; or a word that holds a NUL
        os.close(ours)
        return NO_GIT, b""
    finally:
        os.close(theirs)
    return output_of(child, ours, seconds)


def output_of(child: int, end: int, seconds: float) -> tuple[int, bytes]:
    out = None
    try:
        out = read_until(end, time.monotonic() + seconds)
    finally:
        os.close(end)
        if out is None:
            kill(child)
        status = exit_code(child)
    return (status, out) if out is not None else (TIMED_OUT, b"")


def read_until(end: int, deadline: float) -> bytes | None:
    """All that is written there; nothing if it did not end in time."""
    from select import POLLIN, poll

    poller = poll()
    poller.register(end, POLLIN)
    parts: list[bytes] = []
    while poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
        part = os.read(end, CHUNK)
        if not part:
            return b"".join(parts)
        parts.append(part)
    return None


def kill(child: int) -> None:
    from contextlib import suppress
    from signal import SIGKILL

    with suppress(ProcessLookupError):
        os.killpg(child, SIGKILL)


def exit_code(child: int) -> int:
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except ChildProcessError:  # whoever uses the library ignores its children
        return NO_STATUS
