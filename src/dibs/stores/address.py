"""Where a board in PostgreSQL is: `postgresql://host/database#board`, as it may be shown."""

from __future__ import annotations

import os
import re
from urllib.parse import parse_qsl, unquote, urlsplit

from dibs.core.checks import short
from dibs.core.refusals import bad_argument
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMES = ("postgresql", "postgres")
MAIN = "main"
"""The board's name where the address has none."""

_PARTS = re.compile(r"(\w+://)(?:(.*)@)?([^@]*)", re.DOTALL)
"""Scheme, user, and the rest. What stands before the last @ may be a password, whatever is in it."""
_NAME = re.compile(r"[A-Za-z0-9._-]+")
LONGEST_NAME = 63


class Address(Value):
    """A server's URL, as its driver reads it, and the name of a board there."""

    url: str
    board: str = MAIN
    kept: bool = False
    """Whether it was read from a file or a record, not stated by who calls."""

    def __str__(self) -> str:
        return f"{without_password(self.url)}#{self.board}"

    @property
    def has_password(self) -> bool:
        return without_password(self.url) != self.url

    @property
    def user(self) -> str:
        """Whom it names, if anybody: a service or the environment may do so too."""
        _, user, _ = _PARTS.fullmatch(self.url).groups()  # type: ignore[union-attr]
        return unquote((user or "").partition(":")[0])

    def to_keep(self) -> Address:
        """The address as it may be written down."""
        return Address(without_password(self.url), self.board)

    def options(self, wait: float, client: str) -> dict[str, Any]:
        """What the driver is told beside the URL, where the URL does not say it. `client`: who connects."""
        said = dict(parse_qsl(urlsplit(self.url).query))
        seconds = max(2, int(wait))
        wanted = {
            "application_name": client,
            "connect_timeout": seconds,
            "tcp_user_timeout": seconds * 1000,  # else a link that is down is noticed in 15 minutes
            "keepalives_idle": seconds,
            "keepalives_interval": 1,
        }
        if self.kept and not os.environ.get("PGREQUIREAUTH"):
            wanted["require_auth"] = SAFE_AUTH
        return {name: value for name, value in wanted.items() if name not in said}


def is_address(text: str) -> bool:
    return text.partition("://")[0] in SCHEMES


def parse(text: str, what: str = "DIBS_URL") -> Address:
    """An address from its text; what cannot be one is refused, and no password is repeated."""
    url, _, board = text.partition("#")
    if not is_address(url):
        raise bad_argument(f"{what} is no address; one looks like postgresql://host/database#board")
    name = unquote(board) or MAIN
    if broken := rule_broken_by(name):
        raise bad_argument(
            f"{what}: what stands behind # is no name of a board; it {broken} (in a password, # is "
            "written %23)"
        )
    user, _, _ = url.partition("://")[2].rpartition("@")
    if set(user) & set("@/?"):
        raise bad_argument(
            f"{what} has @, / or ? in front of its last @; in a password and elsewhere they are "
            "written %40, %2F and %3F"
        )
    try:
        urlsplit(url).port  # noqa: B018 - refused here, not by the driver
    except ValueError:
        if "," not in url:
            raise bad_argument(f"{what}: its port is not a number") from None
    return Address(url, name)


def rule_broken_by(name: str) -> str:
    """The first rule of a board's name that this one does not keep, if any."""
    if not _NAME.fullmatch(name):
        return "is letters, digits, '.', '_' and '-'"
    if name[0] in "._-":
        return "begins with a letter or a digit"
    return f"has at most {LONGEST_NAME} characters" if len(name) > LONGEST_NAME else ""


def is_secret(option: str) -> bool:
    """Whether an option of an address holds one; its name may be written with %."""
    return any(word in unquote(option).lower() for word in ("password", "secret", "scram"))


def without_password(url: str) -> str:
    """The same address, byte for byte, but for a password behind the user or among the options."""
    scheme, user, rest = _PARTS.fullmatch(url).groups()  # type: ignore[union-attr]
    name = f"{user.partition(':')[0]}@" if user is not None else ""
    place, mark, options = rest.partition("?")
    kept = "&".join(part for part in options.split("&") if not is_secret(part.partition("=")[0]))
    return f"{scheme}{name}{place}" + (mark + kept if kept else "")


# Addresses that are read from a file or a record: somebody else may have written them.

SAFE_AUTH = "scram-sha-256,none"
"""Ways to log in that give no server a password that it does not know."""

STRENGTHS = {
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "gssencmode": ("disable", "prefer", "require"),
    "channel_binding": ("disable", "prefer", "require"),
    "ssl_min_protocol_version": ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"),
}
"""From the weakest to the strongest."""

USUAL = {
    "sslmode": ("PGSSLMODE", "prefer"),
    "gssencmode": ("PGGSSENCMODE", "prefer"),
    "channel_binding": ("PGCHANNELBINDING", "prefer"),
    "ssl_min_protocol_version": ("PGSSLMINPROTOCOLVERSION", "TLSv1.2"),
}
"""The variable with which the user states it, and what the driver takes without it."""

HARMLESS = (
    "host", "port", "user", "dbname", "application_name", "connect_timeout", "tcp_user_timeout",
    "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count",
    "target_session_attrs", "load_balance_hosts",
)  # fmt: skip


def parse_kept(text: str, what: str) -> Address:
    """An address from a file or a record: it leads to its host, with no weaker protection than usual."""
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
    """As the driver reads them: a name may be written with %, and may be there twice."""
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
