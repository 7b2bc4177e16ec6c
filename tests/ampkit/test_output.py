"""A file that a command is to write: what is wrong with it is said before the work, and it appears whole or not at all."""

import json
import os

import pytest
from typer.testing import CliRunner

from ampkit import OutputError, output
from ampkit.cli import app


def test_a_file_in_a_folder_that_is_not_there_is_refused_by_its_option(tmp_path):
    with pytest.raises(OutputError, match=r"--plot .*there is no folder .*Make it first"):
        output.writable({"--json": tmp_path / "a.json", "--plot": tmp_path / "none" / "a.png"})


def test_a_folder_is_not_a_file_to_write(tmp_path):
    with pytest.raises(OutputError, match=r"--json .* cannot be written.*Name another file"):
        output.writable({"--json": tmp_path})


@pytest.mark.skipif(
    getattr(os, "geteuid", lambda: 0)() == 0, reason="requires another user than root, who may write all"
)
def test_a_file_that_is_not_ones_own_is_refused(tmp_path):
    path = tmp_path / "theirs.json"
    path.write_text("{}")
    path.chmod(0o444)
    with pytest.raises(OutputError, match="not yours"):
        output.writable({"--json": path})


def test_what_is_not_asked_for_is_not_looked_at():
    output.writable({"--json": None})


def test_a_json_file_is_strict_and_replaces_the_old_one_whole(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("old")
    with pytest.raises(ValueError, match="JSON compliant"):
        output.write_json({"loss": float("nan")}, path)
    assert path.read_text() == "old"
    output.write_json({"loss": 0.5}, path)
    assert json.loads(path.read_text()) == {"loss": 0.5}
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]


def test_a_write_that_fails_keeps_the_old_file_and_leaves_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(OutputError, match="No space left on device"):
        output.write(b"new", path)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("a.json", "old")]


@pytest.mark.parametrize(
    "command",
    [
        ["train", "fp16", "--log"],
        ["train", "resumable", "--checkpoint"],
        ["ops", "mlp", "--json"],
        ["plan", "mlp", "--vram", "8GiB", "--json"],
        ["doctor", "--json"],
        ["bench", "--model", "mlp", "--device", "cpu", "--json"],
        ["bench", "--model", "mlp", "--device", "cpu", "--plot"],
    ],
    ids=" ".join,
)
def test_every_command_refuses_before_it_works_and_exits_with_2(command, tmp_path):
    result = CliRunner().invoke(app, [*command, str(tmp_path / "none" / "file")])
    assert result.exit_code == 2 and result.stdout == ""
    assert f"{command[-1]} {tmp_path / 'none' / 'file'}: there is no folder" in result.stderr
