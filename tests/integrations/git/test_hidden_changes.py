"""Changes that git shows only to who asks for them: in merges, behind replaced objects, before a cut."""

from __future__ import annotations

import pytest

from kit.guarded import TWO, Tree, clone
from kit.repositories import git


@pytest.fixture
def one(one):
    """The first session has pushed two files too."""
    one.commit("src/a", "src/b")
    one.git("push", "-q", "origin", "HEAD:main")
    return one


@pytest.fixture
def two(shared, one):
    """The second session holds T-2, for `docs`."""
    tree = clone(shared, "two", TWO)
    tree.ok("claim", "T-2")
    return tree


def tree_with(tree: Tree, *paths: str, text: str = "evil\n") -> str:
    """A tree of what is checked out, with these files changed."""
    for path in paths:
        (tree.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (tree.folder / path).write_text(text)
    tree.git("add", "--", *paths)
    made = tree.git("write-tree").strip()
    tree.git("reset", "-q", "--hard")
    return made


def merge_of(tree: Tree, content: str, *parents: str, words: str = "merge") -> str:
    """A merge commit with this content, whatever its parents have; it is checked out."""
    named = [word for parent in parents for word in ("-p", parent)]
    made = tree.git("commit-tree", *named, "-m", words, content).strip()
    tree.git("reset", "-q", "--hard", made)
    return made


def is_refused_everywhere(tree: Tree, reason: str) -> None:
    """By the hook of the shared repository, and by the check that CI runs."""
    ran = tree.fails(4, "guard", "range", "origin/main..HEAD")
    assert reason in ran.out, ran.out
    message = tree.git_fails("push", "origin", "HEAD:main")
    assert reason in message, message
    assert "Traceback" not in message


def is_accepted_everywhere(tree: Tree) -> None:
    tree.ok("guard", "range", "origin/main..HEAD")
    tree.git("push", "-q", "origin", "HEAD:main")


# Merges.


@pytest.fixture
def sides(one, two):
    """Two sides of a merge: work of the second session, and what the first has pushed meanwhile."""
    mine = two.commit("docs/x")
    one.commit("src/a", text="more\n")
    one.git("push", "-q", "origin", "HEAD:main")
    two.git("fetch", "-q")
    return mine, "origin/main"


def test_what_only_a_merge_changes_is_checked(two, sides):
    two.git("merge", "-q", "--no-edit", "origin/main")
    evil = tree_with(two, "src/b")
    made = merge_of(two, evil, *sides)
    is_refused_everywhere(two, f'{made[:10]} names no task, and "src/b" is held by codex')


def test_what_only_a_merge_adds_is_checked(two, sides):
    two.git("merge", "-q", "--no-edit", "origin/main")
    evil = tree_with(two, "src/new")
    merge_of(two, evil, *sides)
    is_refused_everywhere(two, 'names no task, and "src/new" is held by codex')


def test_a_merge_that_names_a_task_stays_in_its_scope(two, sides):
    two.git("merge", "-q", "--no-edit", "origin/main")
    evil = tree_with(two, "other/x")
    words = "merge\n\nDibs-Task: T-2\nDibs-Token: 1.1"
    merge_of(two, evil, *sides, words=words)
    ran = two.fails(1, "guard", "range", "origin/main..HEAD")
    assert 'changes "other/x", outside the scope of what it names (T-2: "docs")' in ran.out
    assert 'changes "other/x", outside the scope' in two.git_fails("push", "origin", "HEAD:main")


@pytest.mark.parametrize("first", [0, 1])
def test_a_merge_that_leaves_out_what_another_did_is_checked(two, sides, first):
    """As `git merge -s ours` makes it: every file is as one of the parents has it."""
    parents = sides if first == 0 else sides[::-1]
    merge_of(two, f"{sides[0]}^{{tree}}", *parents)
    is_refused_everywhere(two, 'names no task, and "src/a" is held by codex')


def test_a_merge_of_more_than_two_that_leaves_something_out_is_checked(two, sides):
    third = two.git("commit-tree", "-p", f"{sides[0]}~1", "-m", "third", f"{sides[0]}~1^{{tree}}")
    merge_of(two, f"{sides[0]}^{{tree}}", *sides, third.strip())
    is_refused_everywhere(two, 'names no task, and "src/a" is held by codex')


def test_a_merge_of_unrelated_histories_that_leaves_something_out_is_checked(two, sides):
    two.git("rm", "-r", "-q", "src")
    words = "apart\n\nDibs-Task: T-2\nDibs-Token: 1.1"
    apart = two.git("commit-tree", "-m", words, two.git("write-tree").strip()).strip()
    made = merge_of(two, f"{apart}^{{tree}}", "origin/main", apart)
    is_refused_everywhere(two, f'{made[:10]} names no task, and "src/a" is held by codex')


def test_a_merge_as_git_makes_it_changes_nothing_itself(two, sides):
    two.git("merge", "-q", "--no-edit", "origin/main")
    assert two.git("log", "-1", "--format=%P").count(" ") == 1
    is_accepted_everywhere(two)


def test_a_holder_merges_what_it_holds(shared, one, two):
    """Both sides changed a file: the merge has it as neither of them."""
    lines = [f"{number}\n" for number in range(20)]
    one.commit("src/long", text="".join(lines))
    one.git("push", "-q", "origin", "HEAD:main")
    one.git("checkout", "-q", "-b", "side")
    one.commit("src/long", text="".join(["first\n", *lines[1:]]))
    one.git("checkout", "-q", "-")
    one.commit("src/long", text="".join([*lines[:-1], "last\n"]))
    one.git("push", "-q", "origin", "HEAD:main")
    one.git("merge", "-q", "--no-edit", "side")
    assert "Dibs-Task" not in one.message()
    is_accepted_everywhere(one)


def test_a_person_may_let_a_merge_through(shared, two, sides):
    two.git("merge", "-q", "--no-edit", "origin/main")
    merge_of(two, tree_with(two, "src/b"), *sides)
    shared.ok("guard", "allow", "src/b", "--to", "claude", "--reason", "agreed", "--as", "ana")
    is_accepted_everywhere(two)


# Replaced objects.


def hidden(tree: Tree) -> tuple[str, str]:
    """A commit that changes what another holds, and a harmless one that is to be shown in its place."""
    base = tree.git("rev-parse", "HEAD").strip()
    harmless = tree.git("commit-tree", "-p", base, "-m", "nothing", "HEAD^{tree}").strip()
    tree.write("src/a", text="evil\n")
    content = tree.git("write-tree").strip()
    evil = tree.git("commit-tree", "-p", base, "-m", "change", content).strip()
    tree.git("reset", "-q", "--hard", evil)
    return evil, harmless


def test_a_push_of_replaced_objects_is_refused(shared, two):
    evil, harmless = hidden(two)
    two.git("replace", evil, harmless)
    for ref in (f"refs/replace/{evil}", "refs/Replace/other"):
        message = two.git_fails("push", "origin", f"refs/replace/{evil}:{ref}")
        assert f"'{ref}' would replace an object" in message
        assert "push the commit itself; replacement objects are not accepted" in message
    assert shared.git("for-each-ref", "refs/replace") == ""


def test_a_replaced_object_that_is_there_can_be_removed(shared, two):
    evil, harmless = hidden(two)
    shared.git("fetch", "-q", str(two.folder), f"{harmless}:refs/replace/{evil}")
    two.git("push", "-q", "origin", f":refs/replace/{evil}")
    assert shared.git("for-each-ref", "refs/replace") == ""


def test_replaced_objects_hide_nothing(shared, two):
    """Neither those of the clone, nor any that the shared repository has from before."""
    evil, harmless = hidden(two)
    two.git("replace", evil, harmless)
    shared.git("fetch", "-q", str(two.folder), f"{harmless}:refs/replace/{evil}")
    is_refused_everywhere(two, f'{evil[:10]} names no task, and "src/a" is held by codex')


def test_a_commit_is_not_known_because_it_replaces_another(shared, two):
    evil, harmless = hidden(two)
    shared.git("fetch", "-q", str(two.folder), f"{evil}:refs/replace/{harmless}")
    assert '"src/a" is held by codex' in two.git_fails("push", "origin", f"{evil}:refs/heads/main")


def test_grafts_hide_nothing(shared, two):
    """A file that gives a commit other parents: none at all would hide what came before."""
    evil, _ = hidden(two)
    twin = two.git("commit-tree", "-m", "twin", f"{evil}^{{tree}}").strip()
    grafts = two.folder / ".git" / "info" / "grafts"
    grafts.write_text(f"{evil} {twin}\n")
    ran = two.fails(4, "guard", "range", "origin/main..HEAD")
    assert f'{evil[:10]} names no task, and "src/a" is held by codex' in ran.out
    shared.git("fetch", "-q", str(two.folder), f"{twin}:refs/tags/twin")
    grafts.rename(shared.folder / "info" / "grafts")
    assert '"src/a" is held by codex' in two.git_fails("push", "origin", "HEAD:main")


# Clones that are cut off.


def test_a_range_in_a_shallow_clone_is_no_check(two, tmp_path):
    two.commit("docs/x")
    two.commit("docs/y")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{two.folder}", "cut")
    cut = Tree(tmp_path / "cut", two.around)
    ran = cut.fails(2, "guard", "range", "HEAD")
    assert "this clone is shallow" in ran.err and "git fetch --unshallow" in ran.err
    cut.git("fetch", "-q", "--unshallow")
    cut.ok("guard", "range", "HEAD~2..HEAD")
