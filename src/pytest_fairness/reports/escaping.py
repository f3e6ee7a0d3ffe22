"""One function for each place that text is shown in. Replies, prompts, ids, group names are all hostile
input.

Common to all: characters that a reader cannot see but a terminal, a browser or a parser obeys (control codes,
bidirectional overrides, zero-width characters, lone surrogates) are written out as ``\\x1b`` or ``\\u202e``.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

from markupsafe import escape

from pytest_fairness.model import to_json

# Control, format (bidi, zero width, tags), surrogate, line and paragraph separators; never plain space.
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
        return _NAMED.get(
            character,
            f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}",
        )

    text = _CANDIDATE.sub(spell, text)
    for character in "\n\t":
        if character not in keep:
            text = text.replace(character, _NAMED[character])
    return text


_COMMAND = re.compile(r"##(?=\[|vso|teamcity|section)", re.IGNORECASE)
_COMMAND_LINE = re.compile(r"^([^\S\n]*):(?=:)", re.MULTILINE)


def terminal(text: str) -> str:
    """For a terminal or an assertion message: of what a terminal obeys only new lines and tabs stay, and a build server
    that reads along finds no command (``::set-output`` at the beginning of a line, ``##vso[``).
    """
    return commandless(visible(text))


def commandless(text: str) -> str:
    """*text*, which is visible, with commands to a build server taken apart by a space."""
    return _COMMAND.sub("# #", _COMMAND_LINE.sub(r"\1: ", text))


def line(text: str) -> str:
    """For a terminal, on one line."""
    return visible(text, keep="")


def html(text: str) -> str:
    """For HTML, as text or inside a quoted attribute."""
    return str(escape(visible(text)))


def json_in_script(value: Any) -> str:
    """JSON of *value* for a ``<script>`` element: pure ASCII, and no ``</script>``, ``<!--`` or ``]]>`` in
    it.

    Raises TypeError for what is not JSON.
    """
    text = json.dumps(to_json(value), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


_FORMULA = re.compile(r"""^[\s"']*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\x00]""")


def csv_cell(value: str | float | None) -> str:
    """For a CSV cell, given to a csv writer: a spreadsheet takes no text for a formula (OWASP).

    A number stays a number, minus sign and all; text that starts like a formula gets an apostrophe in front.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        return repr(value)
    text = visible(value, keep="\n")
    return f"'{text}" if _FORMULA.match(value) else text


_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|~$^=])")


def markdown(text: str) -> str:
    """For a line of Markdown (GitHub, GitLab, Slack): no markup, link, HTML, mention or command survives."""
    text = visible(text, keep="\n").replace("\n", " ")
    text = _MARKDOWN.sub(r"\\\1", text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace(":", "&#58;")
    # A word joiner keeps "@name" and "www." from being found; neither an entity nor a backslash does.
    return text.replace("@", "@\u2060").replace("www", "w\u2060ww")


def ci_log(text: str) -> str:
    """For one line of a build log: no workflow command (``::set-output``, ``##vso[``) is left in it."""
    text = re.sub(r":(?=:)", ": ", line(text))
    return _COMMAND.sub("# #", text)


def shortened(text: str, characters: int) -> str:
    """*text* cut to a number of characters, with a word on how much is missing."""
    if len(text) <= characters:
        return text
    return f"{text[:characters].rstrip()} … [{len(text) - characters:,} more characters]"
