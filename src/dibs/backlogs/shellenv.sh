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
    set -- "$@" "--agent=${DIBS_AGENT:-claude}"
    _dibs_code=0
    case $_dibs_name in
        *claim*) dibs claim "$@" --reserve --ttl 2h </dev/null || _dibs_code=$? ;;
        *)
            _dibs_said=$(dibs release "$@" </dev/null) || _dibs_code=$?
            [ "$_dibs_code" -ne 0 ] || _dibs_in_file "$@" || _dibs_code=$?
            [ -z "$_dibs_said" ] || [ "$_dibs_code" -ne 0 ] || printf '%s\n' "$_dibs_said"
            ;;
    esac
    case $_dibs_code in
        [0-4]) exit "$_dibs_code" ;;
        5) exit 4 ;; # the lock was lost: it is another's, or free for others
    esac
    echo "$_dibs_name: dibs ended with code $_dibs_code, given as 1" >&2
    exit 1
)

# dibs has no lease to give back any more; but another script may have locked the item in its file. What is this
# session's own can be claimed, and given back then; of another session's, the claim says whose it is.
_dibs_in_file() {
    _dibs_id=$1
    shift
    dibs sync "$@" </dev/null >/dev/null 2>&1 || : # what the file says now
    case $(dibs show "$_dibs_id" --json </dev/null) in
        *'"locked": ""'*) return 0 ;;
        *'"locked": "'*) ;;
        *) return 0 ;;
    esac
    if ! dibs claim "$_dibs_id" "$@" --reserve --ttl 2h </dev/null >/dev/null; then
        echo "$_dibs_name: the lock in the file of $_dibs_id stays" >&2
        return 4
    fi
    _dibs_said=$(dibs release "$_dibs_id" "$@" </dev/null)
}
