"""The verbs that move a task on: block, unblock, submit, accept, reject, complete, fail, drop."""

from __future__ import annotations

from dibs.core import checks
from dibs.core import commands as c
from dibs.interfaces.cli.arguments import argument
from dibs.interfaces.cli.call import KEY, NOTE, REASON, TOKEN, Answer, Call, Verb


def block(call: Call) -> Answer:
    on = checks.optional_text(call["on"], "the cause", checks.NAME_LENGTH)
    return call.do(
        c.Block(call.key, token=call.token, reason=call.reason, on=on, keep=call["keep"])
    )


def unblock(call: Call) -> Answer:
    return call.do(c.Unblock(call.key, note=call.note))


def submit(call: Call) -> Answer:
    return call.do(c.Submit(call.key, token=call.token, note=call.note))


def accept(call: Call) -> Answer:
    return call.do(c.Accept(call.key, note=call.note))


def reject(call: Call) -> Answer:
    return call.do(c.Reject(call.key, reason=call.reason))


def complete(call: Call) -> Answer:
    return call.do(c.Complete(call.key, token=call.token, note=call.note))


def fail(call: Call) -> Answer:
    return call.do(c.Fail(call.key, token=call.token, reason=call.reason))


def drop(call: Call) -> Answer:
    return call.do(c.Drop(call.key, token=call.token, reason=call.reason))


VERBS = {
    "block": Verb(
        block,
        (
            KEY,
            REASON,
            argument(
                "--on", metavar="NAME", default="", help="a task or an actor that it waits for"
            ),
            argument("--keep", action="store_true", help="keep the lease meanwhile"),
            TOKEN,
        ),
    ),
    "unblock": Verb(unblock, (KEY, NOTE)),
    "submit": Verb(submit, (KEY, NOTE, TOKEN)),
    "accept": Verb(accept, (KEY, NOTE)),
    "reject": Verb(reject, (KEY, REASON)),
    "complete": Verb(complete, (KEY, NOTE, TOKEN)),
    "fail": Verb(fail, (KEY, REASON, TOKEN)),
    "drop": Verb(drop, (KEY, REASON, TOKEN)),
}
