"""GitHub webhooks: an issue, or a new comment on one, is a request.

The header `X-GitHub-Event` names the event, `X-GitHub-Delivery` the delivery. The event of a payload without
headers (a file, a pipe) is recognised by its fields.
"""

from __future__ import annotations

from dibs.domain.checks import quoted
from dibs.intake.request import (
    GITHUB,
    BadPayload,
    IntakeRequest,
    Missing,
    NoRequest,
    address,
    at,
    build_request,
    github_issue,
    number_at,
    object_of,
    text_at,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

REQUEST = ""
SAME = "the request stays the same"

ACTIONS: dict[str, dict[str, str]] = {
    "issues": {
        "opened": REQUEST,
        "edited": REQUEST,
        "reopened": REQUEST,
        "closed": "the issue was closed",
        "deleted": "the issue was deleted",
        "transferred": "the issue was transferred: its new repository reports it as opened",
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
        "created": REQUEST,
        "edited": "only new comments are requests",
        "deleted": "the comment was deleted",
    },
}
"""Why an action is ignored; empty for actions that are requests."""

PING = "it is a ping: the webhook reaches this board"


def read(event: str, payload: bytes, delivery: str = "") -> IntakeRequest | NoRequest:
    """The request in a delivery. An empty event is recognised by the payload. Raises `BadPayload`."""
    name = event.strip().lower()
    if name == "ping":
        return NoRequest(PING)
    if name and name not in ACTIONS:
        return NoRequest(f"the event {quoted(name)} is not a request")
    fields = _fields(payload)
    name = name or event_of(fields)
    if name == "ping":
        return NoRequest(PING)
    action = text_at(fields, "action")
    why = ACTIONS[name].get(action, f"the action {quoted(action)} of {name} is unknown")
    if why:
        return NoRequest(f"{name} {action}: {why}" if action in ACTIONS[name] else why)
    return (_issue if name == "issues" else _comment)(fields, payload, delivery)


def _fields(payload: bytes) -> dict[str, Any]:
    if payload.startswith(b"payload="):
        raise BadPayload("it is form data; set the webhook's content type to application/json")
    return object_of(payload)


def event_of(fields: dict[str, Any]) -> str:
    """The event of a payload, recognised by its fields."""
    if "issue" in fields:
        return "issue_comment" if "comment" in fields else "issues"
    if "zen" in fields:
        return "ping"
    raise BadPayload("it contains no issue, and without its header the event is unknown")


def _issue(fields: dict[str, Any], payload: bytes, delivery: str) -> IntakeRequest | NoRequest:
    if text_at(fields, "issue.state") == "closed":
        return NoRequest("the issue is closed")
    return build_request(
        GITHUB,
        _ref(fields, "issue", "repository"),
        payload,
        title=text_at(fields, "issue.title"),
        url=text_at(fields, "issue.html_url"),
        delivery=delivery,
        formerly=_former_ref(fields),
    )


def _comment(fields: dict[str, Any], payload: bytes, delivery: str) -> IntakeRequest:
    """A comment has no title of its own, and its text is not copied: the title names its issue."""
    issue = _ref(fields, "issue", "repository")
    return build_request(
        GITHUB,
        f"{issue}/comment/{number_at(fields, 'comment.id')}",
        payload,
        title=f"Comment on {issue}: {text_at(fields, 'issue.title')}",
        url=text_at(fields, "comment.html_url"),
        delivery=delivery,
    )


def _ref(fields: dict[str, Any], issue: str, repository: str) -> str:
    """The ref by names instead of GitHub's id: people and links use the names."""
    host = address(text_at(fields, f"{issue}.html_url")).split("/")[2]
    name = text_at(fields, f"{repository}.full_name")
    ref = github_issue(f"{host}/{name}#{number_at(fields, f'{issue}.number')}")
    if ref is None or name.count("/") != 1:
        raise BadPayload(f"{repository}.full_name is not the name of a repository")
    return ref


def _former_ref(fields: dict[str, Any]) -> str:
    """The former ref of a transferred issue, which GitHub reports as opened here; empty if there is none."""
    try:
        at(fields, ("changes", "old_issue"))
    except Missing:
        return ""
    return _ref(fields, "changes.old_issue", "changes.old_repository")
