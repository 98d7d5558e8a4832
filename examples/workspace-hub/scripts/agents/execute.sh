#!/usr/bin/env bash
# execute.sh ID COMMAND [ARGUMENT ...]: runs the command while this session holds the lock of the item.
#
# Ends with the code of the command; or, before it was started, with that of a gate: 1 not ready,
# 2 usage, 3 the plan gate, 4 locked by another session. The lock is given back however it ends, but
# for SIGKILL: then its age (two hours) frees it.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ ! -r "$here/lib/session-store.sh" ] || . "$here/lib/session-store.sh"
. "$here/lib/workflow-guards.sh"

RENEW_EVERY=${WRK_RENEW_EVERY:-1800} # seconds; well below the two hours of a lock
END_AT_MOST=100                      # tenths of a second for the command to end, after SIGTERM

if [ "$#" -lt 2 ]; then
    echo "usage: execute.sh ID COMMAND [ARGUMENT ...]" >&2
    exit 2
fi
id=$1
shift

# Work that takes longer keeps its lock; work whose lock was lost is ended.
renew_meanwhile() {
    local code
    while sleep "$RENEW_EVERY" && kill -0 "$1" 2>/dev/null; do
        code=0
        dibs renew "$id" >/dev/null || code=$?
        case $code in
            4 | 5)
                echo "execute.sh: the lock of $id is lost: $id is stopped" >&2
                kill -s TERM "$1"
                return
                ;;
        esac
    done
}

# Each job is a process group of its own (set -m): what the command started ends with it.
end_jobs() {
    local job tenths=0
    for job in $(jobs -p); do
        kill -s TERM -- "-$job" 2>/dev/null || continue
        while kill -0 -- "-$job" 2>/dev/null && [ "$tenths" -lt "$END_AT_MOST" ]; do
            sleep 0.1
            tenths=$((tenths + 1))
        done
        kill -s KILL -- "-$job" 2>/dev/null || :
    done
}

finish() {
    local code=$?
    trap '' INT TERM HUP
    end_jobs
    if [ "$claimed" = yes ]; then
        release_wrk "$id" >&2 || echo "execute.sh: $id was not released" >&2
    fi
    exit "$code"
}

claimed=no
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

wrk_gate "$id"
claimed=yes # from here on it may be ours, even if a signal comes before the answer
claim_wrk "$id" >&2 || {
    code=$?
    claimed=no
    exit "$code"
}

set -m
renew_meanwhile "$$" </dev/null >/dev/null &
[ ! -t 0 ] || exec </dev/null # a job in the background may not read from the terminal
"$@" <&0 &
set +m
wait "$!"
