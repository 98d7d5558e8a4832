"""Installation into files of other programs: git hooks, harness settings, and the manifest of it all."""

from __future__ import annotations

INSTALLED, MISSING, CHANGED = "installed", "missing", "changed"
"""States of a hook, or of another part of a setup."""

LEVELS = USER, PROJECT = ("user", "project")
"""Levels of a harness setup: for all projects of a user, or for one project."""
