"""YAML that comes from a stranger: nothing is executed, nothing is guessed, every refusal names its line."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_fairness import documents
from pytest_fairness.errors import UsageError


def load(text: str, source: str, **limits: int) -> documents.Plain:
    return documents.parse(text, source, **limits).data


@pytest.fixture(params=["SafeLoader", "CSafeLoader"], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Everything below holds for the pure-Python parser and for libyaml."""
    loader = getattr(yaml, request.param, None)
    if loader is None:
        pytest.skip("PyYAML was built without libyaml")
    monkeypatch.setattr(documents, "_LOADER", loader)
    return str(request.param)


@pytest.mark.parametrize(
    "text",
    ["NO", "no", "Yes", "on", "OFF", "Null", "True", "~", "1e3", "0x1F", "0o17", "017", "1_000", "1:30",
     "2026-02-28", "2026-02-28T10:00:00Z", ".inf", ".nan", "-.5", "5.", "=", "+", "-1.e3"],
)  # fmt: skip
def test_what_yaml_1_1_would_turn_into_something_else_stays_text(text: str) -> None:
    """A person may be called No, Null or True; a time of day is not a number of seconds."""
    assert load(f"name: {text}\n", "f.yaml") == {"name": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("-12", -12), ("+4", 4), ("0", 0), ("0.75", 0.75), ("-1.5e-3", -0.0015), ("true", True),
     ("false", False), ("null", None), ("", None), ("'3'", "3"), ('"true"', "true"), ("''", ""),
     ("'null'", "null")],
)  # fmt: skip
def test_the_scalars_that_are_not_strings(text: str, value: object) -> None:
    """Numbers and the three words are read; quoting any of them keeps it a string."""
    loaded = load(f"x: {text}\n", "f.yaml")
    assert loaded == {"x": value}
    assert isinstance(loaded, dict)
    assert type(loaded["x"]) is type(value)


def test_keys_are_strings() -> None:
    """A key is never a number or a boolean: 1, no and 2026-01-01 are the words that they look like."""
    assert load("1: a\nno: b\n2026-01-01: c\n", "f") == {"1": "a", "no": "b", "2026-01-01": "c"}


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "the key 'a' stands here twice"),
        ("a: {x: 1,\n x: 2}\n", 2, "the key 'x' stands here twice"),
        ("a: &b [1]\n", 1, "anchor &b"),
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


def test_a_billion_laughs_is_refused_at_its_first_anchor() -> None:
    """An alias bomb never gets as far as an alias."""
    bomb = "a: &a [lol]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    with pytest.raises(UsageError, match=r"bomb:1: the anchor &a"):
        load(bomb, "bomb")


def test_deep_nesting_is_refused_quickly() -> None:
    """A hundred thousand brackets end at the limit, not at the recursion limit."""
    start = time.thread_time()
    with pytest.raises(UsageError, match="nested deeper than 40 levels"):
        load("[" * 100_000, "deep")
    assert time.thread_time() - start < 5


def test_the_greatest_depth_that_is_read() -> None:
    """Forty levels are fine, forty-one are not."""
    load("[" * 40 + "]" * 40, "f")
    with pytest.raises(UsageError, match="nested"):
        load("[" * 41 + "]" * 41, "f")


def test_size_and_number_of_values_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of 50 MB is not even read to its end."""
    big = tmp_path / "big.yaml"
    big.write_bytes(b"a: '" + b"x" * 50_000_000 + b"'\n")
    with pytest.raises(UsageError, match="larger than 5,000,000 bytes"):
        documents.open_document(big)
    with pytest.raises(UsageError, match="larger than 10 characters"):
        load("x" * 11, "f", max_bytes=10)
    monkeypatch.setattr(documents, "MAX_NODES", 5)
    with pytest.raises(UsageError, match="more than 5 values"):
        load("[1, 2, 3, 4, 5]", "f")


def test_text_that_is_no_text(tmp_path: Path) -> None:
    """Latin-1, NUL and half a surrogate pair are refused; a byte-order mark is not content."""
    path = tmp_path / "latin.yaml"
    path.write_bytes("ok: 1\nname: José\n".encode("latin-1"))
    with pytest.raises(UsageError, match=r"latin.yaml:2: not UTF-8"):
        documents.open_document(path)
    for text in ("a: \x00\n", "a: b\nc: \ud800\n"):
        with pytest.raises(UsageError):
            load(text, "f")
    path.write_bytes(b"\xef\xbb\xbfa: b\n")
    assert documents.open_document(path).data == {"a": "b"}


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    """No traceback of the operating system reaches the user."""
    with pytest.raises(UsageError, match="cannot be read"):
        documents.open_document(tmp_path / "absent.yaml")


def test_an_empty_document_is_nothing() -> None:
    """Empty, and comments only, are both None: the caller decides what that means."""
    assert load("", "f") is None
    assert load("# nothing yet\n", "f") is None


def test_the_endpoint_format_of_the_specification_reads() -> None:
    """Colons in URLs and model names, booleans and decimals, nested lists of mappings."""
    text = (
        'endpoints:\n  - name: "gpt-4o"\n    base_url: "https://api.example.com/v1"\n'
        "    supports_system_prompt: true\n    default_temperature: 1.0\n  - name: local\n    base_url: http://localhost:11434\n"
    )
    assert load(text, "endpoints.yaml") == {
        "endpoints": [
            {"name": "gpt-4o", "base_url": "https://api.example.com/v1", "supports_system_prompt": True,
             "default_temperature": 1.0},
            {"name": "local", "base_url": "http://localhost:11434"},
        ]
    }  # fmt: skip


names = st.text(st.characters(blacklist_categories=("Cs", "Cc"), max_codepoint=0xFFFF), max_size=30)
_plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | names,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names.filter(lambda k: k != "<<"), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("loader", ["SafeLoader", "CSafeLoader"])
def test_plain_data_survives_a_round_trip(loader: str) -> None:
    """Whatever PyYAML writes as plain quoted data is read back unchanged."""

    @given(_plain)
    def round_trip(data: object) -> None:
        text = yaml.dump(data, Dumper=_Quoting, allow_unicode=True)
        assert load(text, "f") == data

    round_trip()


class _Quoting(yaml.SafeDumper):
    """Quotes every string, as our own files do, and writes no aliases."""

    def ignore_aliases(self, data: object) -> bool:
        return True


_Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))
