"""The same table as pandas, polars, DuckDB, Arrow or a path gives the same release."""

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pc
import pytest

import reticent
from reticent.frames import table_of

POLICY = {
    "version": 1,
    "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}}, "sex": "quasi", "ill": "sensitive"},
    "privacy": {"k": 3, "l": 2, "suppression": 0.2},
}
TABLE = pa.table(
    {"age": [20 + n % 17 for n in range(60)], "sex": ["f", "m"] * 30, "ill": [f"ill {n % 5}" for n in range(60)]}
)


def as_path(folder):
    pc.write_csv(TABLE, folder / "t.csv")
    return folder / "t.csv"


FORMS = {
    "arrow": lambda _: TABLE,
    "pandas": lambda _: TABLE.to_pandas(),
    "polars": lambda _: pl.from_arrow(TABLE),
    "duckdb": lambda _: duckdb.from_arrow(TABLE),
    "path": as_path,
    "batch": lambda _: TABLE.combine_chunks().to_batches()[0],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_release(tmp_path, form):
    policy = reticent.Policy.from_dict(POLICY)
    wanted = reticent.anonymize(TABLE, policy, seed=1)
    release = reticent.anonymize(FORMS[form](tmp_path), policy, seed=1)
    assert release.to_arrow().equals(wanted.to_arrow())
    assert reticent.verify(release.to_pandas(), policy).holds
    assert release.to_polars().height == wanted.to_arrow().num_rows
    assert reticent.risk(FORMS[form](tmp_path), quasi=["age"], sensitive=["ill"]).records == 60


@pytest.mark.parametrize("form", ["pandas", "polars", "duckdb", "batch"])
def test_every_function_takes_every_frame(tmp_path, form):
    people = pa.table({"id": [f"p{n}" for n in range(60)], **{name: TABLE[name] for name in TABLE.column_names}})
    frames = {
        "pandas": lambda table: table.to_pandas().set_index("id"),
        "polars": pl.from_arrow,
        "duckdb": duckdb.from_arrow,
        "batch": lambda table: table.combine_chunks().to_batches()[0],
    }
    frame, first = frames[form](people), frames[form](people.slice(0, 1))
    (tmp_path / "prior.csv").write_text("value,count\n" + "".join(f"ill {n},1\n" for n in range(5)))
    columns = {"id": "identifier", "age": "quasi", "sex": "quasi", "ill": "sensitive"}
    series = {"method": "m-invariance", "m": 2, "max_risk": 0.6}
    rules = {"columns": columns, "person": "id", "privacy": {"k": 3, "l": 2}, "series": series}
    rules |= {
        "version": 1,
        "evolving": {"method": "enc"},
        "stream": {"method": "delay-free"},
        "prior": {"file": "prior.csv"},
    }
    policy = reticent.Policy.from_dict(rules, base=tmp_path)
    draft = reticent.draft(frame, policy, seed=1)
    assert draft.release.to_arrow().equals(reticent.draft(people, policy, seed=1).release.to_arrow())
    released = reticent.anonymize(frame, policy, seed=1)
    assert reticent.verify(released, policy, original=frame).holds
    assert not reticent.audit(
        frames[form](released.to_arrow()) if form != "pandas" else released.to_pandas(), policy, original=frame, seed=1
    ).refuted
    assert reticent.Policy.guess(frame).person == "id"
    kept = reticent.EvolvingTable(tmp_path / "e.db", policy)
    assert kept.insert(frame).inserted == 60
    assert kept.update(first).updated == 1
    assert kept.delete(first).deleted == 1
    assert reticent.Series(tmp_path / "s.db", policy, seed=1).publish(frame).records.published == 60
    with reticent.Stream(policy, store=tmp_path / "f.db") as stream:
        assert stream.push(frame).count(b'"tuple"') == 60
        assert not stream.dead_letters()


def test_an_index_is_a_column_by_its_name_and_a_count_of_rows_is_none():
    frame = TABLE.to_pandas()
    kept = frame[frame.age > 25].sort_values("age")
    assert table_of(kept).column_names == ["age", "sex", "ill"]
    assert table_of(frame.set_index(["sex", "age"])).column_names == ["sex", "age", "ill"]
    assert table_of(frame.rename_axis("who")).column_names == ["who", "age", "sex", "ill"]


def test_what_is_released_as_it_is_keeps_its_type():
    frame = pd.DataFrame(
        {
            "sex": ["f", "m"] * 30,
            "whole": pd.array([1, None, 3] * 20, dtype="Int64"),
            "small": pd.Series(range(60), dtype="int8"),
            "truth": pd.array([True, None, False] * 20, dtype="boolean"),
            "share": [0.5, float("nan")] * 30,
            "seen": pd.date_range("2020-01-01", periods=60, tz="Europe/Berlin"),
            "stay": pd.to_timedelta(range(60), unit="h"),
        }
    )
    policy = reticent.Policy(columns=dict.fromkeys(frame.columns, "plain") | {"sex": "quasi"}, privacy={"k": 3})
    released = reticent.anonymize(frame, policy, seed=1).to_pandas()
    assert released.dtypes.to_dict() == frame.dtypes.to_dict()


def test_categories_and_views_become_text():
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y", None])})
    assert table_of(frame).to_pydict() == {"a": ["x", "y", None]}
    assert table_of(pl.DataFrame({"a": ["x"]})).schema.field("a").type == pa.string()

    assert table_of(pl.DataFrame({"a": ["x"]}, schema={"a": pl.Categorical})).to_pydict() == {"a": ["x"]}
    assert table_of(pd.DataFrame({5: [1], "a": [2]})).column_names == ["5", "a"]


def levels():
    return pd.DataFrame([["Secret"]], columns=pd.MultiIndex.from_tuples([("a", "b")]))


REFUSED = {
    "an index without a name": (pd.DataFrame({"a": [1]}, index=["Secret"]), "index without a name"),
    "mixed types": (pd.DataFrame({"a": ["Secret", 1]}), "'a' has mixed types"),
    "lists": (pl.DataFrame({"a": [["Secret"]]}), "'a' has an unsupported cell type .large_list"),
    "dicts": (pd.DataFrame({"a": [{"Secret": 1}]}), "'a' has an unsupported cell type"),
    "nested arrow": (pa.table({"a": [["Secret"]]}), "'a' has an unsupported cell type"),
    "bytes": (pd.DataFrame({"a": [b"Secret"]}), "'a' has an unsupported cell type"),
    "objects": (pl.DataFrame({"a": [object()]}), "'a' has an unsupported cell type"),
    "periods": (
        pd.DataFrame({"a": pd.period_range("2001-01", periods=2, freq="M")}),
        "'a' has an unsupported cell type",
    ),
    "intervals": (pd.DataFrame({"a": pd.cut(pd.Series([1, 2]), 2)}), "'a' has an unsupported cell type"),
    "complex numbers": (pd.DataFrame({"a": [1 + 2j]}), "unsupported type .complex128"),
    "sparse columns": (
        pd.DataFrame({"a": pd.arrays.SparseArray([7, 7, 1], fill_value=7)}),
        "unsupported type .Sparse\\)",
    ),
    "one name twice": (pd.DataFrame([["Secret", 1]], columns=["a", "a"]), "Several columns are named 'a'"),
    "one name twice in Arrow": (pa.table([["Secret"], ["b"]], names=["a", "a"]), "Several columns are named 'a'"),
    "names of levels": (levels(), "2 levels"),
    "no name": (pd.DataFrame({None: ["Secret"]}), "Column 1 has no name"),
    "no columns": (pd.DataFrame(), "no columns"),
    "a series": (pd.Series(["Secret"]), "type Series, .* Call to_frame"),
    "a lazy frame": (pl.LazyFrame({"a": ["Secret"]}), "type LazyFrame, .* Call collect"),
    "a dictionary": ({"a": ["Secret"]}, "type dict. .*pyarrow.table"),
    "a list": ([{"a": "Secret"}], "type list. .*from_pylist"),
    "an array": (pd.DataFrame({"a": ["Secret"]}).to_numpy(), "type ndarray. .*columns="),
    "nothing": (None, "type NoneType, .* Give a pandas"),
}


@pytest.mark.parametrize(("frame", "words"), REFUSED.values(), ids=REFUSED)
def test_what_a_table_cannot_say_is_refused_without_a_cell(frame, words):
    policy = reticent.Policy(columns={"a": "quasi"}, privacy={"k": 2})
    for function in (reticent.Policy.guess, lambda data: reticent.anonymize(data, policy), reticent.risk):
        with pytest.raises(reticent.DataError, match=words) as refusal:
            function(frame)
        assert "Secret" not in f"{refusal.value}"


def test_a_guess_needs_rows_and_a_frame(tmp_path):
    with pytest.raises(reticent.DataError, match="no rows"):
        reticent.Policy.guess(TABLE.slice(0, 0))
    with pytest.raises(reticent.DataError, match="reticent init"):
        reticent.Policy.guess(as_path(tmp_path))
    assert reticent.Policy.guess(TABLE.slice(0, 1)).quasi, "one record is no constant"
    with pytest.raises(reticent.PolicyError, match="type dict"):
        reticent.anonymize(TABLE, {"columns": {}})
