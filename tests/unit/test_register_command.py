"""headrace register: what it says before it asks anybody."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from headrace.cli import app


def test_a_folder_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_SCHEMAS", str(tmp_path / "schemsa"))
    done = CliRunner().invoke(app, ["register", "--dry-run"])
    assert done.exit_code == 2
    assert "set HEADRACE_SCHEMAS" in " ".join(done.output.replace("│", " ").split())
