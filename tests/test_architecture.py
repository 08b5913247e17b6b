"""The shape of the package: what may import what, read from the sources."""

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

import elfmem_sim

PACKAGE = Path(elfmem_sim.__file__).parent

# Modules of one group do not import each other, but for the inside of a folder.
LAYERS = [
    {"errors", "fields", "topics", "streams", "stats", "thin"},
    {"scenario", "claims", "compare", "guard"},
    {"kernel"},
    {"arms", "standins"},
    {"review"},
    {"simulate"},
    {"production"},
    {"study"},
    {"store", "screen", "worlds", "objective"},
    {"verdict", "evaluations"},
    {"figures", "report", "progress"},
    {"protocol", "tuning"},
    {"verification", "experiment", "tune", "consequences"},
    {"audit"},
    {"cli"},
    {"__main__"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
RUNNER = {"kernel", "review", "production", "simulate", "study", "store", "screen", "evaluations"}
ANALYSIS = {"stats", "compare", "verdict", "guard", "tuning", "figures", "report"}


def name_of(source: Path) -> str:
    parts = source.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}
MODULES = sorted(set(SOURCES) - {"elfmem_sim"})


def part_of(module: str) -> str:
    """The module's place in the layers: a folder counts as one."""
    return module.split(".")[1]


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(SOURCES[module].read_bytes())


@cache
def imports(module: str) -> frozenset[str]:
    """Every module that ``module`` imports, at whatever level and for whatever purpose."""
    found = set()
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                # Of elfmem, whose modules are not listed here, both could be meant.
                found.update({inner} if inner in SOURCES else {node.module, inner})
    return frozenset(found)


def inside(module: str) -> set[str]:
    return {name for name in imports(module) if name in SOURCES and name != "elfmem_sim"}


def top(names) -> set[str]:
    return {name.split(".")[0] for name in names}


@cache
def reached(part: str) -> frozenset[str]:
    """The parts of the package that ``part`` imports, directly or through others."""
    direct = {
        part_of(other)
        for module in MODULES
        if part_of(module) == part
        for other in inside(module)
        if part_of(other) != part
    }
    return frozenset(direct.union(*(reached(other) for other in direct)))


def test_the_imports_are_read_at_every_level():
    assert "elfmem.operations" in imports("elfmem_sim.review")  # inside a function
    assert "elfmem.config" in imports("elfmem_sim.review")  # for the type checker
    assert "elfmem_sim.simulate" in inside("elfmem_sim.cli")


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_its_place_in_the_layers(module):
    assert part_of(module) in RANK


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_from_lower_layers_only(module):
    here = part_of(module)
    upward = {
        other
        for other in inside(module)
        if part_of(other) != here and RANK[part_of(other)] >= RANK[here]
    }
    assert upward == set()


@pytest.mark.parametrize("part", sorted({part_of(module) for module in MODULES} & ANALYSIS))
def test_analysis_never_reaches_the_runner(part):
    assert reached(part) & RUNNER == set()


@pytest.mark.parametrize("part", sorted({part_of(module) for module in MODULES} & RUNNER))
def test_the_runner_never_reaches_analysis(part):
    assert reached(part) & ANALYSIS == set()


@pytest.mark.parametrize("module", MODULES)
def test_only_the_bridges_import_elfmem(module):
    allowed = part_of(module) in ("review", "production", "consequences")
    assert allowed or "elfmem" not in top(imports(module))


def test_only_review_imports_elfmems_review():
    users = {m for m in MODULES if "elfmem.operations.review" in imports(m)}
    assert users == {"elfmem_sim.review"}


@pytest.mark.parametrize("module", [m for m in MODULES if part_of(m) == "kernel"])
def test_the_kernel_needs_numba_numpy_and_nothing_that_reads_or_writes(module):
    allowed = {"numba", "numpy", "math", "typing", "collections", "elfmem_sim"}
    if module == "elfmem_sim.kernel._compile":
        allowed |= {"hashlib", "os", "pathlib", "tempfile"}  # the place of numba's cache
    assert top(imports(module)) <= allowed


@pytest.mark.parametrize("module", MODULES)
def test_third_party_packages_stay_where_they_belong(module):
    homes = {
        "fastmcp": {"consequences"},
        "joblib": {"study"},
        "matplotlib": {"figures", "tuning"},
        "numba": {"kernel"},
        "optuna": {"tuning"},
        "pydantic": {"scenario", "claims", "review"},
        "rich": {"report", "progress"},
        "scipy": {"stats", "figures", "tuning"},
        "sqlalchemy": {"thin", "review", "production"},
        "typer": {"cli"},
        "yaml": {"arms"},
    }
    for package in top(imports(module)) & set(homes):
        assert part_of(module) in homes[package], package


def test_whatever_is_imported_is_declared():
    declared = {"numpy", "scipy", "pandas", "numba", "joblib", "matplotlib", "pydantic", "typer"}
    declared |= {"rich", "elfmem", "sqlalchemy", "rank_bm25", "optuna", "yaml", "fastmcp"}
    used = set().union(*(top(imports(module)) for module in SOURCES))
    assert used - set(sys.stdlib_module_names) - {"elfmem_sim"} <= declared


def names_called(module: str) -> set[str]:
    return {
        ast.unparse(node.func) for node in ast.walk(tree_of(module)) if isinstance(node, ast.Call)
    }


@pytest.mark.parametrize("module", [m for m in MODULES if part_of(m) != "cli"])
def test_only_the_command_line_exits(module):
    assert names_called(module) & {"sys.exit", "exit", "quit", "os._exit"} == set()


@pytest.mark.parametrize("module", [m for m in MODULES if part_of(m) not in ("cli", "progress")])
def test_only_the_command_line_and_progress_print(module):
    assert "print" not in names_called(module)


@pytest.mark.parametrize("module", [m for m in MODULES if part_of(m) != "cli"])
def test_only_the_command_line_catches_a_user_error(module):
    caught = {
        name.id
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.ExceptHandler) and node.type is not None
        for name in ast.walk(node.type)
        if isinstance(name, ast.Name)
    }
    assert caught & {"UserError", "InvariantError", "Exception", "BaseException"} == set()


@pytest.mark.parametrize("module", MODULES)
def test_no_random_generator_is_global(module):
    calls = names_called(module)
    assert not any(name.startswith("random.") for name in calls)
    assert not calls & {"np.random.seed", "np.random.rand", "np.random.normal"}
