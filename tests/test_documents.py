"""YAML that comes from a stranger: nothing is executed, nothing is guessed, every refusal names its
line.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_fairness import documents
from pytest_fairness.errors import UsageError


def load(text: str, source: str = "f.yaml", **limits: int) -> documents.Plain:
    return documents.parse(text, source, **limits).data


@pytest.fixture(params=["SafeLoader", "CSafeLoader"], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Everything below holds for the pure-Python parser and for libyaml."""
    loader = getattr(yaml, request.param, None)
    if loader is None:
        pytest.skip("PyYAML was built without libyaml")
    monkeypatch.setattr(documents, "_LOADER", loader)
    return str(request.param)


def test_scalars_and_keys() -> None:
    """A person may be called No, Null or True; a time of day is not a number of seconds. Numbers
    and the three words are read, quoting any of them keeps it a text, and a key is always one.
    """
    stay = (
        "NO no Yes on OFF Null True ~ 1e3 0x1F 0o17 017 1_000 1:30 2026-02-28 2026-02-28T10:00:00Z "
        ".inf .nan -.5 5. ="
    )
    for text in stay.split():
        assert load(f"name: {text}\n") == {"name": text}
    for text, value in {
        "3": 3, "-12": -12, "+4": 4, "0": 0, "0.75": 0.75, "-1.5e-3": -0.0015, "true": True, "false": False,
        "null": None, "": None, "'3'": "3", '"true"': "true", "''": "", "'null'": "null",
    }.items():  # fmt: skip
        assert repr(load(f"x: {text}\n")) == repr({"x": value})
    assert load("1: a\nno: b\n2026-01-01: c\n") == {"1": "a", "no": "b", "2026-01-01": "c"}
    assert load("") is load("# nothing yet\n") is None


BOMB = "a: &a [lol]\n" + "".join(
    f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "the key 'a' stands here twice"),
        ("a: {x: 1,\n x: 2}\n", 2, "the key 'x' stands here twice"),
        (BOMB, 1, "anchor &a"),
        ("a: 1\nb: *a\n", 2, "alias *a"),
        ("x: 1\n<<: {a: 1}\n", 2, "merge keys"),
        ("x: !!python/object/apply:os.system ['true']\n", 1, "tag"),
        ("x: !local y\n", 1, "tag"),
        ("x: !!str 3\n", 1, "tag"),
        ("? [a, b]\n: 1\n", 1, "a key must be plain text"),
        ("a: 1\n---\nb: 2\n", 2, "a second document"),
        ("a: 1\nb: [1, 2\n", 3, "not valid YAML"),
        ("a: 1\n\tb: 2\n", 2, "not valid YAML"),
    ],
)
def test_refusals_name_the_line(text: str, line: int, what: str) -> None:
    """Each refusal says which file, which line, and why."""
    with pytest.raises(UsageError) as caught:
        load(text, "conf.yaml")
    assert str(caught.value).startswith(f"conf.yaml:{line}: ")
    assert what in str(caught.value)


def test_depth_size_and_number_of_values_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred thousand brackets end at the limit, not at the recursion limit; a large file is not
    read to its end.
    """
    load("[" * 40 + "]" * 40)
    for depth in (41, 100_000):
        with pytest.raises(UsageError, match="nested deeper than 40 levels"):
            load("[" * depth)
    big = tmp_path / "big.yaml"
    big.write_bytes(b"a: '" + b"x" * 5_000_000 + b"'\n")
    with pytest.raises(UsageError, match="larger than 5,000,000 bytes"):
        documents.open_document(big)
    with pytest.raises(UsageError, match="larger than 10 characters"):
        load("x" * 11, max_bytes=10)
    monkeypatch.setattr(documents, "MAX_NODES", 5)
    with pytest.raises(UsageError, match="more than 5 values"):
        load("[1, 2, 3, 4, 5]")


def test_text_that_is_no_text(tmp_path: Path) -> None:
    """Latin-1, NUL and half a surrogate pair are refused, and a missing file; a byte-order mark is
    not content.
    """
    path = tmp_path / "latin.yaml"
    with pytest.raises(UsageError, match="cannot be read"):
        documents.open_document(path)
    path.write_bytes("ok: 1\nname: José\n".encode("latin-1"))
    with pytest.raises(UsageError, match=r"latin.yaml:2: not UTF-8"):
        documents.open_document(path)
    for text in ("a: \x00\n", "a: b\nc: \ud800\n"):
        with pytest.raises(UsageError):
            load(text)
    path.write_bytes(b"\xef\xbb\xbfa: b\n")
    assert documents.open_document(path).data == {"a": "b"}


def test_the_endpoint_format_of_the_specification_reads() -> None:
    """Colons in URLs and model names, booleans and decimals, nested lists of mappings."""
    text = (
        'endpoints:\n  - name: "gpt-4o"\n    base_url: "https://api.example.com/v1"\n'
        "    supports_system_prompt: true\n    default_temperature: 1.0\n  - name: local\n    "
        "base_url: http://localhost:11434\n"
    )
    assert load(text) == {
        "endpoints": [
            {"name": "gpt-4o", "base_url": "https://api.example.com/v1", "supports_system_prompt": True,
             "default_temperature": 1.0},
            {"name": "local", "base_url": "http://localhost:11434"},
        ]
    }  # fmt: skip


names = st.text(st.characters(blacklist_categories=("Cs", "Cc"), max_codepoint=0xFFFF), max_size=30)
_plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | names,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(names.filter(lambda k: k != "<<"), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(_plain)
def test_plain_data_survives_a_round_trip(data: object) -> None:
    """Whatever PyYAML writes as plain quoted data is read back unchanged."""
    assert load(yaml.dump(data, Dumper=_Quoting, allow_unicode=True)) == data


class _Quoting(yaml.SafeDumper):
    """Quotes every string, as our own files do, and writes no aliases."""

    def ignore_aliases(self, data: object) -> bool:
        return True


_Quoting.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
)
