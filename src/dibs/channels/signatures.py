"""Who sent a webhook: signatures over the bytes as they came, compared in constant time.

A secret is replaced without a gap by giving the old and the new one for a while. Every secret is tried
whatever the others say, so that the time of the answer tells nothing. No message holds a secret, or a
signature that would have been right.
"""

from __future__ import annotations

from dibs.channels.ask import DELIVERY_LENGTH, Unacceptable
from dibs.core.instants import MINUTE, SECOND, Duration, Instant
from dibs.core.refusals import bad_argument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TOLERANCE = Duration(5 * MINUTE)
SECRETS = 8
HEADER_LENGTH = 4_096
GITHUB_HEADER = "X-Hub-Signature-256"
SECRET_PREFIX = "whsec_"  # noqa: S105 - what a secret begins with, and no secret


class NotSigned(Unacceptable):
    """Nobody who knows a secret has sent this, or not just now."""


def check_github(body: bytes, signature: str, secrets: Sequence[str]) -> None:
    """That GitHub signed the body: `sha256=` and the HMAC of it. Raises `NotSigned`."""
    keys = [secret.encode("utf-8", "surrogatepass") for secret in _given(secrets)]
    scheme, _, given = _header(signature, GITHUB_HEADER).partition("=")
    if scheme != "sha256":
        raise NotSigned(f"{GITHUB_HEADER} does not begin with sha256=")
    if not _any_fits([_hmac(key, body).hex() for key in keys], [given]):
        raise NotSigned(f"{GITHUB_HEADER} is not the signature of this payload")


def check_standard(
    body: bytes, headers: Mapping[str, str], secrets: Sequence[str], now: Instant
) -> str:
    """That the body was signed as Standard Webhooks has it, not long ago: the id of the delivery.

    The names of the headers are in any case. Raises `NotSigned`.
    """
    keys = [_standard_key(secret) for secret in _given(secrets)]
    named = {name.lower(): value for name, value in headers.items()}
    delivery = _header(named.get("webhook-id", ""), "webhook-id")
    at = _header(named.get("webhook-timestamp", ""), "webhook-timestamp")
    listed = _header(named.get("webhook-signature", ""), "webhook-signature")
    if "." in delivery or not delivery.isprintable() or len(delivery) > DELIVERY_LENGTH:
        # With a full stop in it, other parts would have the same signature.
        raise NotSigned("webhook-id is not the id of a delivery")
    if not (at.isascii() and at.isdigit() and len(at) <= 12):
        raise NotSigned("webhook-timestamp is not a number of seconds")
    signed = f"{delivery}.{at}.".encode("utf-8", "surrogatepass") + body
    given = [one[3:] for one in listed.split(" ") if one.startswith("v1,")]
    if not _any_fits([_base64(_hmac(key, signed)) for key in keys], given):
        raise NotSigned("webhook-signature holds no signature of this payload")
    if abs(now - int(at) * SECOND) > TOLERANCE:
        raise NotSigned("webhook-timestamp is more than 5 min away from now")
    return delivery


def _given(secrets: Sequence[str]) -> Sequence[str]:
    """They come from settings: that they are wrong is not the sender's fault."""
    if isinstance(secrets, str) or not secrets:
        raise bad_argument("no secret is given; without one nobody can be told from anybody")
    if len(secrets) > SECRETS:
        raise bad_argument(f"{len(secrets)} secrets are given; the most is {SECRETS}")
    if not all(secret.strip() for secret in secrets):
        raise bad_argument("a secret is empty; anybody could sign with it")
    return secrets


def _standard_key(secret: str) -> bytes:
    from base64 import b64decode

    try:
        key = b64decode(secret.strip().removeprefix(SECRET_PREFIX), validate=True)
    except ValueError:
        raise bad_argument(f"a secret is not {SECRET_PREFIX} and base64") from None
    if not key:
        raise bad_argument("a secret is empty; anybody could sign with it")
    return key


def _header(value: str, name: str) -> str:
    if not value:
        raise NotSigned(f"the header {name} is missing")
    if len(value) > HEADER_LENGTH:
        raise NotSigned(f"the header {name} has more than {HEADER_LENGTH} characters")
    return value


def _hmac(key: bytes, data: bytes) -> bytes:
    import hmac

    return hmac.digest(key, data, "sha256")


def _base64(data: bytes) -> str:
    from base64 import b64encode

    return b64encode(data).decode()


def _any_fits(right: Sequence[str], given: Sequence[str]) -> bool:
    from hmac import compare_digest

    fits = False
    for one in right:
        for other in given:
            fits |= compare_digest(one.encode(), other.encode("utf-8", "surrogatepass"))
    return fits
