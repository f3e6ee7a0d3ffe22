"""One function for each place that text is shown in. Replies, prompts, ids and group names are all
hostile input.

Common to all: characters that a reader cannot see but a terminal, a browser or a parser obeys
(control codes, bidirectional overrides, zero-width characters, lone surrogates) are written out as
``\\x1b`` or ``\\u202e``.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from markupsafe import escape

# Control, format (bidi, zero width, tags), surrogate, line and paragraph separators; never plain
# space.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_CANDIDATE = re.compile(r"[^\x20-\x7e\n\t]")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str, *, keep: str = "\n\t") -> str:
    """*text* with each unseen character written out, but for those in *keep*."""

    def spell(match: re.Match[str]) -> str:
        character = match[0]
        if unicodedata.category(character) not in _UNSEEN or character in keep:
            return character
        code = ord(character)
        if character in _NAMED:
            return _NAMED[character]
        if code < 0x100:
            return f"\\x{code:02x}"
        if code < 0x10000:
            return f"\\u{code:04x}"
        return f"\\U{code:08x}"

    if text.isascii() and text.isprintable():
        return text
    text = _CANDIDATE.sub(spell, text)
    for character in "\n\t":
        if character not in keep:
            text = text.replace(character, _NAMED[character])
    return text


_COMMAND = re.compile(r"##(?=\[|vso|teamcity|section)", re.IGNORECASE)
_COMMAND_LINE = re.compile(r"^([^\S\n]*):(?=:)", re.MULTILINE)


def terminal(text: str) -> str:
    """For a terminal or an assertion message: of what a terminal obeys only new lines and tabs
    stay, and a build server that reads along finds no command (``::set-output`` at the beginning of
    a line, ``##vso[``).
    """
    return commandless(visible(text))


def commandless(text: str) -> str:
    """*text*, which is visible, with commands to a build server taken apart by a space."""
    return _COMMAND.sub("# #", _COMMAND_LINE.sub(r"\1: ", text))


def line(text: str) -> str:
    """For a terminal, on one line."""
    return visible(text, keep="")


def _without_elements(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def html(text: str) -> str:
    """For HTML, as text or inside a quoted attribute."""
    return str(escape(visible(text)))


_MARKUP = re.compile(r"[\\`*_\[\]|~$]")
# What a forge makes a mention, a reference to an issue or merge request, or a link of. Comments are
# raw HTML and of no use where it is spelt out, so that a space of no width stands behind the
# character that starts it, as Dependabot does.
_REFERENCE = re.compile(
    r"[@#!%^](?=[\w\"'])|&amp;(?=\d)|\bGH(?=-\d)|:(?=//)|\bwww(?=\.)", re.IGNORECASE
)
# At the beginning of a line: a list, a heading, a rule, and what GitLab obeys (/close).
_BLOCK = re.compile(r"^(\d+(?=[.)])|(?=[#+=/-]))")


def markdown(text: str) -> str:
    """For a line of GitHub's or GitLab's Markdown, inside a paragraph, a list's item or a table's
    cell: plain words.

    No markup, no HTML, no picture, and nothing that becomes a link, a mention or a reference by
    itself.
    """
    text = _MARKUP.sub(r"\\\g<0>", _without_elements(line(text).strip()))
    return _BLOCK.sub(r"\1\\", _REFERENCE.sub(r"\g<0>&#8203;", text))


# Slack's markup; what it makes a mention, a channel or a link of by itself; and emoji.
_SLACK_MARKUP = str.maketrans("*~`", "\u2217\u223c\u02cb")
_SLACK_OUTER = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_SLACK_REFERENCE = re.compile(r"[@#](?=\w)|:(?=//)|:(?=[\w+-]+:)|\bwww(?=\.)", re.IGNORECASE)


def slack(text: str) -> str:
    """For Slack's mrkdwn, sent as ``verbatim``: plain words on one line.

    Its three special characters are escaped as it asks for; markup is shown by look-alikes, since
    Slack has no way to escape it; and nothing becomes a mention, a link or an emoji by itself.
    """
    text = _SLACK_OUTER.sub("\u02cd", line(text).translate(_SLACK_MARKUP))
    return _without_elements(_SLACK_REFERENCE.sub("\\g<0>\u200b", text))


_ADDRESS = re.compile(r"https?://[\w.:/~-]+", re.ASCII)


def web_address(text: str) -> str:
    """Return *text* where it is an address that ends no link of Markdown's or Slack's; else
    nothing: it would be a link of somebody else's making.
    """
    if _ADDRESS.fullmatch(text):
        return text
    return ""


def workflow_data(text: str, *, of_property: bool = False) -> str:
    """For the message of a workflow command of GitHub's, or for a property of it: nothing ends it."""
    text = _COMMAND.sub("# #", line(text)).replace("%", "%25")
    if of_property:
        return text.replace(":", "%3A").replace(",", "%2C")
    return text


def xml(text: str) -> str:
    """For a text or an attribute of XML, which a serialiser quotes: none of the characters that XML
    cannot hold.
    """
    return visible(text).replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")


_FORMULA = re.compile(r"""^[\s"']*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\x00]""")


def csv_cell(value: str | float | None) -> str:
    """For a CSV cell, given to a csv writer: a spreadsheet takes no text for a formula (OWASP).

    A number stays a number, minus sign and all; text that starts like a formula gets an apostrophe
    in front.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        return repr(value)
    text = visible(value, keep="\n")
    if _FORMULA.match(value):
        return f"'{text}"
    return text


def shortened(text: str, characters: int) -> str:
    """*text* cut to a number of characters, with a word on how much is missing."""
    if len(text) <= characters:
        return text
    return f"{text[:characters].rstrip()} … [{len(text) - characters:,} more characters]"


# ---------------------------------------------------------------- columns of a terminal


def columns_of(text: str) -> int:
    """Return how many columns of a terminal *text* takes: two for wide characters, none for
    combining ones.
    """
    if text.isascii():
        return len(text)
    return sum(map(_columns_of_character, text))


@lru_cache(maxsize=4096)
def _columns_of_character(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    if unicodedata.east_asian_width(character) in "WF":
        return 2
    return 1


def clipped(text: str, width: int) -> str:
    """*text* cut to a width in columns, ``…`` included."""
    if columns_of(text) <= width:
        return text
    return _head(text, width - 1) + "…"


def _head(text: str, width: int) -> str:
    """As many characters of *text* as fit."""
    kept = text[: max(width, 0)]
    while columns_of(kept) > width:
        kept = kept[:-1]
    return kept


def wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """The words of *text* on lines of at most *width* columns, with *first* and then *rest* before
    each line.

    A word that is wider than a line is broken.
    """
    lines = []
    line = first
    empty = True
    for word in text.split():
        if not empty and columns_of(line) + 1 + columns_of(word) > width:
            lines.append(line)
            line = rest
            empty = True
        if not empty:
            line += " "
        left = word
        empty = False
        while columns_of(line) + columns_of(left) > width:
            head = _head(left, width - columns_of(line)) or left[0]
            lines.append(line + head)
            left = left[len(head) :]
            line = rest
        line += left
    if line.strip() or not lines:
        return [*lines, line]
    return lines
