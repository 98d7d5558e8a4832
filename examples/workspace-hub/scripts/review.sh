#!/usr/bin/env bash
# review.sh ID [NOTE]: the item is done. Marks it complete, moves it to the archive, gives the lock back.
#
# Exit: 1 it cannot be completed, 2 usage, 3 a gate, 4 locked by another session.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ ! -r "$here/agents/lib/session-store.sh" ] || . "$here/agents/lib/session-store.sh"
. "$here/agents/lib/workflow-guards.sh"

if [ "$#" -lt 1 ] || [ "$#" -gt 2 ]; then
    echo "usage: review.sh ID [NOTE]" >&2
    exit 2
fi
id=$1

finish() {
    local code=$?
    trap '' INT TERM HUP
    if [ "$claimed" = yes ]; then
        release_wrk "$id" >&2 || echo "review.sh: $id was not released" >&2
    fi
    exit "$code"
}

# archive FILE: first its status, then its place; each step is one rename.
archive() {
    local archived
    archived="$(wrk_queue)/archive/${1##*/}"
    mkdir -p "${archived%/*}"
    sed -e '1,/^status:/s/^status:.*/status: archived/' "$1" >"$1.tmp"
    mv "$1.tmp" "$1"
    [ "$1" = "$archived" ] || mv "$1" "$archived"
}

claimed=no
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

claimed=yes
claim_wrk "$id" >&2 || {
    code=$?
    claimed=no
    exit "$code"
}
# The board first: so its ledger says who completed the item, and the file follows.
dibs complete "$id" --note "${2:-reviewed}" >&2 || exit 1
archive "$(wrk_file "$id")"
