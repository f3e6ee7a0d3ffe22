"""The summary as PDF: made of hostile text, in any script, with fonts and without, and alike each
time.
"""

from __future__ import annotations

import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from pytest_fairness.errors import MissingExtra
from pytest_fairness.model import Finding, Verdict
from pytest_fairness.reports import pdf
from pytest_fairness.reports.findings_json import ItemResult, RunResults, save_results
from pytest_fairness.runs.manifest import write_manifest

HOSTILE = (
    "**bold** <b>x</b> \x1b[31m [a](javascript:alert(1)) /JS (app.alert(1)) Привет 中 \u202e\ud800 "
    "(\\) endstream"
)


def run_of(folder: Path, findings: int = 1) -> Path:
    found = tuple(
        Finding(
            assertion="no_disparity",
            verdict=Verdict.FAIL,
            sentence=f"FAIL: {HOSTILE}",
            outcome="tone",
            simulated=True,
        )
        for _ in range(findings)
    )
    items = (
        ItemResult(nodeid=f"t.py::{HOSTILE}", outcome="failed", findings=tuple(range(findings))),
        ItemResult(
            nodeid="t.py::broken",
            outcome="error",
            message=f"ValueError: nothing to judge {HOSTILE}",
        ),
    )
    facts = {
        "id": "2026-02-28-001",
        "finished": "2026-02-28T10:00:00+00:00",
        "parameters": {},
        "versions": {},
    }
    save_results(RunResults(run=facts, items=items, findings=found), folder)
    write_manifest(folder, {"logs": {}})
    return folder


def drawn(data: bytes) -> str:
    """The text that the pages draw with PDF's own fonts."""
    found = b""
    for stream in re.findall(rb"stream\n(.*?)\nendstream", data, re.DOTALL):
        try:
            found += zlib.decompress(stream)
        except zlib.error:
            continue
    return b" ".join(re.findall(rb"\((.*?)(?<!\\)\) Tj", found, re.DOTALL)).decode("latin-1")


def test_nothing_is_obeyed_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any font of the machine; each character that PDF's own lack is spelt out."""
    monkeypatch.setattr(pdf, "_found", lambda: ())
    path = pdf.write_summary(run_of(tmp_path, 60))
    text = " ".join(drawn(path.read_bytes()).split())
    spelt = (r"\\x1b[31m", r"\\u041f\\u0440", r"\\u4e2d", r"\\u202e", r"\\ud800")
    said = (
        "Simulated endpoint. No model was asked",
        "60 FAIL",
        " and 40 more findings: 40 FAIL.",
        "2 of 2 fairness tests failed",
        "nothing to judge",
        "Sign-off",
        "evidence, not certification",
    )
    for words in ("**bold** <b>x</b>", *spelt, *said):
        assert words in text, words
    assert not re.search(rb"/(JS|JavaScript|URI|Launch|OpenAction /)", path.read_bytes())
    first = path.read_bytes()
    assert pdf.write_summary(tmp_path).read_bytes() == first


@pytest.mark.skipif(
    not pdf._found(), reason="this machine has none of the fonts that are looked for"
)
def test_other_scripts_are_drawn_with_the_fonts_of_the_machine(tmp_path: Path) -> None:
    made = [pdf.write_summary(run_of(tmp_path)).read_bytes() for _ in range(2)]
    assert made[0] == made[1]
    assert b"/FontFile2" in made[0]
    assert pdf._found()[0][0].name in (pdf.surroundings() or "")


def test_without_the_library_the_command_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fpdf", None)
    with pytest.raises(MissingExtra, match=r"pip install 'pytest-fairness\[pdf\]'"):
        pdf.write_summary(run_of(tmp_path))


def test_a_reader_of_pdf_opens_it(tmp_path: Path) -> None:
    """By poppler, where it is there."""
    import shutil

    if shutil.which("pdftotext") is None:
        pytest.skip("there is no pdftotext here")
    path = pdf.write_summary(run_of(tmp_path))
    done = subprocess.run(["pdftotext", str(path), "-"], capture_output=True, check=True)
    assert done.stderr == b""
    assert "Привет" in done.stdout.decode() or not pdf._found()
