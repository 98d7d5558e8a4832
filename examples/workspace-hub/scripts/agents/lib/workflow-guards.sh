# Gates in front of a work item, and its lock. To be sourced: . scripts/agents/lib/workflow-guards.sh
#
#   wrk_gate ID       0 it may be begun; 1 not ready or blocked; 2 usage, no such item; 3 the plan gate
#   claim_wrk ID      as wrk_gate, and 4 locked by another session (from dibs shellenv)
#   release_wrk ID    gives the lock back

_wrk_library=$(dibs shellenv) || return 1
eval "$_wrk_library"

# What is started from here acts for the same agent and session: its own dibs calls meet no foreign lock.
export DIBS_AGENT="${DIBS_AGENT:-claude}"
if command -v session_get >/dev/null 2>&1; then
    DIBS_SESSION=$(session_get session_id)
    export DIBS_SESSION
fi

# The items of the main work tree: dibs writes those, whichever work tree it is called in.
wrk_queue() {
    echo "$(dirname "$(git rev-parse --path-format=absolute --git-common-dir)")/.claude/work-queue"
}

wrk_file() {
    find "$(wrk_queue)" -type f -name "$1.md" | sort | head -n 1
}

# wrk_field FILE NAME: the value in the frontmatter, without quotes.
wrk_field() {
    sed -n -e '1d' -e '/^---[[:space:]]*$/q' -e "s/^$2:[[:space:]]*//p" "$1" | tr -d "\"'" | head -n 1
}

wrk_gate() (
    case ${1-} in
        WRK-*[!0-9A-Za-z_-]*) item= ;;
        WRK-*) item=$(wrk_file "$1") ;;
        *) item= ;;
    esac
    if [ "$#" -ne 1 ] || [ -z "$item" ]; then
        echo "usage: wrk_gate ID, of an item below $(wrk_queue)" >&2
        return 2
    fi
    state=$(wrk_field "$item" status)
    case $state in
        pending | ready | working) ;;
        *) echo "$1 is not ready: its status is $state" >&2 && return 1 ;;
    esac
    case $(wrk_field "$item" plan_approved) in
        '' | true | yes) ;;
        *) echo "$1: its plan is not approved" >&2 && return 3 ;;
    esac
)
