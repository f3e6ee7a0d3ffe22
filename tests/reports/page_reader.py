"""Reads a page of ours in tests, insisting that it is well formed and uses only the elements that
we write.
"""

from __future__ import annotations

from html.parser import HTMLParser

#: The elements of a table.
TABLE = ("table", "thead", "tbody", "tr", "th", "td")
VOID = {"meta", "link", "br", "img", "hr", "input"}
ALLOWED = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "footer",
        "main",
        "aside",
        "section",
        "nav",
    ),
    *(
        "article",
        "h1",
        "h2",
        "h3",
        "p",
        "ul",
        "li",
        "dl",
        "dt",
        "dd",
        "table",
        "caption",
        "thead",
        "tbody",
    ),
    *(
        "tr",
        "th",
        "td",
        "span",
        "strong",
        "small",
        "br",
        "a",
        "div",
        "figure",
        "figcaption",
        "details",
    ),
    *(
        "summary",
        "pre",
        "svg",
        "desc",
        "line",
        "rect",
        "circle",
        "path",
        "text",
        "tspan",
        "g",
        "mark",
        "b",
    ),
}


class Page(HTMLParser):
    """The elements of a page with their attributes, and its words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert tag in ALLOWED, tag
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in ALLOWED, tag
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]
