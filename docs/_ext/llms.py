"""``llms.txt``, ``llms-full.txt`` and each page as Markdown, for programmes that read text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

#: Sections of llms.txt that a short context leaves out.
OPTIONAL = "Optional"
_COMMENT = re.compile(r"^<!-- .*? -->\n", re.MULTILINE)


def write(source: Path, out: Path, index: str, listed: Mapping[str, Sequence[str]]) -> None:
    """Write all three into *out*, from the pages in *source* as *listed* in *index*."""
    texts = {}
    for name in dict.fromkeys(name for names in listed.values() for name in names):
        texts[name] = readable((source / f"{name}.md").read_text(encoding="utf-8"))
        copy = out / f"{name}.md"
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(texts[name], encoding="utf-8")
    (out / "llms.txt").write_text(contents(index, listed, texts), encoding="utf-8")
    whole = [
        f"<!-- {name}.md -->\n{text.strip()}\n" for name, text in texts.items() if is_whole(name)
    ]
    (out / "llms-full.txt").write_text("\n\n".join(whole), encoding="utf-8")


def is_whole(name: str) -> bool:
    """Return whether the page is part of llms-full.txt: figures and decisions are not."""
    return name not in ("calibration", "decisions/README", "reference/notebook")


def contents(index: str, listed: Mapping[str, Sequence[str]], texts: Mapping[str, str]) -> str:
    """``llms.txt``: what this is, and a link with one sentence for every page."""
    title, _, rest = index.partition("\n")
    lines = [title, "", f"> {paragraph(rest)}", ""]
    last = []
    for heading, names in listed.items():
        lines += [f"## {heading}", ""]
        for name in names:
            entry = f"- [{heading_of(texts[name])}]({name}.md): {sentence(texts[name])}"
            if is_whole(name):
                lines.append(entry)
            else:
                last.append(entry)
        lines.append("")
    lines += [f"## {OPTIONAL}", "", *last, ""]
    return "\n".join(lines)


def readable(text: str) -> str:
    """*text* without what only tests and Sphinx read."""
    text = _COMMENT.sub("", text)
    return re.sub(r"```\{eval-rst\}\n\.\. (\w+)::? ?(\S+)\n(?:   .*\n)*```\n", r"`\2`\n", text)


def heading_of(text: str) -> str:
    """The title of a page."""
    return text.partition("\n")[0].removeprefix("# ")


def paragraph(text: str) -> str:
    """The first paragraph below a title."""
    for part in text.split("\n\n"):
        if part.strip() and not part.lstrip().startswith(("#", "```", "|", "-", "<")):
            return " ".join(part.split())
    return ""


def sentence(text: str) -> str:
    """The first sentence of a page, without its links."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph(text.partition("\n")[2]))
    return re.split(r"(?<=[.:?])\s", words, maxsplit=1)[0].rstrip(":")
