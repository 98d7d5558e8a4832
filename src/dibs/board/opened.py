"""An opened board: what it is made of, and how it is looked at. `Board` adds all that can be changed."""

from __future__ import annotations

from dibs.board.persist import Glancing, Reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.board.execute import Backlog, Board
    from dibs.board.settings import Settings
    from dibs.stores.store import Store


class Opened:
    """A store, the settings that hold for it, and the item files beside it."""

    def __init__(self, store: Store, settings: Settings, backlog: Backlog | None = None) -> None:
        self.store = store
        self.settings = settings
        self.backlog = backlog
        """Item files that are kept in step with the board, if the repository has any."""

    def read(self) -> Reading:
        """A consistent look at the board, wherever it is."""
        return Reading(self)

    def glance(self) -> Glancing:
        """The same for who asks only who holds what: a file has a shorter way for that."""
        return Glancing(self)

    def whole(self) -> Board:
        """The board with all that can be done with it."""
        from dibs.board.execute import Board

        if isinstance(self, Board):
            return self
        return Board(self.store, self.settings, self.backlog)
