"""The one rule for a board that cannot be read, for every guard of git and every hook of a harness.

The write goes through with a warning; if the setting `guard_failure` is `refuse`, it is refused. Where there is no
board and none is expected, nothing is printed.
"""

from __future__ import annotations

import os
from os.path import isdir, join

from dibs.board.locate import FOLDER_IN_GIT, is_expected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from dibs.board.locate import Place
    from dibs.domain.refusals import Refused

NOT_READ = ("no_board", "foreign_repository")
"""Refusals that mean that there is no board to read."""


def is_board_expected(place: Place, environment: Mapping[str, str]) -> bool:
    """Whether a board is expected: one that was deleted or hidden must not allow what it forbade."""
    is_hidden = isdir(place.folder) and not os.access(place.folder, os.X_OK)
    return is_hidden or is_expected(place, environment)


def is_silent(problem: Refused, place: Place, environment: Mapping[str, str]) -> bool:
    """Whether the problem is only that there is no board, and none is expected."""
    return problem.code in NOT_READ and not is_board_expected(place, environment)


def refuses(place: Place | None) -> bool:
    """Whether `guard_failure` is `refuse`, as far as settings can be read.

    The repository's own folder counts too: the environment may point elsewhere.
    """
    from dibs.domain.scopes.policy import REFUSE

    folders = [place.folder] if place is not None else []
    if place is not None and place.repository is not None:
        folders.append(join(place.repository.common_dir, FOLDER_IN_GIT))
    return any(settings_in(folder).get("guard_failure") == REFUSE for folder in folders)


def settings_in(folder: str) -> dict[str, Any]:
    """The settings in a board's folder, as far as they can be read."""
    from dibs.board.settings import checked

    try:
        return dict(checked(folder)[0])
    except Exception:  # noqa: BLE001 - the failure that is being handled already
        return {}
