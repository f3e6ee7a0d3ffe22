"""The documentation site: the Markdown of this folder by Sphinx, furo and MyST.

Build it with ``tox -e docs``. ``_ext/site.py`` says what is done to the pages on the way.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

_PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = _PROJECT["name"]
author = "pytest-fairness contributors"
copyright = author  # noqa: A001 - Sphinx reads this name
release = version = _PROJECT["version"]
repository = _PROJECT["urls"]["Repository"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "site_pages",
]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["_ext", "_build"]

myst_enable_extensions = ["linkify"]
myst_linkify_fuzzy_links = False
myst_heading_anchors = 4
myst_all_links_external = False

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
napoleon_google_docstring = True
napoleon_numpy_docstring = False
# Names of types in signatures are not all public, and link nowhere then.
nitpicky = False
smartquotes = False  # options and JSON stand as they are typed
# A block with "…" or a placeholder in it is no whole programme: it is shown without colours. Types in
# signatures are short names, which several classes may have as attributes.
suppress_warnings = ["misc.highlighting_failure", "ref.python"]
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True
pygments_style = "friendly"
pygments_dark_style = "github-dark"

html_theme = "furo"
html_title = f"pytest-fairness {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "source_repository": repository,
    "source_branch": "main",
    "source_directory": "docs/",
    "top_of_page_buttons": ["view"],
}
html_show_copyright = False

linkcheck_anchors = False
linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_workers = 4
linkcheck_ignore = [rf"{repository}(/|$)"]  # until it is public
