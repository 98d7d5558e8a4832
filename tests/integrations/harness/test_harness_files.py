"""Files of others: what we put in can be taken out again, and no other byte changes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.domain.refusals import Refused
from dibs.harnesses import HARNESSES
from dibs.integrations.harness import text_edit
from dibs.integrations.harness.install import INSTALLED, PROJECT, USER, HarnessSetup, apply

NAMES = sorted(HARNESSES)
harnesses = pytest.mark.parametrize("name", NAMES)
DIBS = "/opt/my tools/bin/dibs"


def setup_in(folder, name="claude", level=USER, dibs=DIBS, board="") -> HarnessSetup:
    return HarnessSetup(
        HARNESSES[name], level, str(folder / "home"), str(folder / "repo"), dibs, board
    )


def tree(folder) -> dict[str, bytes | None]:
    """Every file with its bytes, every folder, and where links lead."""
    return {
        str(path.relative_to(folder)): (
            str(path.readlink()).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else None
        )
        for path in folder.rglob("*")
    }  # fmt: skip


def round_trip(folder, setup: HarnessSetup) -> None:
    """Set up, checked, set up again, taken out: everything is as before."""
    before = tree(folder)
    apply(setup.planned())
    assert all(each.state == INSTALLED for each in setup.findings())
    once = tree(folder)
    assert setup.planned() == []
    apply(setup.planned())
    assert tree(folder) == once
    apply(setup.planned_removal())
    assert tree(folder) == before
    assert setup.planned_removal() == []


# Settings that are JSON.

OTHERS = {"type": "command", "command": "lint"}
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=6)
ANY = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
GROUPS = st.lists(
    st.sampled_from([{"matcher": "Bash", "hooks": [OTHERS]}, {"hooks": []}, {}, OTHERS, "odd"]),
    max_size=3,
)
EVENTS = ("SessionStart", "PreToolUse", "PostToolUse", "Stop", "BeforeTool", "preToolUse", "Other")
SETTINGS = st.dictionaries(st.text(max_size=5).filter(lambda name: name != "hooks"), ANY, max_size=3).flatmap(
    lambda rest: st.one_of(
        st.just(rest),
        st.dictionaries(st.sampled_from(EVENTS), GROUPS, max_size=4).map(lambda hooks: {**rest, "hooks": hooks}),
        st.dictionaries(st.sampled_from(EVENTS), GROUPS, max_size=4).map(lambda hooks: {"hooks": hooks, **rest}),
    )
)  # fmt: skip
SPACES = st.text(alphabet=" \t\r\n", max_size=4)


@st.composite
def written(draw) -> str:
    """A settings file in some odd but valid form."""
    settings = draw(SETTINGS)
    text = json.dumps(
        settings,
        indent=draw(st.sampled_from([None, 0, 1, 2, 4, "\t", "  \t"])),
        separators=draw(st.sampled_from([None, (",", ":"), (" , ", " :  "), (",\n", ":\n")])),
        ensure_ascii=draw(st.booleans()),
    )
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    inner = draw(SPACES)
    text = (
        text.replace("[]", f"[{inner}]").replace("{}", f"{{{inner}}}")
        if draw(st.booleans())
        else text
    )
    mark = draw(st.sampled_from(["", "", "\ufeff"]))
    return f"{mark}{draw(SPACES)}{text}{draw(SPACES)}"


@given(text=written(), name=st.sampled_from(NAMES))
def test_any_settings_are_merged_and_given_back_to_the_byte(tmp_path_factory, text, name):
    """Order, indentation, unknown keys, spaces, line ends, byte order mark: all stay."""
    try:
        data = json.loads(text.removeprefix("\ufeff"))
    except ValueError:  # a text in it held brackets
        return
    folder = tmp_path_factory.mktemp("files")
    setup = setup_in(folder, name)
    path = folder / "home" / HARNESSES[name].folder / HARNESSES[name].file
    path.parent.mkdir(parents=True)
    path.write_text(text, newline="", encoding="utf-8")
    round_trip(folder, setup)
    apply(setup.planned())
    merged = json.loads(path.read_text(encoding="utf-8").removeprefix("\ufeff"))
    assert {key: value for key, value in merged.items() if key != "hooks"} == {
        key: value for key, value in data.items() if key != "hooks"
    }
    for event, groups in data.get("hooks", {}).items():
        assert merged["hooks"][event][: len(groups)] == groups


@harnesses
@pytest.mark.parametrize("level", [USER, PROJECT])
@pytest.mark.parametrize("blank", [None, "", "\n", "\r\n ", "\ufeff", "{}", "{\n}", "{ }\n"])
@pytest.mark.parametrize("has_folder", [True, False])
def test_what_was_not_there_is_gone_again_and_what_was_blank_is_blank(
    tmp_path, name, level, blank, has_folder
):
    setup = setup_in(tmp_path, name, level)
    (tmp_path / "home").mkdir()
    (tmp_path / "repo").mkdir()
    path = tmp_path / ("home" if level == USER else "repo") / HARNESSES[name].folder
    if has_folder or blank is not None:
        path.mkdir()
    if blank is not None:
        (path / HARNESSES[name].file).write_text(blank, newline="")
    round_trip(tmp_path, setup)


@harnesses
def test_another_dibs_is_replaced_not_added(tmp_path, name):
    old = setup_in(tmp_path, name, dibs="/old/bin/dibs")
    apply(old.planned())
    new = setup_in(tmp_path, name)
    assert [each.state for each in new.findings()] == ["changed"]
    apply(new.planned())
    text = (tmp_path / "home" / HARNESSES[name].folder / HARNESSES[name].file).read_text()
    assert "/old/bin" not in text
    assert [each.state for each in new.findings()] == [INSTALLED]
    apply(new.planned_removal())
    assert tree(tmp_path) == {"home": None}


def test_a_handler_that_somebody_put_beside_ours_stays(tmp_path):
    setup = setup_in(tmp_path)
    apply(setup.planned())
    path = tmp_path / "home" / ".claude" / "settings.json"
    data = json.loads(path.read_text())
    data["hooks"]["PreToolUse"][0]["hooks"].append(OTHERS)
    path.write_text(json.dumps(data))
    apply(setup.planned_removal())
    groups = json.loads(path.read_text())["hooks"]["PreToolUse"]
    assert groups == [{"matcher": "Edit|MultiEdit|Write|NotebookEdit", "hooks": [OTHERS]}]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1} // mine', "comments"),
        ('{\n  // mine\n  "a": 1\n}', "comments"),
        ('{"a": 1,}', "not plain JSON"),
        ("[]", "no JSON object"),
        ('{"hooks": []}', "hooks is not what it should be"),
        ('{"hooks": {"PreToolUse": {}}}', "hooks.PreToolUse is not what it should be"),
        ("[" * 100_000, ""),
        (b"\xff{}", "cannot be read"),
    ],
)
def test_what_cannot_be_merged_is_refused_and_left_as_it_is(tmp_path, text, reason):
    path = tmp_path / "home" / ".claude" / "settings.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    before = tree(tmp_path)
    with pytest.raises(Refused) as problem:
        apply(setup_in(tmp_path).planned())
    assert reason in str(problem.value)
    assert "left as it is" in str(problem.value)
    assert tree(tmp_path) == before


def test_a_link_to_settings_kept_elsewhere_stays_a_link_with_its_rights(tmp_path):
    """As dotfiles managers keep them."""
    kept, folder = tmp_path / "dotfiles" / "claude.json", tmp_path / "home" / ".claude"
    kept.parent.mkdir()
    folder.mkdir(parents=True)
    kept.write_text('{"model": "x"}')
    kept.chmod(0o600)
    (folder / "settings.json").symlink_to(kept)
    setup = setup_in(tmp_path)
    apply(setup.planned())
    assert (folder / "settings.json").is_symlink()
    assert "hook" in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600
    round_trip_back = setup.planned_removal()
    apply(round_trip_back)
    assert kept.read_text() == '{"model": "x"}'
    assert sorted(path.name for path in folder.iterdir()) == ["settings.json"]


@pytest.mark.parametrize("linked", [".claude", ".claude/settings.json", "CLAUDE.md", "AGENTS.md"])
def test_a_projects_link_is_never_followed_out_of_the_project(tmp_path, linked):
    """A repository that somebody else wrote cannot have us write into your home."""
    repo, outside = tmp_path / "repo", tmp_path / "outside"
    (repo / linked).parent.mkdir(parents=True)
    outside.mkdir()
    (outside / "settings.json").write_text("{}")
    (outside / "notes.md").write_text("mine\n")
    target = {".claude": outside, ".claude/settings.json": outside / "settings.json"}
    if linked == "AGENTS.md":
        (repo / "CLAUDE.md").write_text("@AGENTS.md\n")
    (repo / linked).symlink_to(target.get(linked, outside / "notes.md"))
    before = tree(tmp_path)
    for plan in (HarnessSetup.planned, HarnessSetup.planned_removal):
        with pytest.raises(Refused) as problem:
            apply(plan(setup_in(tmp_path, "claude", PROJECT)))
        assert "leads out of the repository" in str(problem.value)
    assert tree(tmp_path) == before


def test_instructions_that_are_one_file_by_a_link_are_written_once(tmp_path):
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "AGENTS.md").write_text("# Rules\n")
    (repo / "CLAUDE.md").symlink_to("AGENTS.md")
    for name in ("claude", "codex"):
        apply(setup_in(tmp_path, name, PROJECT).planned())
    assert (repo / "AGENTS.md").read_text().count("dibs:begin") == 1
    apply(setup_in(tmp_path, "claude", PROJECT).planned_removal())
    assert "dibs:begin" in (repo / "AGENTS.md").read_text()
    apply(setup_in(tmp_path, "codex", PROJECT).planned_removal())
    assert (repo / "AGENTS.md").read_text() == "# Rules\n"
    assert (repo / "CLAUDE.md").is_symlink()


def test_each_harness_gets_its_own_form(tmp_path):
    """Lists of words without a shell; seconds or milliseconds; groups or not; no wait where it can be."""
    found = {name: list(setup_in(tmp_path, name).wanted()) for name in NAMES}
    claude = dict(found["claude"])
    handler = {"type": "command", "command": DIBS, "args": ["hook", "claude"], "timeout": 10}
    assert claude["PreToolUse"] == {
        "matcher": "Edit|MultiEdit|Write|NotebookEdit",
        "hooks": [handler],
    }
    assert claude["PostToolUse"] == {"hooks": [{**handler, "async": True}]}
    codex = dict(found["codex"])["PreToolUse"]["hooks"]
    assert codex == [{"type": "command", "command": f"'{DIBS}' hook codex", "timeout": 10}]
    gemini = dict(found["gemini"])["BeforeTool"]
    assert gemini["matcher"] == "write_file|replace"
    assert gemini["hooks"][0]["timeout"] == 10_000
    cursor = dict(found["cursor"])["preToolUse"]
    assert cursor["command"] == f"'{DIBS}' hook cursor"
    assert cursor["matcher"].split("|")[0] == "Write"


# Instructions.


@given(st.text(alphabet="a# \r\n<!->", max_size=12))
def test_instructions_are_put_at_the_end_and_taken_out_to_the_byte(text):
    once = text_edit.with_section(text)
    assert text_edit.with_section(once) == once
    assert text_edit.without_section(once) == text
    assert once.startswith(text)


def test_an_older_section_is_replaced_where_it_stands():
    old = "# Mine\n\n<!-- dibs:begin 0 -->\nold words\n<!-- dibs:end -->\nafter\n"
    new = text_edit.with_section(old)
    assert "old words" not in new
    assert new.startswith("# Mine\n\n<!-- dibs:begin 1 -->\n")
    assert new.endswith("<!-- dibs:end -->\nafter\n")


@pytest.mark.parametrize("mark", ["<!-- dibs:begin 1 -->", "<!-- dibs:end -->"])
def test_a_mark_in_a_sentence_is_the_writers_and_stays(mark):
    """Words about us, in somebody's own text, are not ours to delete."""
    for line in (f"Ours is between `{mark}` and its end.", f"{mark} is the mark", f"> {mark}"):
        text = f"# Rules\n{line}\nKeep me.\n"
        assert text_edit.without_section(text) == text
        once = text_edit.with_section(text)
        assert once.startswith(text)
        assert text_edit.without_section(once) == text


