"""`dibs intake`: takes in requests from any channel; the same origin always gives the same task."""

from __future__ import annotations

import sys

from dibs.cli.arguments import COMMON, argument, refuse_inapplicable
from dibs.cli.call import Call, Verb, VerbResult
from dibs.cli.tasks import SCOPE, TERMS, changed, each, terms
from dibs.domain import checks
from dibs.domain import commands as c
from dibs.domain.events import tasks as e
from dibs.domain.model import Task
from dibs.domain.refusals import bad_argument, refused
from dibs.intake.request import PAYLOAD_MAX, BadPayload, IntakeRequest, NoRequest, build_request
from dibs.output import payloads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from dibs.board.outcome import Outcome

SAID, GITHUB, EMAIL, MAP, FROM = "a single request", "--github", "--email", "--map", "--from"
WAYS = {"github": GITHUB, "email": EMAIL, "map": MAP, "file": FROM}
"""Options that name the source of a payload; without any, the request is given on the command line."""

HOMES = {
    "channel": (SAID, MAP, FROM),
    "ref": (SAID,),
    "url": (SAID,),
    "title": (SAID, GITHUB, EMAIL, MAP),
    "delivery": (SAID, GITHUB, EMAIL, MAP),
    "request_id": (SAID, GITHUB, EMAIL, MAP),
    "event": (GITHUB,),
    "signature": (GITHUB,),
    "secret_file": (GITHUB,),
}
"""The sources that each option goes with: what the payload contains must not be given again."""


CUT = f"the title is longer than {checks.TITLE_LENGTH} characters: it is cut"


def intake(call: Call) -> VerbResult | Iterator[VerbResult]:
    ways = [way for way in WAYS if call[way] not in (None, False)]
    if len(ways) > 1:
        raise bad_argument(f"{WAYS[ways[0]]} and {WAYS[ways[1]]} do not go together")
    here = WAYS[ways[0]] if ways else SAID
    refuse_inapplicable(call.arguments, (*VERBS["intake"].arguments, *COMMON), HOMES, here)
    try:
        if ways == ["file"]:
            from dibs.cli.bulk import in_bulk

            return in_bulk(call, command_of)
        ask = read_request(call, ways[0] if ways else "")
    except BadPayload as problem:
        raise bad_argument(f"this cannot be taken in: {problem.what}") from None
    if isinstance(ask, NoRequest):
        line = f"nothing to take in: {ask.why}"
        return VerbResult(payloads.answer(task=None, created=False, why=ask.why), (line,))
    return taken_in(call, command_of(call, ask), ask)


def read_request(call: Call, way: str) -> IntakeRequest | NoRequest:
    """Reads the request from its source."""
    delivery = call["delivery"] or ""
    if way == "github":
        from dibs.intake import github

        body = payload()
        check_signature(call, body)
        return github.read(call["event"] or "", body, delivery)
    if way == "email":
        from dibs.intake import email

        return email.read(payload(email.MESSAGE_MAX), delivery=delivery)
    if way == "map":
        from dibs.intake import mapped

        if not call["channel"]:
            raise bad_argument("--map needs --channel NAME: where does it come from?")
        return mapped.read(
            call["channel"], mapped.paths_of(pairs(call["map"])), payload(), delivery
        )
    return request_from_arguments(call, delivery)


def request_from_arguments(call: Call, delivery: str) -> IntakeRequest:
    """A request given on the command line; its arguments serve as the payload."""
    missing = [f"--{name}" for name in ("channel", "ref") if call[name] is None]
    if missing:
        raise bad_argument(f"the following arguments are required: {', '.join(missing)}")
    words = "\n".join(call[name] or "" for name in ("channel", "ref", "title", "url"))
    return build_request(
        call["channel"],
        call["ref"],
        words.encode("utf-8", "surrogatepass"),
        title=checks.title(call["title"]) if call["title"] is not None else "",
        url=call["url"] or "",
        delivery=delivery,
    )


def payload(most: int = PAYLOAD_MAX) -> bytes:
    """Reads stdin, at most one byte more than allowed: enough to detect that it is too large."""
    if sys.stdin is None:
        raise bad_argument("the payload is read from standard input, which is closed")
    return sys.stdin.buffer.read(most + 1)


