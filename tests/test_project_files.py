"""What surrounds the package: workflows, forms, citation, changelog, and where pages point."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from tools import distributions

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def loaded(path: Path) -> dict[object, object]:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("github-workflows", WORKFLOWS),
        ("github-issue-forms", FORMS),
        ("github-issue-config", [GITHUB / "ISSUE_TEMPLATE" / "config.yml"]),
        ("dependabot", [GITHUB / "dependabot.yml"]),
        ("citation-file-format", [ROOT / "CITATION.cff"]),
    ],
    ids=str,
)
def test_files_have_the_shape_that_is_read(schema: str, paths: list[Path]) -> None:
    """The schemas of SchemaStore, as check-jsonschema carries them."""
    import check_jsonschema  # takes a while, which one worker alone need spend

    given = ["--builtin-schema", f"vendor.{schema}", *map(str, paths)]
    done = CliRunner().invoke(check_jsonschema.main, given)
    assert done.exit_code == 0, done.output
    assert "ok -- validation done" in done.output


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_do_little(path: Path) -> None:
    """No permission but those that a job names, and no action but by its full hash."""
    workflow = loaded(path)
    assert workflow["permissions"] == {}
    text = path.read_text(encoding="utf-8")
    actions = re.findall(r"uses: (\S+)(.*)", text)
    assert actions
    for action, comment in actions:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action)
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment)
    assert "pull_request_target" not in text
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")
    writers = set(re.findall(r"([\w-]+): write", text))
    assert writers == ({"id-token"} if path.stem == "package" else set())


def test_workflows_name_environments_that_there_are() -> None:
    tox = (ROOT / "tox.ini").read_text(encoding="utf-8")
    named = set()
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        for listed in re.findall(r"tox run -e ([\w,-]+)", text):
            named.update(listed.split(","))
        for listed in re.findall(r"\benv: \[(.*)\]", text):
            named.update(listed.split(", "))
    assert named >= {"tests", "lowest", "docs", "package", "workflows", "actionlint"}
    assert "pytest-main" in named
    assert named >= {"linkcheck", "frameworks"}
    assert not [name for name in named if f"[testenv:{name}]" not in tox]


def test_tox_checks_every_workflow_and_form() -> None:
    tox = (ROOT / "tox.ini").read_text(encoding="utf-8")
    paths = [path.relative_to(ROOT).as_posix() for path in (*WORKFLOWS, *FORMS)]
    assert not [path for path in paths if path not in tox]


def test_version_is_one() -> None:
    assert loaded(ROOT / "CITATION.cff")["version"] == PROJECT["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {PROJECT['version']}" in changelog


def test_faults_of_a_distribution_are_told() -> None:
    names = ["README.md", "src/.env", "src/__pycache__/a.pyc", "tests/.fairness/runs/log"]
    assert distributions.faults(names, ["README.md", "LICENSE"]) == [
        "LICENSE is missing",
        "src/.env should not be there",
        "src/__pycache__/a.pyc should not be there",
        "tests/.fairness/runs/log should not be there",
    ]


def test_the_readme_holds_on_the_package_index() -> None:
    """Links and pictures are absolute, and those into the repository name files that are there."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    inside = re.compile(
        rf"{re.escape(PROJECT['urls']['Repository'])}/(?:blob|tree|raw)/main/([^#]+)"
    )
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    assert targets
    for target in targets:
        assert target.startswith("https://"), target
        path = inside.match(target)
        assert path is None or (ROOT / path[1]).exists(), target


def test_the_address_of_the_repository_is_one() -> None:
    address = PROJECT["urls"]["Repository"]
    assert all(url.startswith(address) for url in PROJECT["urls"].values())
    assert loaded(ROOT / "CITATION.cff")["repository-code"] == address
