"""The code reads as CONTRIBUTING says: small files, small functions, a promise at the top."""

from __future__ import annotations

import ast
from pathlib import Path

import dibs

ROOT = Path(dibs.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
FILE_LINES = 600
FUNCTION_LINES = 60


def test_no_file_is_too_long_to_be_read_at_once():
    long = {
        path.name: count
        for path in FILES
        if (count := len(path.read_text().splitlines())) > FILE_LINES
    }
    assert long == {}


def test_no_function_is_too_long_to_be_seen_at_once():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno < FUNCTION_LINES, (path.name, node.name)


def test_every_module_says_what_it_is_for():
    for path in FILES:
        text = path.read_text()
        assert not text.strip() or ast.get_docstring(ast.parse(text)), path
