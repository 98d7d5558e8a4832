"""The user's own configuration folder: the only source of settings that start programs or name servers.

    ~/.config/dibs/
      boards/ID.toml   agents, notify, mirror_root and the folder for logs, for the board with that id
      servers.toml     the servers that a person has accepted, and which one the board of a clone is on

An agent's sandbox may be able to write to the board's folder; it cannot write here.
"""

from __future__ import annotations

import os
from os.path import isabs, isdir, join, realpath

from dibs.domain import checks
from dibs.domain.refusals import Refused, refused
from dibs.domain.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

BOARDS = "boards"
SERVERS = "servers.toml"
ACCEPTED, CLONES = "accepted", "clones"


def folder_in(environment: Mapping[str, str]) -> str:
    """`$XDG_CONFIG_HOME/dibs`, else `~/.config/dibs`; "" if the home directory is unknown."""
    stated = environment.get("XDG_CONFIG_HOME", "")
    if isabs(stated):
        return join(stated, "dibs")
    home = environment.get("HOME") or home_of_account()
    return join(home, ".config", "dibs") if isabs(home) else ""


def home_of_account() -> str:
    from pwd import getpwuid

    try:
        return getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return ""


class User(Value):
    """The user's decisions on this machine. Without a folder there are none."""

    folder: str = ""

    # Boards.

    def board_file(self, uid: str) -> str:
        return join(self.folder, BOARDS, f"{uid}.toml")

    @property
    def has_boards(self) -> bool:
        """Whether there is a file for any board: if not, no board's id needs to be read."""
        return bool(self.folder) and isdir(join(self.folder, BOARDS))

    def stated(self, uid: str) -> dict[str, Any]:
        """The contents of the user's file for a board, unchecked."""
        if not self.has_boards or not is_board_id(uid):
            return {}
        return self._read(self.board_file(uid))

    # Servers.

    @property
    def servers_file(self) -> str:
        return join(self.folder, SERVERS)

    def url_of(self, board_folder: str) -> str:
        """The server of a clone's board, if a person has set one."""
        return self._clones().get(realpath(board_folder), "")

    def accepts(self, address: str) -> bool:
        """Whether a person has accepted this server on this machine."""
        return address in self._accepted() or address in self._clones().values()

    def accept(self, address: str) -> None:
        """Allows this server to be contacted from now on, whichever file names it."""

        def change(text: str) -> str:
            from dibs.board.toml_files import parse, with_value

            known = parse(text, self.servers_file).get(ACCEPTED, [])
            return with_value(text, (ACCEPTED,), [*known, address], self.servers_file)

        if not self.accepts(address):
            self.change(self.servers_file, change)

    def set_url(self, board_folder: str, address: str) -> None:
        self.write(self.servers_file, (CLONES, realpath(board_folder)), address)

    def unset_url(self, board_folder: str) -> None:
        """Removes the server of the clone's board. Servers accepted by a move remain accepted."""
        self.write(self.servers_file, (CLONES, realpath(board_folder)), None)

    def _accepted(self) -> list[str]:
        stated: list[str] = self._servers().get(ACCEPTED, [])
        if not is_list_of_texts(stated):
            raise self._malformed(f"{ACCEPTED} is a list of addresses")
        return stated

    def _clones(self) -> dict[str, str]:
        stated: dict[str, str] = self._servers().get(CLONES, {})
        if not isinstance(stated, dict) or not is_list_of_texts([*stated.values()]):
            raise self._malformed(f"[{CLONES}] has an address for each folder")
        return stated

    def _servers(self) -> dict[str, Any]:
        return self._read(self.servers_file) if self.folder else {}

    def _malformed(self, what: str) -> Refused:
        return refused("bad_setting", f"{self.servers_file}: {what}")

    # Files.

    def _read(self, path: str) -> dict[str, Any]:
        if not os.path.lexists(path):
            return {}
        from dibs.board.toml_files import read

        self._check()
        return read(path)

    def write(self, path: str, keys: tuple[str, ...], value: Any) -> None:
        """Sets one value of a file in the folder, or removes it (None)."""

        def change(text: str) -> str:
            from dibs.board.toml_files import with_value, without_value

            if value is None:
                return without_value(text, keys, path)
            return with_value(text, keys, value, path)

        self.change(path, change)

    def change(self, path: str, change: Callable[[str], str]) -> None:
        """Replaces a file in the folder, which is created for its owner alone."""
        from dibs.board.toml_files import rewrite

        if not self.folder:
            raise refused("bad_argument", "nobody knows where your configuration is: set HOME")
        self._check()
        rewrite(path, change, within=self.folder)

    def _check(self) -> None:
        from dibs.safe_files import check_private

        check_private(self.folder)
        check_private(join(self.folder, BOARDS))


def is_board_id(uid: str) -> bool:
    """Whether this is a valid id: a board states its own, and an invalid one must not become a file name."""
    try:
        return bool(checks.board_id(uid))
    except Refused:
        return False


def is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
