"""Repositories with a board and its guards; one is made, the others are copies of it."""

from __future__ import annotations

import shutil

import pytest

from kit.guarded import ONE, Tree


@pytest.fixture(scope="session")
def original(tmp_path_factory):
    tree = Tree.at(tmp_path_factory.mktemp("guarded") / "repo")
    (tree.folder / "README").write_text("readme\n")
    tree.git("add", ".")
    tree.git("commit", "-q", "-m", "first")
    tree.ok("init")
    tree.ok("setup", "git")
    return tree.folder


@pytest.fixture
def tree(original, tmp_path):
    """The main work tree, with the first agent in it."""
    shutil.copytree(original, tmp_path / "repo", symlinks=True)
    return Tree(tmp_path / "repo", ONE)


@pytest.fixture
def plain(tmp_path):
    """A repository with a first commit, and nothing of dibs."""
    tree = Tree.at(tmp_path / "plain", ONE)
    tree.git("commit", "-q", "--allow-empty", "-m", "first")
    return tree
