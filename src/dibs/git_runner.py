"""The only place that starts git: with a timeout, and with every feature off by which git runs programs.

A repository's configuration can name programs: hooks, a file system monitor, filters, diff and credential
helpers. Its objects can be replaced by others. All of that is disabled here, for every repository.

Guards run before every commit: `posix_spawn` costs a third of loading `subprocess`.
"""

from __future__ import annotations

import os
import time

from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 60
"""Default timeout of git."""

CHUNK = 1 << 16
TIMED_OUT, NO_GIT, NO_STATUS = 124, 127, 1

OFF = (
    "--no-pager",
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "log.showSignature=false"),
)
"""Global options of git before every command except `config`, which runs no programs."""

FIXED = {
    "GIT_OPTIONAL_LOCKS": "0",  # read-only commands write nothing
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
}
OFFLINE = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
"""Does not fetch missing objects, which would start helpers."""

OBJECTS_ONLY = (
    "--version", "rev-parse", "rev-list", "log", "merge-base", "diff-tree", "ls-tree",
)  # fmt: skip
FILTER = ("clean", "smudge", "process", "required")

EMPTY = "DIBS_EMPTY"
"""An empty variable: `--config-env` accepts setting names that contain `=`."""

CONFIGURED = (
    "GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_",
)  # fmt: skip
"""Prefixes of the variables by which the caller chose a git and its configuration."""

REDIRECTS = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH", "GIT_SHALLOW_FILE", "GIT_NAMESPACE",
    "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM",
)  # fmt: skip
"""Variables by which git names the repository to its hooks. No other variable of git is passed on."""


class Tree(Value):
    """A work tree and its git directory, both explicit: git searches for neither."""

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
    fed: bytes = b"",
) -> tuple[int, bytes]:
    """Exit code and output, including stderr if `errors`. `fed` is the standard input.

    Runs in the repository around the current directory, the one that git named to a hook, or `tree`.
    `checkout`: writes files as the repository configures them, which runs its filters and fetches what is
    missing.
    """
    options = () if reads_objects_only(words) else tuple(drivers_off(tree, filters=not checkout))
    where = tree.options if tree is not None else ()
    around = environment(tree is None, checkout)
    return start((*OFF, *options, *where, *words), around, seconds, errors, fed)


def edit_trailers(*words: str, comment: str) -> tuple[int, bytes]:
    """`git interpret-trailers` without any configuration: `trailer.*.command` would start programs.

    `comment`: what lines of comment start with in the message, as the repository is configured.
    """
    around = {
        name: value
        for name, value in environment(redirects=False).items()
        if not name.startswith("GIT_CONFIG")
    }
    around |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    options = ("-c", f"core.commentChar={comment}", f"--git-dir={os.devnull}")
    return start((*OFF, *options, "interpret-trailers", *words), around, SECONDS, errors=False)


def reads_objects_only(words: tuple[str, ...]) -> bool:
    """Whether the command neither reads nor writes files of a work tree, so that no filter could run."""
    return words[0] in OBJECTS_ONLY or words[:2] == ("diff", "--cached")


def config(*words: str, tree: Tree | None = None, folder: str = "") -> tuple[int, bytes]:
    """Runs `git config` for the repository around the current directory, for `tree`, or for `folder`."""
    where = ("-C", folder) if folder else () if tree is None else tree.options
    around = environment(tree is None and not folder)
    return start((*where, "config", *words), around, SECONDS, errors=False)


def line(*words: str) -> str:
    """One line of output; "" if git failed."""
    return text_of(*git(*words))


def setting(name: str) -> str:
    """The value of a setting as the caller's git sees it; "" if unset."""
    return text_of(*config("--get", name))


def text_of(status: int, out: bytes) -> str:
    return os.fsdecode(out).strip("\n") if status == 0 else ""


def drivers_off(tree: Tree | None, *, filters: bool) -> Iterator[str]:
    """Options that disable every configured hook, and with `filters` also the filters."""
    _, names = config("--list", "--name-only", "-z", tree=tree)
    for name in dict.fromkeys(os.fsdecode(names).split("\0")):
        section, _, rest = name.partition(".")
        driver, _, key = rest.rpartition(".")
        if section == "filter" and key in FILTER and filters:
            yield f"--config-env={name}={EMPTY}"
        elif section == "hook" and key == "command":
            yield f"--config-env=hook.{driver}.enabled={EMPTY}"


def environment(redirects: bool, checkout: bool = False) -> dict[str, str]:
    """The caller's environment, with few variables of git. `redirects`: also the repository."""
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
    words: tuple[str, ...], around: dict[str, str], seconds: float, errors: bool, fed: bytes = b""
) -> tuple[int, bytes]:
    """Starts git in its own process group, and kills the group after the timeout."""
    ours, theirs = os.pipe()
    given = file_with(fed) if fed else -1
    source = (
        (os.POSIX_SPAWN_DUP2, given, 0)
        if fed
        else (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    )
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
                (os.POSIX_SPAWN_DUP2, theirs, 1),  # first: another one may reuse its number
                complaints,
                source,
            ],
            setpgroup=0,
        )
    except (OSError, ValueError):  # not installed, or an argument contains NUL
        os.close(ours)
        return NO_GIT, b""
    finally:
        os.close(theirs)
        if fed:
            os.close(given)
    return output_of(child, ours, seconds)


def file_with(text: bytes) -> int:
    """A descriptor to read the text from. A file, not a pipe: git may write before it has read all."""
    from fcntl import F_DUPFD_CLOEXEC, fcntl
    from tempfile import TemporaryFile

    with TemporaryFile() as file:
        file.write(text)
        file.seek(0)
        return fcntl(file, F_DUPFD_CLOEXEC, 3)  # not 0 to 2, which git gets new ones for


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
    """Reads to the end of the stream; None after the deadline."""
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
    except ChildProcessError:  # the program that uses the library ignores SIGCHLD
        return NO_STATUS