def check_signature(call: Call, body: bytes) -> None:
    """Checks the signature, if one is given; each line of the secret file is one secret."""
    if bool(call["signature"]) != bool(call["secret_file"]):
        raise bad_argument("--signature and --secret-file go together")
    if not call["signature"]:
        return
    from dibs.intake.signatures import NotSigned, check_github

    try:
        with open(call["secret_file"], encoding="utf-8") as file:
            secrets = [line.strip() for line in file if line.strip()]
    except (OSError, ValueError) as error:
        raise bad_argument(f"{call['secret_file']} cannot be read: {error}") from None
    try:
        check_github(body, call["signature"], secrets)
    except NotSigned as problem:
        raise refused("not_signed", f"the signature is not right: {problem.what}") from None


def pairs(given: list[str]) -> dict[str, object]:
    """Parses `ref=data.id` pairs: which path of the payload holds which field."""
    found: dict[str, object] = {}
    for one in given:
        name, equals, path = one.partition("=")
        if not equals or not name or not path:
            raise bad_argument(f"--map is {checks.quoted(one)}; write it like ref=data.id")
        found[name] = path
    return found


def command_of(call: Call, ask: IntakeRequest) -> c.Add:
    title = ask.title if call["title"] is None else checks.title(call["title"])
    return c.Add(
        terms(call, title),
        checks.scope(each(call["scope"])),
        channel=ask.channel,
        origin_ask_ref=ask.ref,
        url=ask.url,
        digest=ask.digest,
        delivery=ask.delivery,
        formerly=ask.formerly,
    )


def taken_in(call: Call, command: c.Add, ask: IntakeRequest) -> VerbResult:
    """Adds the task, or finds that of the same origin; differences from it are reported, not written."""
    outcome = call.execute(command)
    told = call.told(outcome)
    if is_new(outcome) or outcome.task is None:
        warnings = told.warnings + ((CUT,) if ask.cut and call["title"] is None else ())
        payload = told.json() | {"created": True, "differences": [], "warnings": [*warnings]}
        return told.but(payload=payload, warnings=warnings)
    differences = differing(call, outcome.task, command)
    if any(isinstance(event, e.Received) and event.differs for event in outcome.events):
        retitled = not ask.untitled and ask.title != outcome.task.terms.title
        differences = differences or ["title" if retitled else "payload"]
    line = f"{outcome.task.key} has this origin already" + (
        f"; it differs in: {', '.join(differences)}" if differences else ""
    )
    payload = told.json() | {"created": False, "differences": differences}
    return told.but(payload=payload, lines=(line,))


def is_new(outcome: Outcome) -> bool:
    return any(isinstance(event, e.Added) for event in outcome.events)


def differing(call: Call, task: Task, command: c.Add) -> list[str]:
    """The names of given fields that differ from the task of the same origin."""
    asked = {name: value for name, value in changed(call).items() if value is not None}
    if call["title"] is not None:
        asked["title"] = command.terms.title
    names = [name for name, value in asked.items() if task.terms.named()[name] != value]
    return names + (["scope"] if command.scope and command.scope != task.scope else [])


VERBS = {
    "intake": Verb(
        intake,
        (
            argument("--channel", metavar="NAME", help="where the request came from; --github and --email know it"),
            argument("--ref", metavar="REF", help="the channel's own reference of it, if there is no payload"),
            argument("--title", metavar="TITLE", help="one line, at most 200 characters; not with --from"),
            argument("--url", metavar="URL", help="where people find it, if there is no payload"),
            argument("--delivery", metavar="ID", help="the channel's own id of this delivery; not with --from"),
            argument("--github", action="store_true", help="a webhook's payload on standard input"),
            argument("--event", metavar="NAME", help="with --github: which event it is, issues, ..."),
            argument("--signature", metavar="TEXT", help="with --github: X-Hub-Signature-256; it is checked"),
            argument("--secret-file", metavar="FILE", help="with --github: the secrets for it, one in a line"),
            argument("--email", action="store_true", help="a message on standard input"),
            argument(
                "--map", action="append", metavar="NAME=PATH",
                help="JSON on standard input: ref=data.id, title=..., url=..., delivery=...",
            ),
            argument("--from", dest="file", metavar="FILE", help="lines of JSON, many at once"),
            SCOPE,
            *TERMS,
        ),
    ),
}  # fmt: skip
