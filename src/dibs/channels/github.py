"""GitHub's webhooks: an issue, or a new comment on one, is an ask.

The event is named by the header `X-GitHub-Event`, the delivery by `X-GitHub-Delivery`. A payload that
comes without headers (a file, a pipe) tells its event by its parts.
"""

from __future__ import annotations

from dibs.channels.ask import (
    GITHUB,
    Ask,
    Nothing,
    Unacceptable,
    address,
    ask_of,
    github_issue,
)
from dibs.channels.payload import Missing, at, number_at, object_of, text_at
from dibs.core.checks import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ASKS = ""
SAME = "what is asked stays the same"

ACTIONS: dict[str, dict[str, str]] = {
    "issues": {
        "opened": ASKS,
        "edited": ASKS,
        "reopened": ASKS,
        "closed": "the issue was closed",
        "deleted": "the issue was deleted",
        "transferred": "the issue moved: where it is now, it is opened",
        "assigned": SAME,
        "unassigned": SAME,
        "labeled": SAME,
        "unlabeled": SAME,
        "milestoned": SAME,
        "demilestoned": SAME,
        "pinned": SAME,
        "unpinned": SAME,
        "locked": SAME,
        "unlocked": SAME,
        "typed": SAME,
        "untyped": SAME,
    },
    "issue_comment": {
        "created": ASKS,
        "edited": "a comment asks when it is new",
        "deleted": "the comment was deleted",
    },
}
"""Why an action asks for nothing; those that ask have no reason."""

PING = "it is a ping: the webhook reaches this board"


def read(event: str, payload: bytes, delivery: str = "") -> Ask | Nothing:
    """What a delivery asks for. Without an event it is told by the payload. Raises `Unacceptable`."""
    name = event.strip().lower()
    if name == "ping":
        return Nothing(PING)
    if name and name not in ACTIONS:
        return Nothing(f"the event {quoted(name)} asks for nothing")
    fields = _fields(payload)
    name = name or event_of(fields)
    if name == "ping":
        return Nothing(PING)
    action = text_at(fields, "action")
    why = ACTIONS[name].get(action, f"the action {quoted(action)} of {name} is unknown")
    if why:
        return Nothing(f"{name} {action}: {why}" if action in ACTIONS[name] else why)
    return (_issue if name == "issues" else _comment)(fields, payload, delivery)


def _fields(payload: bytes) -> dict[str, Any]:
    if payload.startswith(b"payload="):
        raise Unacceptable("it is a form; the webhook's content type is to be application/json")
    return object_of(payload)


def event_of(fields: dict[str, Any]) -> str:
    """The event that a payload is of, as far as it matters here."""
    if "issue" in fields:
        return "issue_comment" if "comment" in fields else "issues"
    if "zen" in fields:
        return "ping"
    raise Unacceptable("it holds no issue; which event it is, only its header says")


def _issue(fields: dict[str, Any], payload: bytes, delivery: str) -> Ask | Nothing:
    if text_at(fields, "issue.state") == "closed":
        return Nothing("the issue is closed")
    return ask_of(
        GITHUB,
        _ref(fields, "issue", "repository"),
        payload,
        title=text_at(fields, "issue.title"),
        url=text_at(fields, "issue.html_url"),
        delivery=delivery,
        formerly=_former_ref(fields),
    )


def _comment(fields: dict[str, Any], payload: bytes, delivery: str) -> Ask:
    """A title of its own it does not have, and its text is not copied."""
    issue = _ref(fields, "issue", "repository")
    return ask_of(
        GITHUB,
        f"{issue}/comment/{number_at(fields, 'comment.id')}",
        payload,
        title=f"Comment on {issue}: {text_at(fields, 'issue.title')}",
        url=text_at(fields, "comment.html_url"),
        delivery=delivery,
    )


def _ref(fields: dict[str, Any], issue: str, repository: str) -> str:
    """By names, and not by the id that GitHub has for it: people and links know the names."""
    host = address(text_at(fields, f"{issue}.html_url")).split("/")[2]
    name = text_at(fields, f"{repository}.full_name")
    ref = github_issue(f"{host}/{name}#{number_at(fields, f'{issue}.number')}")
    if ref is None or name.count("/") != 1:
        raise Unacceptable(f"{repository}.full_name is not the name of a repository")
    return ref


def _former_ref(fields: dict[str, Any]) -> str:
    """An issue that was moved here is opened here, and names what it was."""
    try:
        at(fields, ("changes", "old_issue"))
    except Missing:
        return ""
    return _ref(fields, "changes.old_issue", "changes.old_repository")
