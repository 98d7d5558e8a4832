"""The address of a board in PostgreSQL, `postgresql://host/database#board`, safe to print."""

from __future__ import annotations

import os
import re
from urllib.parse import parse_qsl, unquote, urlsplit

from dibs.domain.checks import short
from dibs.domain.refusals import bad_argument
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMES = ("postgresql", "postgres")
MAIN = "main"
"""The default board name."""

_PARTS = re.compile(r"(\w+://)(?:(.*)@)?([^@]*)", re.DOTALL)
"""Scheme, user, rest. Everything before the last @ may be a password, whatever characters it contains."""
_NAME = re.compile(r"[A-Za-z0-9._-]+")
LONGEST_NAME = 63


class Address(Value):
    """A server URL as the driver reads it, and the name of a board on that server."""

    url: str
    board: str = MAIN
    kept: bool = False
    """Whether it was read from a file or a forwarding record, not given by the caller."""

    def __str__(self) -> str:
        return f"{without_password(self.url)}#{self.board}"

    @property
    def has_password(self) -> bool:
        return without_password(self.url) != self.url

    @property
    def user(self) -> str:
        """The user in the URL, if any; a service file or the environment may name one instead."""
        _, user, _ = _PARTS.fullmatch(self.url).groups()  # type: ignore[union-attr]
        return unquote((user or "").partition(":")[0])

    def to_keep(self) -> Address:
        """The address in the form that may be written to disk."""
        return Address(without_password(self.url), self.board)

    def options(self, wait: float, client: str) -> dict[str, Any]:
        """Connection options for the driver that the URL does not set. `client`: the application name."""
        given = dict(parse_qsl(urlsplit(self.url).query))
        seconds = max(2, int(wait))
        wanted = {
            "application_name": client,
            "connect_timeout": seconds,
            # Otherwise a dead connection goes unnoticed for 15 minutes.
            "tcp_user_timeout": seconds * 1000,
            "keepalives_idle": seconds,
            "keepalives_interval": 1,
        }
        if self.kept and not os.environ.get("PGREQUIREAUTH"):
            wanted["require_auth"] = SAFE_AUTH
        return {name: value for name, value in wanted.items() if name not in given}


def is_address(text: str) -> bool:
    return text.partition("://")[0] in SCHEMES


def parse(text: str, what: str = "DIBS_URL") -> Address:
    """Parses an address; refuses an invalid one without repeating a password."""
    url, _, board = text.partition("#")
    if not is_address(url):
        raise bad_argument(
            f"{what} is not an address; one looks like postgresql://host/database#board"
        )
    name = unquote(board) or MAIN
    if broken := rule_broken_by(name):
        raise bad_argument(
            f"{what}: the text after # is not a board name; one {broken} (in a password, # is "
            "written %23)"
        )
    user, _, _ = url.partition("://")[2].rpartition("@")
    if set(user) & set("@/?"):
        raise bad_argument(
            f"{what} has @, / or ? before its last @; in a password and elsewhere they are "
            "written %40, %2F and %3F"
        )
    try:
        urlsplit(url).port  # noqa: B018 - refuses a bad port here, before the driver sees it
    except ValueError:
        if "," not in url:
            raise bad_argument(f"{what}: its port is not a number") from None
    return Address(url, name)


def rule_broken_by(name: str) -> str:
    """The first naming rule that a board name breaks, or ""."""
    if not _NAME.fullmatch(name):
        return "is letters, digits, '.', '_' and '-'"
    if name[0] in "._-":
        return "begins with a letter or a digit"
    return f"has at most {LONGEST_NAME} characters" if len(name) > LONGEST_NAME else ""


def is_secret(option: str) -> bool:
    """Whether a URL option holds a secret; its name may be percent-encoded."""
    return any(word in unquote(option).lower() for word in ("password", "secret", "scram"))


def without_password(url: str) -> str:
    """The same URL, byte for byte, without a password after the user or among the options."""
    scheme, user, rest = _PARTS.fullmatch(url).groups()  # type: ignore[union-attr]
    name = f"{user.partition(':')[0]}@" if user is not None else ""
    place, mark, options = rest.partition("?")
    kept = "&".join(part for part in options.split("&") if not is_secret(part.partition("=")[0]))
    return f"{scheme}{name}{place}" + (mark + kept if kept else "")


# Addresses from a file or a forwarding record are untrusted: somebody else may have written them.

SAFE_AUTH = "scram-sha-256,none"
"""Authentication methods that never reveal a password to a server that does not know it."""

STRENGTHS = {
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "gssencmode": ("disable", "prefer", "require"),
    "channel_binding": ("disable", "prefer", "require"),
    "ssl_min_protocol_version": ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"),
}
"""From weakest to strongest."""

USUAL = {
    "sslmode": ("PGSSLMODE", "prefer"),
    "gssencmode": ("PGGSSENCMODE", "prefer"),
    "channel_binding": ("PGCHANNELBINDING", "prefer"),
    "ssl_min_protocol_version": ("PGSSLMINPROTOCOLVERSION", "TLSv1.2"),
}
"""The environment variable by which the user sets each option, and the driver's default."""

HARMLESS = (
    "host", "port", "user", "dbname", "application_name", "connect_timeout", "tcp_user_timeout",
    "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count",
    "target_session_attrs", "load_balance_hosts",
)  # fmt: skip


def parse_untrusted(text: str, what: str) -> Address:
    """Parses an untrusted address: refuses passwords, risky options and weaker protection."""
    address = parse(text, what)
    if address.has_password:
        raise bad_argument(f"{what} holds a password: put it into a passfile")
    for name, value in options_in(address.url):
        if name in STRENGTHS:
            refuse_weaker(what, name, value)
        elif name not in HARMLESS:
            raise bad_argument(
                f"{what} has the option {short(name, 40)}, which counts only in DIBS_URL"
            )
    return address.but(kept=True)


def options_in(url: str) -> list[tuple[str, str]]:
    """The URL's options as the driver reads them: names may be percent-encoded and may repeat."""
    pairs = (part.partition("=") for part in url.partition("?")[2].split("&") if part)
    return [(unquote(name), unquote(value)) for name, _, value in pairs]


def refuse_weaker(what: str, name: str, value: str) -> None:
    variable, usual = USUAL[name]
    order = STRENGTHS[name]
    least = os.environ.get(variable) or usual
    if value not in order or order.index(value) < order.index(least if least in order else usual):
        raise bad_argument(
            f"{what} has {name}={short(value, 20)}: weaker than {least} it counts only in DIBS_URL"
        )
