"""Files of others: what we put in can be taken out again, and no other byte changes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.domain.refusals import Refused
from dibs.harness_table import HARNESSES
from dibs.integrations.install import INSTALLED, PROJECT, USER, text_edit
from dibs.integrations.install.harness import HarnessSetup, install, remove
from dibs.integrations.install.manifest import Entry, Manifest

NAMES = sorted(HARNESSES)
harnesses = pytest.mark.parametrize("name", NAMES)
DIBS = "/opt/my tools/bin/dibs"


def setup_in(folder, name="claude", level=USER, dibs=DIBS, board="") -> HarnessSetup:
    harness, manifest = HARNESSES[name], Manifest(str(folder.with_suffix(".json")))
    own = str(folder / "home" / harness.folder)
    return HarnessSetup(harness, level, own, str(folder / "repo"), dibs, manifest, board)


def put_in(setup: HarnessSetup) -> None:
    setup = setup.but(manifest=Manifest(setup.manifest.file))
    install(setup.planned(), setup.manifest)


def take_out(setup: HarnessSetup) -> None:
    setup = setup.but(manifest=Manifest(setup.manifest.file))
    remove(setup.planned_removal(), setup.manifest)


def tree(folder) -> dict[str, bytes | None]:
    """Every file with its bytes, every folder, and where links lead."""
    return {
        str(path.relative_to(folder)): (
            str(path.readlink()).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else None
        )
        for path in folder.rglob("*")
    }  # fmt: skip


def round_trip(folder, setup: HarnessSetup) -> None:
    """Install, check, install again, remove: everything is as before; also if someone changed the files since."""
    before = tree(folder)
    for forget in (lambda _: None, forget_digests):
        put_in(setup)
        assert all(each.state == INSTALLED for each in setup.findings())
        once = tree(folder)
        put_in(setup)
        assert tree(folder) == once
        forget(setup)
        take_out(setup)
        assert tree(folder) == before
        assert not Path(setup.manifest.file).exists()


def forget_digests(setup: HarnessSetup) -> None:
    """Every file counts as changed by others: our part is taken out of it, instead of the old content put back."""
    path = Path(setup.manifest.file)
    if path.exists():
        data = json.loads(path.read_text())
        for entry in data["installed"]:
            entry["after"] = ""
        path.write_text(json.dumps(data))


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
    put_in(setup)
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
    put_in(old)
    new = setup_in(tmp_path, name)
    assert [each.state for each in new.findings()] == ["changed"]
    put_in(new)
    text = (tmp_path / "home" / HARNESSES[name].folder / HARNESSES[name].file).read_text()
    assert "/old/bin" not in text
    assert [each.state for each in new.findings()] == [INSTALLED]
    take_out(new)
    assert tree(tmp_path) == {"home": None}


def test_a_handler_that_somebody_put_beside_ours_stays(tmp_path):
    setup = setup_in(tmp_path)
    put_in(setup)
    path = tmp_path / "home" / ".claude" / "settings.json"
    data = json.loads(path.read_text())
    data["hooks"]["PreToolUse"][0]["hooks"].append(OTHERS)
    path.write_text(json.dumps(data))
    take_out(setup)
    groups = json.loads(path.read_text())["hooks"]["PreToolUse"]
    assert groups == [{"matcher": "Edit|MultiEdit|Write|NotebookEdit", "hooks": [OTHERS]}]


def test_what_a_person_wrote_into_a_file_of_ours_is_all_that_stays(tmp_path):
    setup = setup_in(tmp_path)
    put_in(setup)
    path = tmp_path / "home" / ".claude" / "settings.json"
    path.write_text(path.read_text().replace("{\n", '{\n  "model": "opus",\n', 1))
    take_out(setup)
    assert path.read_text() == '{\n  "model": "opus"\n}\n'


def test_nothing_shows_in_a_settings_file_who_created_it(tmp_path):
    path = tmp_path / "home" / ".claude" / "settings.json"
    put_in(setup_in(tmp_path))
    text = path.read_text()
    assert text == json.dumps(json.loads(text), indent=2) + "\n"


@pytest.mark.parametrize("damage", [None, "", "[]", "{}", '{"installed": [{}]}', "{"])
def test_without_a_record_only_our_own_lines_go_and_that_is_said(tmp_path, damage):
    """A lost or damaged manifest: nothing that a person may have written is deleted."""
    setup = setup_in(tmp_path, "claude", PROJECT)
    put_in(setup)
    manifest = Path(setup.manifest.file)
    manifest.unlink() if damage is None else manifest.write_text(damage)
    again = setup.but(manifest=Manifest(str(manifest)))
    assert bool(again.manifest.problem) is (damage is not None)
    assert len(again.lost_records(again.findings())) == 2
    changes = again.planned_removal()
    assert all("no record" in change.note for change in changes)
    remove(changes, again.manifest)
    settings = json.loads((tmp_path / "repo" / ".claude" / "settings.json").read_text())
    assert set(settings["hooks"]) == {hook.event for hook in HARNESSES["claude"].hooks}
    assert not any(settings["hooks"].values())
    assert (tmp_path / "repo" / "CLAUDE.md").read_text() == ""
    put_in(setup)
    assert all(each.state == INSTALLED for each in setup.findings())
    assert (damage is not None) is Path(f"{manifest}.damaged").exists()


def test_a_manifest_that_another_setup_changed_meanwhile_is_not_overwritten(tmp_path):
    one, other = setup_in(tmp_path, "claude"), setup_in(tmp_path, "codex")
    install(one.planned(), one.manifest)
    before = tree(tmp_path)
    with pytest.raises(Refused) as problem:
        install(other.planned(), other.manifest)
    assert problem.value.code == "busy"
    assert {path for path in tree(tmp_path) if path not in before} == set()
    put_in(other)
    assert len(Manifest(one.manifest.file).entries) == 2


def test_the_manifest_is_private_like_what_it_keeps_a_copy_of(tmp_path):
    setup = setup_in(tmp_path)
    put_in(setup)
    assert Path(setup.manifest.file).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1} // mine', "comments"),
        ('{\n  // mine\n  "a": 1\n}', "comments"),
        ('{"a": 1,}', "not plain JSON"),
        ("[]", "contains no JSON object"),
        ('{"hooks": []}', "hooks has an unexpected type"),
        ('{"hooks": {"PreToolUse": {}}}', "hooks.PreToolUse has an unexpected type"),
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
        put_in(setup_in(tmp_path))
    assert reason in str(problem.value)
    assert "the file is unchanged" in str(problem.value)
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
    put_in(setup)
    assert (folder / "settings.json").is_symlink()
    assert "hook" in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600
    take_out(setup)
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
    for change in (put_in, take_out):
        with pytest.raises(Refused) as problem:
            change(setup_in(tmp_path, "claude", PROJECT))
        assert "leads out of the repository" in str(problem.value)
    assert tree(tmp_path) == before


def test_instructions_that_are_one_file_by_a_link_are_written_once(tmp_path):
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "AGENTS.md").write_text("# Rules\n")
    (repo / "CLAUDE.md").symlink_to("AGENTS.md")
    for name in ("claude", "codex"):
        put_in(setup_in(tmp_path, name, PROJECT))
    assert (repo / "AGENTS.md").read_text().count("dibs:begin") == 1
    take_out(setup_in(tmp_path, "claude", PROJECT))
    assert "dibs:begin" in (repo / "AGENTS.md").read_text()
    take_out(setup_in(tmp_path, "codex", PROJECT))
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
    once = text_edit.with_section(text, "f")
    assert text_edit.with_section(once, "f") == once
    assert text_edit.without_section(once, "f", Entry("f", text)) == text
    assert once.startswith(text)


def test_text_before_and_after_the_section_of_a_file_of_ours_stays_to_the_byte(tmp_path):
    setup = setup_in(tmp_path, "claude", PROJECT)
    put_in(setup)
    path = tmp_path / "repo" / "CLAUDE.md"
    path.write_text(f"# Mine\n{path.read_text()}after")
    take_out(setup)
    assert path.read_text() == "# Mine\nafter"


def test_an_older_section_is_replaced_where_it_is():
    old = "# Mine\n\n<!-- dibs:begin 0 -->\nold words\n<!-- dibs:end -->\nafter\n"
    new = text_edit.with_section(old, "f")
    assert "old words" not in new
    assert new.startswith("# Mine\n\n<!-- dibs:begin 1 -->\n")
    assert new.endswith("<!-- dibs:end -->\nafter\n")


@pytest.mark.parametrize("mark", ["<!-- dibs:begin 1 -->", "<!-- dibs:end -->"])
def test_a_mark_in_a_sentence_is_the_writers_and_stays(mark):
    """Words about us, in somebody's own text, are not ours to delete."""
    for line in (f"Ours is between `{mark}` and its end.", f"{mark} is the mark", f"> {mark}"):
        text = f"# Rules\n{line}\nKeep me.\n"
        assert text_edit.without_section(text, "f", None) == text
        once = text_edit.with_section(text, "f")
        assert once.startswith(text)
        assert text_edit.without_section(once, "f", Entry("f", text)) == text


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
    for change in (put_in, take_out):
        with pytest.raises(Refused) as problem:
            change(setup_in(tmp_path, "claude", PROJECT))
        assert f"{path}: it is not clear where the section of dibs begins and ends" in str(
            problem.value
        )
    assert tree(tmp_path) == before


