"""Everything in the README: its commands run, its Python runs, its numbers and links are right."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from readme import README, ROOT, rewritten

TEXT = README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, re.S | re.M)
COMMANDS = [
    line for kind, block in BLOCKS if kind == "sh" for line in block.splitlines() if line.strip()
]
OURS = [line for line in COMMANDS if line.startswith("elfmem-sim ")]
MADE = [line for line in COMMANDS if line.startswith("make ")]


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"MPLBACKEND": "Agg"}
    return subprocess.run(
        arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (scenario,) = [block for kind, block in BLOCKS if kind == "toml"]
    (tmp_path / "my_year.toml").write_text(scenario, encoding="utf-8")
    return tmp_path


def test_every_command_is_ours_or_makes():
    assert sorted(OURS + MADE) == sorted(COMMANDS)


@pytest.mark.parametrize("line", OURS)
def test_command_runs(line, folder):
    _, *arguments = shlex.split(line)
    done = run([sys.executable, "-m", "elfmem_sim", *arguments], folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_python_runs(folder):
    (code,) = [block for kind, block in BLOCKS if kind == "python"]
    done = run([sys.executable, "-c", code], folder)
    assert done.returncode == 0, done.stderr
    assert "REPRODUCED" in done.stdout


@pytest.mark.parametrize("line", MADE)
def test_make_target_does_what_the_readme_says(line):
    target = line.split("#")[0].split()[1]
    done = run(["make", "--dry-run", target], ROOT)
    assert done.returncode == 0, done.stderr
    expected = {"verify": "elfmem-sim verify adr-0004", "test": "-m pytest"}[target]
    assert expected in done.stdout


def test_numbers_are_those_of_the_committed_results():
    assert rewritten(TEXT) == TEXT


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", TEXT):
        if not target.startswith("https://"):
            assert (ROOT / target).exists(), target
