"""The engines and the verifier each normalize names of persons by their own code: both agree, on odd names and on any text."""

import unicodedata

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from reticent.encode.columns import NOT_PLAIN, normalize_name, normalize_names
from reticent.verify.variants import canonical_name, merge_person_names

ODD_NAMES = [
    *("7", " 7", "7.0", "7.000", "+7.0", "-7.0", "7.", ".0", "7.5", "007", "7.0.0", "1e5", "p7", "P7", "", " ", "\t\n"),
    *("\uff17", "\uff17\uff0e\uff10", "\u0667", "7\u200b", "\u200b", "\ufeff7", "7\x00", "7\x7f", "\x1f7", "7\u034f"),
    *(
        "\u00e9",
        "e\u0301",
        "e\u200d\u0301",
        "Zoe\u0308  B",
        "\u3164x",
        "\uffa0x",
        "\u2800",
        "\ufb01",
        "\u2460",
        "\u00bd",
    ),
    *(
        "a\u00a0b",
        "a\u2003\u2003b",
        "a\u0085b",
        "a\u1680b",
        "\u1100\u1161",
        "\u180ex",
        "x\ufe0f",
        "x\U000e0101",
        "\ud7b0",
    ),
]
PARTS = st.sampled_from([*ODD_NAMES, *"0123456789.+- abcXYZ"])
NAMES = st.one_of(
    st.text(max_size=8),
    st.lists(PARTS, max_size=5).map("".join),
    st.text(
        st.characters(
            categories=["Cf", "Cc", "Zs", "Zl", "Zp", "Mn", "Nd", "No", "Lo"],
            include_characters="70.e\u0301\u1100\u1161",
        ),
        max_size=6,
    ),
)


def agree(name: str) -> None:
    single = normalize_name(name)
    assert canonical_name(name) == single, ascii(name)
    assert single is None or normalize_name(single) == single, ascii(name)
    assert normalize_names(pa.chunked_array([[name] * 9])).to_pylist() == [single] * 9, ascii(name)
    merged = merge_person_names(pa.table({"id": [name]}), "id").column("id").to_pylist()
    assert merged == [single], ascii(name)


def test_odd_names():
    for name in [*ODD_NAMES, "\x1b\r"]:
        agree(name)
    assert len({normalize_name(name) for name in ("\u00e9", "e\u0301", "e\u200d\u0301")}) == 1
    assert len({normalize_name(name) for name in ("7", "\uff17", "7.0", "7\x00", "7\u034f")}) == 1


@given(NAMES)
def test_any_name(name):
    agree(name)


@given(st.lists(NAMES.filter(lambda name: unicodedata.normalize("NFKC", name) == name), min_size=1, max_size=12))
def test_whole_columns(names):
    table = merge_person_names(pa.table({"id": pa.array([*names, None])}), "id")
    assert table.column("id").to_pylist() == [*map(normalize_name, names), None]


def test_plain_names_are_their_own():
    import re

    plain = "".join(
        chr(sign) for sign in range(0x110000) if chr(sign).isascii() and not re.search(NOT_PLAIN, chr(sign))
    )
    assert len(plain) == 93
    assert normalize_name(plain) == plain == canonical_name(plain)