@pytest.mark.parametrize(
    "text",
    [
        "<!-- dibs:begin 1 -->\nmine\n",
        "mine\n<!-- dibs:end -->\n",
        "<!-- dibs:end -->\nmine\n<!-- dibs:begin 1 -->\n",
        "<!-- dibs:begin 1 -->\nmine\n<!-- dibs:begin 1 -->\n<!-- dibs:end -->\n",
        "<!-- dibs:begin 1 -->\n<!-- dibs:end -->\nmine\n<!-- dibs:end -->\n",
    ],
)
def test_where_our_section_is_not_clear_nothing_is_changed(tmp_path, text):
    path = tmp_path / "repo" / "CLAUDE.md"
    path.parent.mkdir()
    path.write_text(text)
    before = tree(tmp_path)
    for plan in (HarnessSetup.planned, HarnessSetup.planned_removal):
        with pytest.raises(Refused) as problem:
            apply(plan(setup_in(tmp_path, "claude", PROJECT)))
        assert f"{path}: where the section of dibs begins and ends is not clear" in str(
            problem.value
        )
    assert tree(tmp_path) == before


def test_claudes_file_that_takes_in_another_is_respected(tmp_path):
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "CLAUDE.md").write_text("@AGENTS.md\n")
    (repo / "AGENTS.md").write_text("# Rules\n")
    claude, codex = (setup_in(tmp_path, name, PROJECT) for name in ("claude", "codex"))
    apply(claude.planned())
    assert (repo / "CLAUDE.md").read_text() == "@AGENTS.md\n"
    assert "dibs:begin" in (repo / "AGENTS.md").read_text()
    apply(codex.planned())
    apply(claude.planned_removal())
    assert "dibs:begin" in (repo / "AGENTS.md").read_text()  # Codex reads it too
    apply(codex.planned_removal())
    assert (repo / "AGENTS.md").read_text() == "# Rules\n"


