"""Identifiers: stable, readable, never empty, never the same for two things."""

from __future__ import annotations

import re
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_fairness.design.slugs import is_slug, join, slug, slugs


def test_examples() -> None:
    """Accents are dropped, everything foreign becomes one underscore; a cut slug ends in a hash of
    the whole text.
    """
    texts = ("Emily Walsh", "Zoë O'Neil-Ångström", "3.5 years", "../../etc/passwd", "李伟")
    assert [*map(slug, texts)] == [
        "emily_walsh",
        "zoe_o_neil_angstrom",
        "3_5_years",
        "etc_passwd",
        "x5ed4d5",
    ]
    assert slug("a" * 100 + "1") != slug("a" * 100 + "2")
    assert len(slug("a" * 100)) == 32


def test_texts_that_would_meet_carry_a_hash_whatever_their_order() -> None:
    """a/b and a:b are two identifiers, and adding one never renames a text that met nobody."""
    both = slugs(["a/b", "a:b", "c"])
    assert len(set(both.values())) == 3
    assert both == slugs(["c", "a:b", "a/b"])
    assert both["c"] == "c"


@settings(max_examples=50)
@given(st.lists(st.text(max_size=60), min_size=1, max_size=6, unique=True))
def test_any_text_gives_a_valid_part_of_its_own(texts: list[str]) -> None:
    """Whatever the text, lone surrogates included: a-z, 0-9 and _, and no two of an axis alike."""
    assert all(re.fullmatch(r"[a-z0-9_]{1,32}", slug(text)) for text in texts)
    assert len(set(slugs(texts).values())) == len(texts)


def test_joined_parts_cannot_be_confused() -> None:
    """Parts hold no hyphen, so ("a-b", "c") and ("a", "b-c") differ, and long ids end in a hash."""
    parts = [slugs(["a-b", "a", "b-c", "c"])[text] for text in ("a-b", "a", "b-c", "c")]
    assert len({join(pair) for pair in product(parts, parts)}) == 16
    long = [join(["x" * 32] * 5 + [end]) for end in ("a", "b")]
    assert long[0] != long[1]
    assert all(len(each) <= 150 for each in long)


def test_is_slug() -> None:
    """What may be an identifier as it stands."""
    assert all(map(is_slug, ["a", "t1", "a.b-c_d", "0"]))
    assert not any(map(is_slug, ["", ".a", "-a", "A", "a b", "a/b", "é", "a" * 81]))
