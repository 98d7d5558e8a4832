"""Webhook authentication: signatures over the raw body, compared in constant time.

Secrets are rotated without a gap by configuring the old and the new one for a while. Every secret is tried,
whatever the others result in, so that timing reveals nothing. No message contains a secret or the expected
signature.
"""

from __future__ import annotations

from dibs.domain.refusals import bad_argument
from dibs.intake.request import BadPayload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SECRETS = 8
HEADER_LENGTH = 4_096
GITHUB_HEADER = "X-Hub-Signature-256"


class NotSigned(BadPayload):
    """The signature matches no secret, or is missing."""


def check_github(body: bytes, signature: str, secrets: Sequence[str]) -> None:
    """Verifies GitHub's signature of the body: `sha256=` and its HMAC. Raises `NotSigned`."""
    keys = [secret.encode("utf-8", "surrogatepass") for secret in _given(secrets)]
    scheme, _, given = _header(signature, GITHUB_HEADER).partition("=")
    if scheme != "sha256":
        raise NotSigned(f"{GITHUB_HEADER} does not begin with sha256=")
    if not _is_any(given, [_hmac(key, body).hex() for key in keys]):
        raise NotSigned(f"{GITHUB_HEADER} is not the signature of this payload")


def _given(secrets: Sequence[str]) -> Sequence[str]:
    """The validated secrets. A mistake here is one of the settings, not of the sender: `bad_argument`."""
    if isinstance(secrets, str) or not secrets:
        raise bad_argument("no secret is given, so the signature cannot be checked")
    if len(secrets) > SECRETS:
        raise bad_argument(f"{len(secrets)} secrets are given; the most is {SECRETS}")
    if not all(secret.strip() for secret in secrets):
        raise bad_argument("a secret is empty; anybody could sign with it")
    return secrets


def _header(value: str, name: str) -> str:
    if not value:
        raise NotSigned(f"the header {name} is missing")
    if len(value) > HEADER_LENGTH:
        raise NotSigned(f"the header {name} has more than {HEADER_LENGTH} characters")
    return value


def _hmac(key: bytes, data: bytes) -> bytes:
    import hmac

    return hmac.digest(key, data, "sha256")


def _is_any(given: str, right: Sequence[str]) -> bool:
    from hmac import compare_digest

    fits = False
    for one in right:
        fits |= compare_digest(one.encode(), given.encode("utf-8", "surrogatepass"))
    return fits
