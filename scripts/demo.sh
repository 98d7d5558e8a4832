#!/bin/sh
# dibs in five seconds: two agents, one task, one owner. Runs in a throw-away repository, and fails
# if anything is not as it is said here.
set -eu

# Nothing around us may say who is calling.
unset DIBS_AGENT DIBS_SESSION DIBS_BOARD DIBS_URL DIBS_DEBUG GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE \
    CLAUDECODE CLAUDE_CODE CLAUDE_CODE_SESSION_ID \
    CODEX_THREAD_ID CODEX_SESSION_ID CODEX_SANDBOX CODEX_CI CODEX_SANDBOX_NETWORK_DISABLED \
    GEMINI_CLI GEMINI_SESSION_ID CURSOR_AGENT CLINE_ACTIVE AUGMENT_AGENT OPENCODE OPENCODE_CLIENT \
    ANTIGRAVITY_AGENT JUNIE_DATA AI_AGENT

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' HUP INT PIPE TERM
mkdir "$folder/shop"
cd "$folder/shop"
git init -q
git symbolic-ref HEAD refs/heads/main

wrong() {
    echo "demo: $*" >&2
    exit 1
}

say() {
    printf '\n# %s\n' "$*"
}

# show COMMAND...: as it would be typed.
show() {
    printf '$'
    for word; do
        case $word in
        *" "*) printf ' "%s"' "$word" ;;
        *) printf ' %s' "$word" ;;
        esac
    done
    echo
}

# expect CODE COMMAND...: shows the command, runs it, and insists on its exit code.
expect() {
    wanted=$1
    shift
    show "$@"
    code=0
    "$@" 2>&1 || code=$?
    [ "$wanted" = 0 ] || echo "(exit $code)"
    [ "$code" = "$wanted" ] || wrong "exit $code, not $wanted: $*"
}

# race NAME SESSION: claims T-1 in the background; its words and its exit code go to files.
race() {
    {
        code=0
        dibs claim T-1 --agent "$1" --session "$2" >"../$1.said" 2>&1 || code=$?
        echo "$code" >"../$1.exit"
    } &
}

say "A board for this repository, and one task."
expect 0 dibs init
expect 0 dibs add "Fix login" --as ana

say "Two agents claim it at the same moment."
race codex-2 s1
race claude-7 s9
wait
for agent in codex-2 claude-7; do
    echo "\$ dibs claim T-1 --agent $agent ... &"
    cat "../$agent.said"
    echo "(exit $(cat "../$agent.exit"))"
done
case "$(cat ../codex-2.exit) $(cat ../claude-7.exit)" in
"0 4") winner=codex-2 won_session=s1 loser=claude-7 lost_session=s9 ;;
"4 0") winner=claude-7 won_session=s9 loser=codex-2 lost_session=s1 ;;
*) wrong "one of them had to win, and one to lose" ;;
esac
echo "One holder: $winner."

say "$loser would like to be a person, and force it. Inside a harness it cannot."
expect 1 env CLAUDECODE=1 dibs takeover T-1 --force --reason "I am quicker" --as ana

say "$winner keeps a lease of one second, and goes silent. It expires, and $loser takes over."
expect 0 dibs renew T-1 --ttl 1s --agent "$winner" --session "$won_session"
show sleep 2
sleep 2
expect 0 dibs takeover T-1 --agent "$loser" --session "$lost_session"

say "$winner wakes up and reports success. It is refused; what it wrote is kept."
expect 5 dibs complete T-1 --note "Fixed in auth.py" --agent "$winner" --session "$won_session"
dibs show T-1 | grep -q "Fixed in auth.py" || wrong "the late note is not there"

say "Who owned it when; whether the ledger is sound; and what is going on now."
expect 0 dibs log
expect 0 dibs log --verify
expect 0 dibs status
dibs who T-1 | grep -q "$loser" || wrong "$loser should hold T-1"

say "All of it was as expected."
