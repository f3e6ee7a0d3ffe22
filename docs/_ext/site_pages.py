"""What is done to the pages of ``docs/`` on their way to the site.

- The reference is made from the code before Sphinx reads (``reference_pages.py``).
- The sidebar is the lists of links in ``index.md``, so that the page is readable on a forge, too.
- A link to a file outside ``docs/`` leads to the repository.
- A long table of figures is folded.
- The notebook is shown as a page, ``reference/notebook.md``.
- ``llms.txt``, ``llms-full.txt`` and the Markdown of each page stand beside the HTML.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

import llms
import notebook_page
import reference_pages
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.typing import ExtensionMetadata

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_PAGE = re.compile(r"^- \[[^\]]+\]\(([\w/-]+)\.(?:md|ipynb)\)", re.MULTILINE)
#: Tables of more lines than this are folded on the pages of figures.
LONG = 20
FIGURES = ("calibration", "reliability")
_TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
_TREE = """
```{{toctree}}
:hidden:
:caption: {caption}

{pages}
```
"""


class LinksOutside(SphinxTransform):
    """Links to files that are no pages lead to the repository."""

    default_priority = 5  # before Sphinx collects files to download

    def apply(self, **_: object) -> None:
        here = Path(self.env.srcdir)
        folder = posixpath.dirname(self.env.current_document.docname)
        for node in list(self.document.findall(_is_link)):
            target, _, anchor = node["reftarget"].partition("#")
            anchor = anchor or node.get("reftargetid") or ""
            path = (here / folder / target).resolve()
            if node.get("refdomain") == "doc":  # MyST has taken the suffix away
                path = path.with_name(f"{path.name}.md")
            if not target:
                continue
            if path.is_relative_to(here.resolve()) or not path.exists():
                continue
            address = path.relative_to(here.resolve().parent).as_posix()
            kind = "blob"
            if path.is_dir():
                kind = "tree"
            address = f"{self.config.repository}/{kind}/main/{address}"
            if anchor:
                address += f"#{anchor}"
            _lead(node, address)


def _is_link(node: nodes.Node) -> bool:
    if isinstance(node, addnodes.download_reference):
        return True
    return isinstance(node, addnodes.pending_xref) and node.get("reftype") == "myst"


def _lead(node: nodes.Element, address: str) -> None:
    """Make *node* a link to *address*."""
    words = node.deepcopy().children
    node.replace_self(nodes.reference("", "", *words, refuri=address))


def write_reference(app: Sphinx) -> None:
    """Write the pages that are made, where they have changed."""
    folder = Path(app.srcdir) / "reference"
    made = {f"{name}.md": text for name, text in reference_pages.pages().items()}
    notebook = notebook_page.page(Path(app.srcdir) / "notebook.ipynb")
    made["notebook.md"] = re.sub(r"\]\((?=[\w/]+\.md)", "](../", notebook)
    for path in folder.glob("*.md"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        _write(folder / name, text)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def prepare(app: Sphinx, name: str, source: list[str]) -> None:
    """Give the first page and the index of decisions their pages for the sidebar, fold figures, and
    lead links to the notebook to its page.
    """
    source[0] = source[0].replace("](notebook.ipynb)", "](reference/notebook.md)")
    if name in FIGURES:
        source[0] = _TABLE.sub(_folded, source[0])
    if name == "decisions/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n0*\n```\n"
    if name != "index":
        return
    for caption, pages in sections(source[0]).items():
        made: list[str] = []
        if caption == "Reference":
            reference = reference_links(app)
            source[0] = source[0].replace("\n## Reference\n", f"\n## Reference\n\n{reference}", 1)
            made = [f"reference/{page}" for page in reference_pages.pages()]
        if made + pages:
            source[0] += _TREE.format(caption=caption, pages="\n".join(made + pages))


def _folded(match: re.Match[str]) -> str:
    """A long table behind a line to click on."""
    rows = match[0].count("\n") - 2
    if rows <= LONG:
        return match[0]
    return f"<details><summary>The {rows} rows</summary>\n\n{match[0]}\n</details>\n\n"


def reference_links(app: Sphinx) -> str:
    """A list of the pages of the reference, by their titles."""
    lines = []
    for name in reference_pages.pages():
        text = (Path(app.srcdir) / "reference" / f"{name}.md").read_text(encoding="utf-8")
        title = text.partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{title}](reference/{name}.md)\n")
    return "".join(lines)


def sections(text: str) -> dict[str, list[str]]:
    """The pages that *text* lists under each of its headings."""
    parts = _HEADING.split(text)[1:]
    part_of = dict(zip(parts[::2], parts[1::2], strict=True))
    return {
        heading: [
            "reference/notebook" if name == "notebook" else name for name in _PAGE.findall(part)
        ]
        for heading, part in part_of.items()
    }


def hide_private(*event: Any) -> tuple[str | None, str | None]:
    """Leave out parameters that begin with an underscore. The signature and what is returned are
    the last two of what Sphinx gives.
    """
    *_, signature, returned = event
    if signature is not None:
        signature = re.sub(r", _\w+: [^,=)]+ = [^,)]+", "", signature)
    return signature, returned


def keep_sentences(*event: Any) -> None:
    """Join the docstring of a property that napoleon has cut at its first colon, as one that begins
    with a type. What is documented is the second of what Sphinx gives, its lines the last.
    """
    what, lines = event[1], event[-1]
    types = [line for line in lines if line.startswith(":type:")]
    if what == "property" and types:
        rest = [line for line in lines if line not in types]
        rest[0] = f"{types[0].removeprefix(':type:').strip()}: {rest[0]}"
        lines[:] = rest


def write_llms(app: Sphinx, exception: Exception | None) -> None:
    """Write what coding agents read, beside the HTML."""
    if exception is None and app.builder.format == "html":
        source, out = Path(app.srcdir), Path(app.outdir)
        index = (source / "index.md").read_text(encoding="utf-8")
        made = [f"reference/{name}" for name in reference_pages.pages()]
        listed = sections(index)
        listed["Reference"] = made + listed["Reference"]
        llms.write(source, out, index, listed)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Connect all of it."""
    app.add_config_value("repository", "", "env")
    app.add_transform(LinksOutside)
    app.connect("builder-inited", write_reference)
    app.connect("source-read", prepare)
    app.connect("autodoc-process-signature", hide_private)
    app.connect("autodoc-process-docstring", keep_sentences, priority=900)  # after napoleon
    app.connect("build-finished", write_llms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