def test_a_persons_own_setup_writes_no_instructions(tmp_path):
    (tmp_path / "repo").mkdir()
    apply(setup_in(tmp_path, "claude", USER).planned())
    assert list((tmp_path / "repo").iterdir()) == []


# The sandbox of Codex.

BOARD = "/srv/shop/.git/dibs"
CONFIGS = [
    None,
    "",
    "\n",
    'model = "o3"',
    'model = "o3"\n',
    'model = "o3"\r\n[mcp_servers.x]\r\ncommand = "y"\r\n',
    "[sandbox_workspace_write]",
    "[sandbox_workspace_write]\nnetwork_access = true\n",
    "[sandbox_workspace_write] # mine\nwritable_roots = []\n[other]\nx = 1\n",
    "[sandbox_workspace_write]\nwritable_roots = [ ]\n",
    '[sandbox_workspace_write]\nwritable_roots = ["/tmp/x"]',
    '[ sandbox_workspace_write ]\n  writable_roots  =  [\n    "/tmp/x", # why\n    "/tmp/y",\n  ]\n[a]\n',
    "# only a comment\n",
]


@pytest.mark.parametrize("text", CONFIGS)
def test_the_boards_folder_is_let_be_written_and_taken_back_to_the_byte(tmp_path, text):
    path = tmp_path / "home" / ".codex" / "config.toml"
    path.parent.mkdir(parents=True)
    if text is not None:
        path.write_text(text, newline="")
    round_trip(tmp_path, setup_in(tmp_path, "codex", board=BOARD))
    two = [setup_in(tmp_path, "codex", board=f"/repo{number}/.git/dibs") for number in (1, 2)]
    before = tree(tmp_path)
    for setup in two:
        apply(setup.planned())
    assert text_edit.roots_in(path.read_text(), "")[:2] == [two[1].board, two[0].board]
    apply(two[0].planned_removal())
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('sandbox_workspace_write = {writable_roots = ["/x"]}\n', "a form that dibs does not edit"),
        ("sandbox_workspace_write = {network_access = true}\n", "a form that dibs does not edit"),
        ('sandbox_workspace_write.writable_roots = ["/x"]\n', "a form that dibs does not edit"),
        ("sandbox_workspace_write.network_access = true\n", "a form that dibs does not edit"),
        ("sandbox_workspace_write = 7\n", "a form that dibs does not edit"),
        ("[sandbox_workspace_write]\nwritable_roots = 7\n", "a form that dibs does not edit"),
        ("not toml", "is not TOML"),
    ],
)
def test_a_configuration_that_is_not_edited_is_left_as_it_is_and_says_what_to_add(
    tmp_path, text, reason
):
    path = tmp_path / "home" / ".codex" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(Refused) as problem:
        apply(setup_in(tmp_path, "codex", board=BOARD).planned())
    assert reason in str(problem.value)
    assert reason == "is not TOML" or f"add {BOARD} to its writable_roots" in str(problem.value)
    assert path.read_text() == text


@pytest.mark.parametrize("quoted", [f"'{BOARD}'", f'"{BOARD}"'])
@pytest.mark.parametrize("then_set_up", [BOARD, "/other/.git/dibs"])
def test_a_folder_that_somebody_let_be_written_himself_stays(tmp_path, quoted, then_set_up):
    path = tmp_path / "home" / ".codex" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(f"[sandbox_workspace_write]\nwritable_roots = [{quoted}]\n")
    round_trip(tmp_path, setup_in(tmp_path, "codex", board=then_set_up))


def test_a_projects_file_never_holds_a_folder_of_this_machine(tmp_path):
    (tmp_path / "repo").mkdir()
    apply(setup_in(tmp_path, "codex", PROJECT, board=BOARD).planned())
    for path in (tmp_path / "repo").rglob("*"):
        assert path.is_dir() or BOARD not in path.read_text()
    assert BOARD in (tmp_path / "home" / ".codex" / "config.toml").read_text()
