"""Runs the sessions on every page, and writes what changed in their output back to the page.

Output that a page shortens with `...` is not touched: such a page is named, to be mended by hand.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from kit.repositories import Repo  # noqa: E402 - after the path is set
from kit.sessions import fits, outputs, session_of  # noqa: E402


def refill(page: Path) -> None:
    steps = session_of(page)
    with tempfile.TemporaryDirectory() as folder:
        results = outputs(steps, Repo.create(Path(folder) / "shop").folder)
    text = page.read_text()
    if all(fits("\n".join(step.shown), output) for step, output in zip(steps, results)):
        return
    for step, output in zip(steps, results):
        shown = "\n".join(step.shown)
        if "..." in shown:
            if not fits(shown, output):
                print(f"by hand: {page.relative_to(ROOT)}: $ {step.command}")
            continue
        typed = "$ " + step.command.replace("\n", "\n> ") + "\n"
        old = typed + "".join(f"{line}\n" for line in step.shown)
        text = text.replace(old, typed + output, 1)
    page.write_text(text)
    print(f"written: {page.relative_to(ROOT)}")


for found in sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")]):
    if session_of(found):
        refill(found)
