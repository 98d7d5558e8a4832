"""The shell scripts that git runs as hooks; each calls dibs by the interpreter's absolute path.

A script starts Python only if there is something to check. If dibs is gone, it warns and lets git proceed.
An existing hook runs first, with its arguments and input, and its failure counts.
"""

from __future__ import annotations

MARK = "# dibs hook"
"""A line that begins with this and the name of a hook marks a file as ours."""

END = "# dibs hook ends here: what is added below is kept, and never run"
"""Everything below this line belongs to the user."""

COMMIT, MESSAGE, WRITTEN, REFS, RECEIVE, PASS = (
    "commit", "message", "written", "refs", "receive", "pass",
)  # fmt: skip

WORK = {
    "pre-commit": COMMIT,
    "prepare-commit-msg": MESSAGE,
    "commit-msg": WRITTEN,
    "reference-transaction": REFS,
}
"""Hooks of a repository with a work tree."""

SHARED = {"pre-receive": RECEIVE}
"""Hooks of a repository that others push to."""

OTHERS = (
    "applypatch-msg", "pre-applypatch", "post-applypatch", "pre-merge-commit", "post-commit",
    "pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-auto-gc", "post-rewrite",
    "sendemail-validate", "post-index-change", "pre-receive", "post-receive", "update",
    "post-update",
)  # fmt: skip
"""Hooks that are only forwarded, for the way `path`, where our folder replaces the user's.

Hooks whose mere presence changes git's behaviour are left out.
"""

HEAD = """#!/bin/sh
{mark} {name}: installed by `dibs setup git`, removed by `dibs setup git --remove`
case $0 in */*) here=${{0%/*}} ;; *) here=. ;; esac
before={before}
"""

BEFORE = """
if [ -n "$before" ] && [ -x "$before" ]; then "$before" "$@" || exit; fi
"""

BEFORE_ALONE = """
if [ -n "$before" ] && [ -x "$before" ]; then exec "$before" "$@"; fi
exit 0
"""

BEFORE_WITH_INPUT = """
if [ -n "$before" ] && [ -x "$before" ]; then
  input=$(cat)
  if [ -n "$input" ]; then printf '%s\\n' "$input"; fi | "$before" "$@" || exit
  read_before=1
fi
"""

WHERE = """
case $here in */*) above=${here%/*} ;; .) above=.. ;; *) above=. ;; esac
board=${DIBS_BOARD:-$above/dibs}
[ -n "${DIBS_BOARD-}${DIBS_URL-}" ] || [ -e "$board/board.db" ] || [ -e "$board/settings.toml" ] ||
  [ -e "$board/board.id" ] || [ -e "$board/on-server" ] || { [ -d "$board" ] && [ ! -x "$board" ]; } || exit 0
"""

INPUT = """
[ -n "${read_before-}" ] || input=$(cat)
"""

FENCED = """
fenced=${DIBS_URL-}
[ ! -e "$board/on-server" ] || fenced=1
if [ -f "$board/settings.toml" ] && [ -r "$board/settings.toml" ]; then
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in *fence_refs*true*) fenced=1 ;; esac
  done < "$board/settings.toml"
fi
[ -n "$fenced" ] || exit 0
"""

START = """
python={python}
code=127
if [ -x "$python" ]; then
  {feed}"$python" -E -P -c '
import gc, os, sys
gc.disable()
source = sys.argv.pop(1)
if source:
    sys.path.insert(0, source)
try:
    from dibs.cli.main import main
except BaseException:
    os._exit(127)
code = main()
for stream in (sys.stdout, sys.stderr):
    try:
        stream.flush()
    except Exception:
        pass
os._exit(code and 100 + code)
' {source} guard {words}
  code=$?
fi
case $code in
  0) exit 0 ;;
  101 | 10[345] | 17[45] | 230) exit $((code - 100)) ;;
esac
{quiet}echo "dibs: not guarded by the board: $python does not run dibs (dibs setup git repairs it)" >&2
exit 0
"""
"""Refusals get exit codes of their own, so that a broken interpreter is not mistaken for one.

The caller's environment cannot choose the code that runs: neither PYTHONPATH nor the current folder counts.
Packages of the user (`pip install --user`) are still found.
"""

