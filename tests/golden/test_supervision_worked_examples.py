"""Wu, He, Zaiane: Table 1 (a 3-anonymous table and what is wrong with it) and the utility tree of Figure 2."""

import pyarrow as pa

from reticent.api import anonymize, audit
from reticent.engine.table.supervision import utility_tree
from reticent.policy import Policy
from reticent.verify.groups import histograms, number_rows

QUASI = ("zip", "age", "sex")
RAW = {
    "zip": ["47601", "47645", "47688", "97110", "97320", "97830"],
    "age": ["61", "65", "68", "51", "55", "58"],
    "sex": ["M", "F", "M", "F", "F", "F"],
    "disease": ["Gastritis", "Gastric Ulcer", "Stomach Cancer", "Gastric Ulcer", "Gastric Ulcer", "Gastric Ulcer"],
}
TABLE_1 = {
    "zip": ["476**"] * 3 + ["97***"] * 3,
    "age": ["6*"] * 3 + ["5*"] * 3,
    "sex": ["*"] * 3 + ["F"] * 3,
    "disease": RAW["disease"],
}
POLICY = {
    "version": 1,
    "columns": {
        "zip": {"role": "quasi", "hierarchy": {"prefix": 5}},
        "age": {"role": "quasi", "hierarchy": {"prefix": 2}},
        "sex": "quasi",
        "disease": "sensitive",
    },
    "privacy": {"k": 3},
    "table": {"method": "local"},
}


def classes(table):
    rows, size = number_rows(table, QUASI)
    return histograms(rows, size, table.column("disease"))


def test_table_1_is_3_anonymous_and_its_second_class_discloses_everything():
    groups = classes(pa.table(TABLE_1))
    assert groups.sizes().tolist() == [3, 3]
    assert sorted(groups.distinct().tolist()) == [1, 3]  # homogeneity: everybody in 97*** has gastric ulcer


def test_local_recoding_makes_table_1_of_such_records():
    release = anonymize(pa.table(RAW), Policy.from_dict(POLICY), seed=1)
    shown = release.tables["data"].select([*QUASI, "disease"]).to_pylist()
    expected = pa.table(TABLE_1).to_pylist()
    assert sorted(shown, key=repr) == sorted(expected, key=repr)


def test_the_attacks_of_section_2_find_what_the_paper_says_of_table_1():
    """Homogeneity: the second class has gastric ulcer. Similarity: anyone in the first has a stomach disease."""
    tree = {"stomach": sorted(set(RAW["disease"])), "lung": ["Flu", "Pneumonia"]}
    columns = POLICY["columns"] | {"disease": {"role": "sensitive", "hierarchy": {"tree": tree}}}
    policy = Policy.from_dict(POLICY | {"columns": columns})
    release = anonymize(pa.table(RAW), policy, seed=1)
    found = {outcome.attack: outcome for outcome in audit(release, policy, original=pa.table(RAW), seed=1).outcomes}
    assert found["homogeneity"].sure == 3
    assert found["similarity"].sure == 6


def test_l_diversity_refuses_the_second_class():
    strict = POLICY | {"privacy": {"k": 3, "l": 2}}
    release = anonymize(pa.table(RAW), Policy.from_dict(strict), seed=1)
    assert min(classes(release.tables["data"]).distinct()) >= 2


def test_the_utility_tree_of_figure_2_gives_the_papers_batches():
    """X3 = X - C is best of all; below it X342 = {A, E, F}; below that what is left of {F}."""
    path = {"ABCDEF": 0.80, "ABDEF": 0.84, "ABEF": 0.79, "AEF": 0.82, "AF": 0.75, "F": 0.76}
    tree = utility_tree("ABCDEF", lambda names: path.get("".join(names), 0.1))
    assert tree.removal[:4] == ("C", "D", "B", "E")
    assert tree.batches()[:3] == [("C",), ("B", "D"), ("A", "E")]
