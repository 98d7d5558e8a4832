"""Facts for decisions, read in their transactions: `facts_for` loads what the kind of a command needs."""

from __future__ import annotations

from dibs.board.facts.task import load_task
from dibs.board.settings import Settings
from dibs.domain import commands as c
from dibs.domain.facts import NO_EVIDENCE, Evidence, Facts
from dibs.domain.model import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dibs.storage.transaction import ReadTransaction


def facts_for(
    tx: ReadTransaction,
    caller: Caller,
    command: c.Command,
    settings: Settings,
    evidence: Evidence = NO_EVIDENCE,
) -> Facts:
    basis = Facts(caller, settings.rules, tx.board.epoch, command, tx.now, {}, is_plan=False)
    return load(tx, basis, settings, evidence).but(now=tx.now)  # a task that is read may raise it


def load(tx: ReadTransaction, basis: Facts, settings: Settings, evidence: Evidence) -> Facts:
    kind = basis.command.spec.facts
    if kind in ("task", "claim"):
        return load_task(tx, basis, evidence)
    if kind in ("add", "intake"):
        from dibs.board.facts.intake import load_requests

        return load_requests(tx, basis, settings.key_prefix)
    if kind == "sync":
        from dibs.board.facts.sync import load_items

        return load_items(tx, basis, settings)
    if kind in ("stint", "approval"):
        from dibs.board.facts.stints import load_hours

        return load_hours(tx, basis)
    if kind in ("board", "clock", "actor", "epoch"):
        from dibs.board.facts.board import load_board

        return load_board(tx, basis, settings, evidence)
    if kind == "session":
        from dibs.board.facts.sessions import load_session

        return load_session(tx, basis)
    from dibs.board.facts.queue import load_many

    return load_many(tx, basis, evidence)