def test_claudes_file_that_takes_in_another_is_respected(tmp_path):
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "CLAUDE.md").write_text("@AGENTS.md\n")
    (repo / "AGENTS.md").write_text("# Rules\n")
    claude, codex = (setup_in(tmp_path, name, PROJECT) for name in ("claude", "codex"))
    put_in(claude)
    assert (repo / "CLAUDE.md").read_text() == "@AGENTS.md\n"
    assert "dibs:begin" in (repo / "AGENTS.md").read_text()
    put_in(codex)
    take_out(claude)
    assert "dibs:begin" in (repo / "AGENTS.md").read_text()  # Codex reads it too
    take_out(codex)
    assert (repo / "AGENTS.md").read_text() == "# Rules\n"


def test_a_persons_own_setup_writes_no_instructions(tmp_path):
    (tmp_path / "repo").mkdir()
    put_in(setup_in(tmp_path, "claude", USER))
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
        put_in(setup)
    assert text_edit.roots_in(path.read_text(), "")[:2] == [two[1].board, two[0].board]
    take_out(two[0])
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
        put_in(setup_in(tmp_path, "codex", board=BOARD))
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


@pytest.mark.parametrize("before", [None, "x = 1\n", "[sandbox_workspace_write]\n"])
def test_what_a_person_added_to_the_sandbox_stays_where_it_was_put(tmp_path, before):
    """Also a setting in the table that we created: it does not slip into the table before it."""
    path = tmp_path / "home" / ".codex" / "config.toml"
    path.parent.mkdir(parents=True)
    if before is not None:
        path.write_text(before)
    setup = setup_in(tmp_path, "codex", board=BOARD)
    put_in(setup)
    path.write_text(path.read_text().rstrip("\n") + "\nnetwork_access = true\n")
    take_out(setup)
    table = tomllib.loads(path.read_text())["sandbox_workspace_write"]
    assert table == {"network_access": True}
    path.write_text(before or "")
    put_in(setup)
    path.write_text(path.read_text().replace(f'["{BOARD}"]', f'["/mine", "{BOARD}"]'))
    take_out(setup)
    assert 'writable_roots = ["/mine"]\n' in path.read_text()


def test_a_folder_that_no_record_names_stays_and_is_named(tmp_path):
    setup = setup_in(tmp_path, "codex", board=BOARD)
    put_in(setup)
    Path(setup.manifest.file).unlink()
    take_out(setup)
    assert BOARD in (tmp_path / "home" / ".codex" / "config.toml").read_text()
    lost = setup.but(manifest=Manifest(setup.manifest.file)).unrecorded_folder()
    assert "no record of adding it" in lost


def test_a_projects_file_never_holds_a_folder_of_this_machine(tmp_path):
    (tmp_path / "repo").mkdir()
    put_in(setup_in(tmp_path, "codex", PROJECT, board=BOARD))
    for path in (tmp_path / "repo").rglob("*"):
        assert path.is_dir() or BOARD not in path.read_text()
    assert BOARD in (tmp_path / "home" / ".codex" / "config.toml").read_text()