QUIET = """
warned=
set -f
set -- $(ps -o args= -p "$PPID" 2>/dev/null)
case ${1-} in git | */git) if [ "${2-}" = commit ]; then warned=1; fi ;; esac
for word in "$@"; do
  case $word in --no-v* | -n* | -[!-]*n*) warned= ;; esac
done
[ -z "$warned" ] || exit 0
"""
"""For hooks after `pre-commit`: if git certainly ran that, it has printed the same warning."""

AFTER = (MESSAGE, WRITTEN, REFS)

GUARDS = {
    COMMIT: (BEFORE + WHERE, "", "commit"),
    MESSAGE: (
        BEFORE
        + WHERE
        + """
case ${2-} in
  message | commit) if [ -e "$1.dibs" ]; then rm -f "$1.dibs"; fi ;;
  '' | template) cp "$1" "$1.dibs"; exit 0 ;;
  *) exit 0 ;;
esac
""",
        "",
        'message "$1" "$2" "${3-}"',
    ),
    WRITTEN: (
        BEFORE
        + """
[ -e "$1.dibs" ] || exit 0
touched=1
if cmp -s "$1" "$1.dibs"; then touched=; fi
rm -f "$1.dibs"
[ -n "$touched" ] || exit 0
"""
        + WHERE,
        "",
        'message "$1" written',
    ),
    REFS: (
        """
if [ "$1" != prepared ]; then
  if [ -n "$before" ] && [ -x "$before" ]; then exec "$before" "$@"; fi
  exit 0
fi
"""
        + BEFORE_WITH_INPUT
        + WHERE
        + FENCED
        + INPUT
        + """
case $input in *" refs/heads/"*) ;; *) exit 0 ;; esac
""",
        "printf '%s\\n' \"$input\" | ",
        "refs prepared",
    ),
    RECEIVE: (
        BEFORE_WITH_INPUT + WHERE + INPUT,
        "printf '%s\\n' \"$input\" | ",
        "receive",
    ),
}
"""For each guard: shell code before Python starts, its standard input, and its arguments."""

CHAINED = ".before-dibs"
ADDED = ".added-to-dibs"


def shim(name: str, does: str, before: str, python: str, source: str = "") -> str:
    """The text of a hook. `before`: the hook to run first, quoted for `sh`; `''` if none.

    `source`: the folder of dibs, if the interpreter does not find it by itself.
    """
    head = HEAD.format(mark=MARK, name=name, before=before)
    if does == PASS:
        return f"{head}{BEFORE_ALONE}{END}\n"
    first, feed, words = GUARDS[does]
    quiet = QUIET if does in AFTER else ""
    start = START.format(
        python=quoted(python), feed=feed, source=quoted(source), words=words, quiet=quiet
    )
    return f"{head}{first}{start}{END}\n"


def added_to(text: str) -> str:
    """What the user added below the end of our hook."""
    return text.partition(f"\n{END}\n")[2]


def quoted(text: str) -> str:
    from shlex import quote

    return quote(text)


def chained(name: str, number: int = 0, end: str = CHAINED) -> str:
    """The name of a file kept beside our hook: the previous hook, or what was added to ours."""
    return f"{name}{end}{'' if number < 2 else f'-{number}'}"


def beside(kept: str) -> str:
    """A hook in the same folder, even if that is moved."""
    return f"$here/{kept}"


def kept_by(text: str) -> str:
    """The name of the hook that ours is chained to, in the same folder; "" if none."""
    start = "before=$here/"
    return next((line[len(start) :] for line in text.splitlines() if line.startswith(start)), "")


def forwards_to(text: str, name: str) -> str:
    """The folder of hooks that our hook in a folder of its own forwards to; "" if none."""
    from shlex import split

    line = next((line for line in text.splitlines() if line.startswith("before=")), "")
    return "".join(split(line)).removeprefix("before=").removesuffix(f"/{name}")


def is_ours(text: str, name: str) -> bool:
    return f"\n{MARK} {name}:" in text
