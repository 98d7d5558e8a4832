"""What can go wrong with storage, as refusals with codes of their own. Nothing was changed."""

from __future__ import annotations

from dibs.core.checks import short
from dibs.core.refusals import Refused, refused


def busy(path: str, blocker: str, seconds: float) -> Refused:
    who = blocker or "another process"
    return refused(
        "busy",
        f"the board is busy: {who} has kept its write lock for more than {seconds:g} s",
        blocker=blocker or None,
        path=path,
    )


def disk_full(path: str) -> Refused:
    return refused("disk_full", f"the disk is full: {path}; nothing was changed", path=path)


def read_only(path: str) -> Refused:
    return refused("read_only", f"the board cannot be written: {path}", path=path)


def corrupt(path: str, detail: str) -> Refused:
    return refused("corrupt", f"the board's file is damaged: {path} ({detail})", path=path)


def storage_failed(path: str, detail: str) -> Refused:
    where = short(path, 200)
    return refused("storage_failed", f"the board cannot be used: {where} ({detail})", path=path)


def unsafe_storage(path: str, why: str) -> Refused:
    return refused("unsafe_storage", f"{path} {why}", path=path)


def network_file_system(path: str, kind: str) -> Refused:
    return refused(
        "network_file_system",
        f"{path} is on a file system of type {kind}, which cannot keep a board safely",
        path=path,
        file_system=kind,
    )


def newer_schema(path: str, found: int, known: int) -> Refused:
    return refused(
        "newer_schema",
        f"{path} was written by a newer dibs (schema {found}; this one knows {known})",
        found=found,
        known=known,
    )


def no_board(path: str) -> Refused:
    return refused("no_board", f"there is no board in {path}", path=path)


def forked(pid: int) -> Refused:
    return refused(
        "forked", f"this board was opened by process {pid}: open it again after a fork", pid=pid
    )
