import os
from pathlib import Path

import pytest

from optdyn.cli import _output
from optdyn.cli._errors import BadInputError


@pytest.mark.parametrize("name", ["a.txt", "a", "a.json.gz", ".json"])
def test_unknown_extension_names_the_known_ones(name):
    with pytest.raises(BadInputError, match=r"use \.json or \.js"):
        _output.check_extension("--json", Path(name), (".json", ".js"))


def test_extension_in_capitals_is_fine():
    _output.check_extension("--json", Path("A.JSON"), (".json",))


def test_the_same_file_twice_is_refused(tmp_path):
    with pytest.raises(BadInputError, match="two outputs"):
        _output.check_distinct([tmp_path / "a.png", tmp_path / "x" / ".." / "a.png"])


def test_prepare_creates_folders_and_leaves_no_file(tmp_path):
    path = tmp_path / "new" / "folder" / "a.json"
    _output.prepare("--json", path)
    assert list(path.parent.iterdir()) == []


def test_prepare_refuses_a_folder(tmp_path):
    with pytest.raises(BadInputError, match="is a folder"):
        _output.prepare("--json", tmp_path)


def test_prepare_refuses_a_file_as_parent(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInputError, match="cannot be written"):
        _output.prepare("--json", tmp_path / "file" / "a.json")


def test_prepare_finds_out_by_trying(tmp_path, monkeypatch):
    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(_output.tempfile, "NamedTemporaryFile", refuse)
    with pytest.raises(BadInputError, match=r"Permission denied.*choose a folder"):
        _output.prepare("--json", tmp_path / "a.json")


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_prepare_refuses_a_protected_file(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("old")
    path.chmod(0o400)
    with pytest.raises(BadInputError, match="write-protected"):
        _output.prepare("--json", path)


def test_atomic_keeps_the_old_file_when_the_writer_fails(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("old")

    def interrupted():
        with _output.atomic(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_atomic_replaces_and_keeps_the_extension(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("old")
    with _output.atomic(path) as temporary:
        assert temporary.suffix == ".json"
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_atomic_writes_through_a_symbolic_link(tmp_path):
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("old")
    link.symlink_to(target)
    with _output.atomic(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_full_disk_is_one_line(tmp_path):
    with pytest.raises(BadInputError, match="No space left"), _output.atomic(tmp_path / "a.json"):
        raise OSError(28, "No space left on device")
