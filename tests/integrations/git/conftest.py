"""Repositories with a board and its guards; one is made, the others are copies of it."""

from __future__ import annotations

import shutil

import pytest

from kit.guarded import ONE, Tree, clone
from kit.repositories import git


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


@pytest.fixture
def shared(tmp_path):
    """A bare repository with a board in it, that guards what is pushed to it."""
    folder = tmp_path / "shared.git"
    folder.mkdir()
    git(folder, "init", "-q", "--bare", "-b", "main")
    bare = Tree(folder)
    bare.ok("init")
    states = bare.json("setup", "git")["hooks"]
    assert [(each["hook"], each["state"]) for each in states] == [("pre-receive", "installed")]
    return bare


@pytest.fixture
def one(shared):
    """The first session holds T-1, for `src`, and has pushed a first commit."""
    tree = clone(shared, "one", ONE)
    shared.task("src")
    shared.task("docs")
    tree.ok("claim", "T-1")
    tree.commit("src/first")
    tree.git("push", "-q", "origin", "HEAD:main")
    return tree
