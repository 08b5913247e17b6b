"""elfmem's original simulators, from its source distribution on the package index.

They are a yardstick: downloaded once into ``build/original``, run beside this package, and never
copied into it.
"""

import importlib.util
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType

RELEASE = "elfmem-0.20.0"
FOLDER = Path(__file__).resolve().parents[1] / "build" / "original"

ARMS = {
    "C_baseline": "baseline",
    "C_self_context_M": "architecture_m",
    "ModelC_M_plus_self": "model_c",
    "ModelD_distributed": "model_d",
}
"""Our name of each arm of the original scenario simulator."""

PARAMETERS = {
    "baseline": (1.0, 0.0, 1, 0),
    "model_d": (0.0, 0.05, 3, 2),
    "self_architect": (0.0, 0.0, 1, 2),
}
"""Where arms of the original self-architect simulator start, in the order of its parameters."""

SCENARIOS = ("stable", "slow_drift", "regime_change", "quiet_burst", "adversarial")

_NETWORK_TROUBLE = (
    "from versions: none",
    "NewConnectionError",
    "ConnectionError",
    "ConnectTimeout",
    "ReadTimeout",
    "ProxyError",
    "Temporary failure in name resolution",
)


class OriginalUnavailableError(Exception):
    """The source distribution is neither here nor within reach."""


@cache
def load(module: str) -> ModuleType:
    """Import one of the original simulators, ``mc_scenarios`` for example.

    Raises:
        OriginalUnavailableError: If the package index cannot be reached.
    """
    member = f"{RELEASE}/scripts/longitudinal_sim/{module}.py"
    with tarfile.open(fileobj=io.BytesIO(_source_distribution().read_bytes())) as archive:
        source = archive.extractfile(member)
        assert source is not None, f"{member} is not a file"
        text = source.read()
    path = FOLDER / member
    if not path.is_file() or path.read_bytes() != text:
        _write(path, text)
    name = f"original_{module}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def _source_distribution() -> Path:
    archive = FOLDER / f"{RELEASE}.tar.gz"
    if not archive.is_file():
        _write(archive, _download())
    return archive


def _download() -> bytes:
    requirement = RELEASE.replace("-", "==")
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", requirement, "--no-deps"]
        pip += ["--no-binary", ":all:", "--retries", "2", "--dest", folder]
        done = subprocess.run(pip, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return (Path(folder) / f"{RELEASE}.tar.gz").read_bytes()
    said = done.stdout + done.stderr
    if "No module named pip" in said:
        raise OriginalUnavailableError(
            f"pip is not installed, so {requirement} cannot be downloaded"
        )
    if any(sign in said for sign in _NETWORK_TROUBLE):
        raise OriginalUnavailableError(f"network unavailable: no answer for {requirement}")
    raise RuntimeError(f"pip could not download {requirement}:\n{said}")


def _write(path: Path, content: bytes) -> None:
    """Write a whole file at once, whoever else is writing it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(temporary).replace(path)
