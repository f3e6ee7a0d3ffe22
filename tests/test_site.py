"""The site's own programs: the pages that are made of the code, the sidebar, what agents read.

None of them needs Sphinx, which ``tox -e docs`` runs.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from pytest_fairness import plugin
from pytest_fairness.analysis.frameworks import frameworks
from pytest_fairness.cli import COMMANDS
from pytest_fairness.pytest_layer import hookspecs
from pytest_fairness.pytest_layer.options import OPTIONS
from tests.support.markdown import ROOT, blocks, links

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def programs() -> Iterator[pytest.MonkeyPatch]:
    """Let the programs in ``docs/_ext`` be imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS / "_ext"))
        yield patch


@pytest.fixture(scope="module")
def reference(programs: pytest.MonkeyPatch) -> ModuleType:
    return importlib.import_module("reference_pages")


@pytest.fixture(scope="module")
def llms(programs: pytest.MonkeyPatch) -> ModuleType:
    return importlib.import_module("llms")


@pytest.fixture(scope="module")
def pages(reference: ModuleType) -> dict[str, str]:
    made: dict[str, str] = reference.pages()
    return made


def headings(page: str) -> list[str]:
    return [text.strip("`") for text in re.findall(r"^##+ (.+)$", page, re.MULTILINE)]


def test_every_option_has_a_heading(pages: dict[str, str]) -> None:
    names = [option.flag or option.ini for option in OPTIONS]
    found = [name for name in headings(pages["options"]) if "fairness" in name]
    assert sorted(found) == sorted(map(str, names))


def test_every_command_has_a_heading(pages: dict[str, str]) -> None:
    names = {f"pytest-fairness {name}" for group in COMMANDS.values() for name in group}
    assert names <= set(headings(pages["commands"]))


def test_fixtures_and_hooks_are_those_of_the_plugin(pages: dict[str, str]) -> None:
    assert headings(pages["fixtures"]) == plugin.__all__
    hooks = [name for name in vars(hookspecs) if name.startswith("pytest_fairness_")]
    assert headings(pages["hooks"]) == hooks


def test_the_recipes_of_hooks_are_python(pages: dict[str, str]) -> None:
    """A line that a formatter wraps within a docstring is no code any more."""
    recipes = [block.text for block in blocks(pages["hooks"])]
    assert len(recipes) >= 6
    for recipe in recipes:
        ast.parse(recipe)


def test_every_exit_code_of_pytest_is_there(pages: dict[str, str]) -> None:
    codes = re.findall(r"^\| (\d+) \| `(\w+)` \|", pages["exit_codes"], re.MULTILINE)
    assert codes == [(str(int(code)), code.name) for code in pytest.ExitCode]


def test_every_definition_of_the_schema_is_there(pages: dict[str, str]) -> None:
    page = pages["findings_schema"]
    named = set(re.findall(r"\]\(#(\w+)\)", page))
    assert named <= {heading.lower() for heading in headings(page)}
    assert "`corrected_p_value`" in page


def test_every_law_stands_with_its_sources(pages: dict[str, str]) -> None:
    """So that the check of external links follows them, too."""
    page = pages["frameworks"]
    assert headings(page) == list(frameworks())
    for framework in frameworks().values():
        for source in (framework.source, *(line.source for line in framework.lines)):
            assert f"]({source})" in page


def test_every_public_name_is_documented(reference: ModuleType, pages: dict[str, str]) -> None:
    for module, names in reference.public_names().items():
        page = pages["api_" + module.replace(".", "_")]
        assert headings(page) == list(names)


def test_links_of_the_reference_lead_somewhere(pages: dict[str, str]) -> None:
    for name, page in pages.items():
        inside = [link for link in links(page) if not link.startswith("https://")]
        files = [link.partition("#")[0] for link in inside]
        # The folder of the reference is there only once the site was built.
        places = [Path(os.path.normpath(DOCS / "reference" / file)) for file in files if file]
        assert not [place for place in places if not place.exists()], name


def test_every_page_stands_once_on_the_first() -> None:
    """The sidebar is made of these lists."""
    index = (DOCS / "index.md").read_text(encoding="utf-8").partition("\n## ")[2]
    listed = [link for link in links(index) if link.endswith(".md") and "/" not in link]
    assert sorted(listed) == sorted(
        path.name for path in DOCS.glob("*.md") if path.name != "index.md"
    )


def test_a_notebook_is_a_page(programs: pytest.MonkeyPatch) -> None:
    page = importlib.import_module("notebook_page").page(DOCS / "notebook.ipynb")
    assert page.startswith("# ")
    assert "<svg" in page
    for block in blocks(page):
        if block.language == "python":
            ast.parse(block.text)


def test_agents_read_no_comments_and_no_directives(llms: ModuleType, pages: dict[str, str]) -> None:
    text = llms.readable((DOCS / "tutorial.md").read_text(encoding="utf-8"))
    assert "<!--" not in text
    assert "pytest-fairness init" in text
    assert "eval-rst" not in llms.readable(pages["api_pytest_fairness"])


def test_llms_txt_has_a_sentence_for_each_page(llms: ModuleType) -> None:
    texts = {
        "a": "# A\n\nFirst [words](x.md). More.\n",
        "calibration": "# Figures\n\nMeasured: a lot.\n",
    }
    listed = {"Learn": list(texts)}
    assert llms.contents("# Name\n\nWhat it is.\n\n## Learn\n", listed, texts) == (
        "# Name\n\n> What it is.\n\n## Learn\n\n- [A](a.md): First words.\n\n"
        "## Optional\n\n- [Figures](calibration.md): Measured\n"
    )
