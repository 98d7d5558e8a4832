"""Where backlogs are: the one list. It imports nothing, since every command reads it."""

from __future__ import annotations

FOLDERS = {
    "kano": ("_kano/backlog",),
    "wrk": (".claude/work-queue",),
    "workgraph": (".wg", ".workgraph"),
    "backlog_md": ("backlog", ".backlog"),
    "taskmaster": (".taskmaster",),
}
"""The folders of each backlog, by its name in `dibs.toml`. The first that is there counts."""

MARKS = {
    "workgraph": "graph.jsonl",
    "backlog_md": "config.yml",
    "taskmaster": "tasks/tasks.json",
}
"""A file that a backlog folder must contain; otherwise a folder of that name is something else."""

ROOT_CONFIG = "backlog.config.yml"
"""Where Backlog.md may have its configuration instead; it names the folder."""

FILE = "dibs.toml"

SIGNS = (
    *(
        f"{folder}/{MARKS[name]}" if name in MARKS else folder
        for name, folders in FOLDERS.items()
        for folder in folders
    ),
    ROOT_CONFIG,
    FILE,
)
"""Only where one of these exists may there be a backlog; elsewhere its code is not loaded."""
