"""The wheel, installed where nothing of the checkout is, does what the checkout does."""

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ("elfmem_sim", "scenarios", "pyproject.toml", "README.md", "LICENSE")


def run(command, folder: Path, **environment: str) -> subprocess.CompletedProcess:
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built from a copy: a build must not write into the checkout."""
    folder = tmp_path_factory.mktemp("build")
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    command = [sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--wheel-dir", "dist"]
    if find_spec("hatchling"):
        command.append("--no-build-isolation")
    built = run(command, folder)
    if "No matching distribution found for hatchling" in built.stderr:
        pytest.skip("the build backend is not installed and cannot be downloaded")
    assert built.returncode == 0, built.stderr
    (path,) = (folder / "dist").glob("*.whl")
    return path


def test_the_wheel_holds_every_module_scenario_and_claim_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = {
        path.relative_to(ROOT).as_posix()
        for kind in ("*.py", "*.toml", "py.typed")
        for path in (ROOT / "elfmem_sim").rglob(kind)
    }
    scenarios = {
        f"elfmem_sim/{path.relative_to(ROOT).as_posix()}"
        for path in (ROOT / "scenarios").rglob("*.toml")
    }
    assert "elfmem_sim/claims/adr-0004.toml" in package
    assert "elfmem_sim/scenarios/adr-0003/stable.toml" in scenarios
    assert held == package | scenarios


def install(wheel: Path, folder: Path) -> Path:
    """Install the wheel beside this environment's packages; return where its scripts are."""
    venv.create(folder, symlinks=os.name != "nt")
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    pip = [sys.executable, "-m", "pip", "--python", scripts / "python"]
    installed = run([*pip, "install", "--no-deps", "--no-index", wheel], folder)
    assert installed.returncode == 0, installed.stderr
    (site,) = folder.rglob("site-packages")
    # Only after the installation: pip must not take this environment's own copy for installed.
    packages = [path for path in sys.path if path.endswith("-packages")]
    (site / "packages.pth").write_text("\n".join(packages) + "\n", encoding="utf-8")
    return scripts


WATCHED = """
import os, sys
root, own = os.environ["CHECKOUT"], tuple(p for p in sys.path if p.endswith("-packages"))
opened = set()

def watch(event, arguments):
    if event == "open" and isinstance(arguments[0], str):
        path = os.path.realpath(arguments[0])
        if path.startswith(root + os.sep) and not path.startswith(own):
            opened.add(path)

sys.addaudithook(watch)
from elfmem_sim.cli import main
try:
    main()
finally:
    import elfmem_sim
    print(sorted(opened), elfmem_sim.__file__, file=sys.stderr)
"""


# One test, because the first run compiles the kernel for its new place.
def test_the_installed_package_works_without_a_look_at_the_checkout(wheel, tmp_path):
    scripts = install(wheel, tmp_path / "venv")

    listed = run([scripts / "elfmem-sim", "scenarios", "list", "--json"], tmp_path)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert [entry["name"] for entry in json.loads(listed.stdout)] == sorted(
        path.relative_to(ROOT / "scenarios").with_suffix("").as_posix()
        for path in (ROOT / "scenarios").rglob("*.toml")
    )

    replayed = run([scripts / "elfmem-sim", "replay", "adr-0004/stable", "--json"], tmp_path)
    assert (replayed.returncode, replayed.stderr) == (0, "")
    assert json.loads(replayed.stdout)["snapshots"][-1]["day"] == 364

    (tmp_path / "watched.py").write_text(WATCHED, encoding="utf-8")
    arguments = ["verify", "adr-0003", "--seeds", "2", "--workers", "1", "--quiet", "--json"]
    command = [scripts / "python", "watched.py", *arguments]
    verified = run(command, tmp_path, CHECKOUT=os.path.realpath(ROOT))
    assert verified.returncode == 0, verified.stderr
    claim, *_ = json.loads(verified.stdout)["claims"]
    assert (claim["id"], claim["verdict"]) == ("replay", "REPRODUCED")
    opened, _, home = verified.stderr.strip().partition(" ")
    assert opened == "[]"
    assert Path(home).is_relative_to(scripts.parent.parent)
