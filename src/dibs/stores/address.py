"""Where a board in PostgreSQL is: `postgresql://host/database#board`, as it may be shown."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlsplit

from dibs.core.refusals import bad_argument
from dibs.core.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMES = ("postgresql", "postgres")
MAIN = "main"
"""The board's name where the address has none."""

_PARTS = re.compile(r"(\w+://)(?:([^/?]*)@)?(.*)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9._-]+")
LONGEST_NAME = 63


class Address(Value):
    """A server's URL, as its driver reads it, and the name of a board there."""

    url: str
    board: str = MAIN

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

    def options(self, wait: float) -> dict[str, Any]:
        """What the driver is told beside the URL, where the URL does not say it."""
        said = dict(parse_qsl(urlsplit(self.url).query))
        seconds = max(2, int(wait))
        wanted = {
            "application_name": "dibs",
            "connect_timeout": seconds,
            "tcp_user_timeout": seconds * 1000,  # else a link that is down is noticed in 15 minutes
            "keepalives_idle": seconds,
            "keepalives_interval": 1,
        }
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
    if url.partition("?")[0].count("@") > 1:
        raise bad_argument(f"{what} has more than one @; in a password, @ is written %40")
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
    return any(word in unquote(option).lower() for word in ("password", "secret"))


def without_password(url: str) -> str:
    """The same address, byte for byte, but for a password behind the user or among the options."""
    scheme, user, rest = _PARTS.fullmatch(url).groups()  # type: ignore[union-attr]
    name = f"{user.partition(':')[0]}@" if user is not None else ""
    place, mark, options = rest.partition("?")
    kept = "&".join(part for part in options.split("&") if not is_secret(part.partition("=")[0]))
    return f"{scheme}{name}{place}" + (mark + kept if kept else "")
