"""The install manifest: which files of other programs dibs changed, and what was in them before.

    ~/.config/dibs/installed.json   settings and instructions of harnesses
    .git/dibs-hooks.json            hooks folder and configuration of a clone; paths are relative to `.git`

Removal restores the recorded content if nobody changed the file since. Otherwise it takes out our part, and the
record says what around it was created by dibs. Without a record only what certainly is ours goes: nothing that
a person may have written is deleted.

Setup writes the manifest before the files, removal after them: a killed one leaves a record of too much, never
of too little.
"""

from __future__ import annotations

import json
from os.path import dirname, join, normpath, realpath, relpath

from dibs.board.user_config import folder_in
from dibs.domain.values import Value
from dibs.integrations.install.file_changes import PRIVATE, content

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dibs.integrations.install.file_changes import FileChanges

USER_FILE = "installed.json"
VERSION = 1


class Entry(Value):
    """A file that dibs changed or created."""

    path: str
    before: str | None
    """Its content before; `None`: dibs created the file."""
    after: str = ""
    """Digest of the content that dibs wrote."""
    made_folder: bool = False
    """Whether dibs created its folder too; for the entry of a folder, the folder itself."""
    added: tuple[str, ...] = ()
    """Values that dibs put in, if the file itself does not show whose they are."""

    def is_unchanged(self, text: str) -> bool:
        """Whether the file has the content that dibs wrote."""
        return self.after == digest(text)


class Manifest:
    """The entries of one manifest file. Changes are staged together with those of the files."""

    def __init__(self, file: str, root: str = "") -> None:
        """`root`: the folder that the paths in the file are relative to."""
        self.file = file
        self._root = root
        self._seen = content(file)
        self.problem = ""
        """Why an existing manifest could not be read: then it has no entries."""
        self.entries: dict[str, Entry] = {}
        try:
            self.entries = self._parsed(self._seen) if self._seen is not None else {}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            self.problem = f"{file} cannot be read ({error}): what dibs installed is not known"
        self._old = dict(self.entries)

    @classmethod
    def of_user(cls, environment: Mapping[str, str]) -> Manifest:
        return cls(join(folder_in(environment), USER_FILE))

    def entry(self, path: str) -> Entry | None:
        return self.entries.get(realpath(path))

    def put(self, entry: Entry) -> None:
        self.entries[realpath(entry.path)] = entry

    def drop(self, path: str) -> None:
        self.entries.pop(realpath(path), None)

    def stage(self, files: FileChanges) -> None:
        """Stages the changed manifest; one without entries is deleted."""
        if self.entries == self._old:
            return
        new = self._written() if self.entries else None
        if new is not None:
            files.make_folder(dirname(self.file))
            if self.problem:
                files.rename(self.file, f"{self.file}.damaged")
            files.write(self.file, new, PRIVATE, seen=self._seen)
        else:
            files.remove(self.file)
            if not self._root:
                files.remove_if_empty(dirname(self.file))
        self._seen, self._old = new, dict(self.entries)

    def _parsed(self, data: bytes) -> dict[str, Entry]:
        found = [
            Entry(
                normpath(join(self._root, one["path"])),
                one["before"],
                one["after"],
                one["made_folder"],
                tuple(one["added"]),
            )
            for one in json.loads(data)["installed"]
        ]
        return {realpath(entry.path): entry for entry in found}

    def _written(self) -> bytes:
        entries = [
            entry.named() | {"path": self._stated(entry.path)} for entry in self.entries.values()
        ]
        text = json.dumps({"version": VERSION, "installed": entries}, indent=2)
        return f"{text}\n".encode()

    def _stated(self, path: str) -> str:
        return relpath(realpath(path), realpath(self._root)) if self._root else path


def digest(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def read(path: str) -> str | None:
    """The text of any file, undecodable bytes kept; `None` if there is none."""
    data = content(path)
    return None if data is None else data.decode("utf-8", "surrogateescape")
