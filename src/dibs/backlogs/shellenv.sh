# dibs in shell scripts: locks on WRK items, for bash, zsh and any POSIX sh.
#
#   eval "$(dibs shellenv)"
#
#   claim_wrk ID     (or wrk_claim)    locks the item for this session, for two hours; again: renews
#   release_wrk ID   (or wrk_release)  gives the lock back
#
# They return 0 done, 1 refused or failed, 2 usage, 3 a gate is not met, 4 locked by another session;
# nothing else. Why not, and every warning, is said on stderr.
#
# The session is what the function `session_get session_id` prints, if there is one; else the one that
# dibs finds by itself: DIBS_SESSION, or the harness's own. The agent is DIBS_AGENT, else claude.

claim_wrk() { _dibs_wrk claim_wrk "$@"; }
release_wrk() { _dibs_wrk release_wrk "$@"; }
wrk_claim() { _dibs_wrk wrk_claim "$@"; }
wrk_release() { _dibs_wrk wrk_release "$@"; }

# The body is a subshell: no variable, option or trap of the caller changes. The caller may have said
# `set -eu`, so nothing here fails unless it is asked about.
_dibs_wrk() (
    _dibs_name=$1
    shift
    if [ "$#" -ne 1 ] || [ -z "$1" ]; then
        echo "usage: $_dibs_name ID" >&2
        exit 2
    fi
    case $1 in
        -*) echo "usage: $_dibs_name ID; an ID does not begin with -" >&2 && exit 2 ;;
    esac
    if ! command -v dibs >/dev/null 2>&1; then
        echo "$_dibs_name: the command dibs is not found: code 127, given as 1" >&2
        exit 1
    fi
    if command -v session_get >/dev/null 2>&1; then
        _dibs_session=$(session_get session_id) || _dibs_session=
        if [ -z "$_dibs_session" ]; then
            echo "$_dibs_name: session_get session_id names no session" >&2
            exit 2
        fi
        set -- "$1" "--session=$_dibs_session"
    fi
    case $_dibs_name in
        *claim*) set -- claim "$@" --reserve --ttl 2h ;;
        *) set -- release "$@" ;;
    esac
    _dibs_code=0
    dibs "$@" "--agent=${DIBS_AGENT:-claude}" </dev/null || _dibs_code=$?
    case $_dibs_code in
        [0-4]) exit "$_dibs_code" ;;
        5) exit 4 ;; # the lock was lost: it is another's, or free for others
    esac
    echo "$_dibs_name: dibs ended with code $_dibs_code, given as 1" >&2
    exit 1
)
