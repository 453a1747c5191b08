"""`reticent init` for every kind: what it writes works with the commands it prints."""

import io
import json
import shlex
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from wide_tables import admissions, encounters

from reticent.cli import main
from reticent.cli.veil_policy import possible_l
from reticent.datasets.adt import write_adt
from reticent.datasets.files import write_feed, write_hospital
from reticent.policy import Policy
from reticent.release import Release


def run(*words):
    with pytest.raises(SystemExit) as done:
        main(list(words))
    return done.value.code or 0


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("words", [["table"], ["table", "--method", "veil"], ["evolving"], ["series"], ["stream"]])
def test_the_printed_commands_work(folder, capsys, words):
    write_hospital(folder / "my patients.csv", 600, seed=1)
    assert run("init", "my patients.csv", "--for", *words, "-o", "policy.yaml") == 0
    printed = [line.strip() for line in capsys.readouterr().err.splitlines() if line.startswith("  reticent ")]
    assert len(printed) >= 2
    for line in printed:
        assert run(*shlex.split(line)[1:]) == 0, line


def test_messages_become_a_stream(folder, capsys):
    write_adt(folder / "adt", 1_500, seed=1)
    assert run("init", "adt/adt.hl7") == 2
    assert "--for stream" in capsys.readouterr().err
    assert run("init", "adt/adt.hl7", "--for", "stream", "-o", "p.yaml") == 0
    assert run("stream", "adt/adt.hl7", "-p", "p.yaml", "--store", "s.db", "--to", "out.ndjson") == 0
    assert (folder / "out.ndjson").read_bytes().count(b'"record"') == 1_500


def test_the_prior_counts_the_whole_file(folder):
    write_feed(folder / "feed.csv", 70_000, seed=1)
    assert run("init", "feed.csv", "--for", "stream", "-o", "p.yaml") == 0
    lines = (folder / "p.prior.csv").read_text().splitlines()
    assert lines[0].endswith(",value,count")
    persons = pc.read_csv(folder / "feed.csv")["patient_id"].unique()
    # One record of a person counts, with noise.
    assert abs(sum(float(line.rpartition(",")[2]) for line in lines[1:]) / len(persons) - 1) < 0.05


def test_a_stream_of_returning_persons_gets_a_kernel_and_a_prior_with_few_omissions(folder, capsys):
    write_feed(folder / "feed.csv", 12_000, seed=1)
    assert run("init", "feed.csv", "--for", "stream", "-o", "p.yaml") == 0
    assert Policy.load(folder / "p.yaml").prior.kernel.file == "p.kernel.csv"
    words = ("feed.csv", "-p", "p.yaml", "--store", "s.db", "--to", "out.ndjson", "--json")
    capsys.readouterr()
    assert run("stream", *words) == 0
    told = capsys.readouterr()
    assert "drifts" not in told.err
    assert json.loads(told.out.splitlines()[-1])["metrics"]["omission_rate"] < 0.1  # a fifth, when nothing could move


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("patient_id,diagnosis\n" + "".join(f"p{i},flu\n" for i in range(40)) + "q,cold\n", 3, "too few for a prior"),
        ("patient_id,town\n" + "".join(f"p{i},a{i % 3}\n" for i in range(40)), 3, "sensitive"),
    ],
)
def test_an_impossible_request_is_refused_and_nothing_is_written(folder, capsys, text, code, told):
    (folder / "data.csv").write_text(text)
    assert run("init", "data.csv", "--for", "stream", "-o", "p.yaml") == code
    assert told in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["data.csv"]


def test_an_existing_prior_is_not_overwritten(folder, capsys):
    write_feed(folder / "feed.csv", 3_000, seed=1)
    (folder / "p.prior.csv").write_text("mine")
    assert run("init", "feed.csv", "--for", "stream", "-o", "p.yaml") == 5
    assert "p.prior.csv already exists" in capsys.readouterr().err
    assert not (folder / "p.yaml").exists()


def test_a_policy_whose_section_cannot_work_is_not_sound(folder, capsys):
    (folder / "prior.csv").write_text("value,count\na,9\nb,1\n")
    (folder / "p.yaml").write_text(
        "version: 1\ncolumns: {age: quasi, ill: sensitive}\nprior: {file: prior.csv}\nstream: {l: 3}\n"
    )
    assert run("policy", "check", "p.yaml") == 2
    assert "needs the person" in capsys.readouterr().err


def alone(data, names):
    combinations = data.select(names).to_pylist()
    tally = Counter(tuple(row.values()) for row in combinations)
    return sum(count == 1 for count in tally.values()) / len(combinations)


def test_the_veil_gets_levels_and_a_prior_that_say_what_they_are(folder):
    write_hospital(folder / "data.csv", 2000, seed=1)
    assert run("init", "data.csv", "--for", "table", "--method", "veil", "-o", "p.yaml") == 0
    policy = Policy.load("p.yaml")
    assert policy.table.method == "veil"
    assert policy.columns["birth_date"].level > 0
    assert policy.columns["sex"].level == 0
    report = json.loads((folder / "p.prior.report.json").read_text())
    assert (report["source"], report["epsilon"]) == ("released", 1)
    assert run("anonymize", "data.csv", "-p", "p.yaml", "--store", "s.db", "-o", "out") == 0
    release = Release.from_dir(folder / "out")
    assert alone(release.tables["data"], policy.quasi) <= 0.02
    assert "computed from the released persons" in " ".join(release.guarantee.not_covered)


def test_few_persons_get_an_l_that_their_noisy_counts_carry(folder, capsys):
    write_hospital(folder / "data.csv", 1000, seed=1)
    assert run("init", "data.csv", "--for", "evolving", "-o", "p.yaml") == 0
    policy = Policy.load("p.yaml")
    values = len({line.rpartition(",")[0] for line in (folder / "p.prior.csv").read_text().splitlines()[1:]})
    least = 2  # whatever the noise leaves
    assert policy.l_of("evolving") <= max(least, values // 3)
    assert f"enough for l = {policy.l_of('evolving')}" in capsys.readouterr().err


def test_several_records_of_a_person_are_said_to_be_first_ones(folder):
    write_hospital(folder / "data.csv", 1000, seed=1)
    lines = (folder / "data.csv").read_text().splitlines()
    (folder / "data.csv").write_text("\n".join([*lines, *lines[1:50]]) + "\n")
    assert run("init", "data.csv", "--for", "table", "--method", "veil", "-o", "p.yaml") == 0
    assert Policy.load("p.yaml").persons.records == "first"


@pytest.mark.parametrize(("rows", "code", "told"), [(100, 3, "too few for a prior"), (600, 0, "")])
def test_too_few_persons_make_no_prior(folder, capsys, rows, code, told):
    write_hospital(folder / "data.csv", rows, seed=1)
    assert run("init", "data.csv", "--for", "series", "-o", "p.yaml") == code
    assert told in capsys.readouterr().err
    assert (folder / "p.yaml").exists() is (code == 0)


def test_a_method_that_the_kind_does_not_know_is_refused(folder, capsys):
    write_hospital(folder / "data.csv", 200, seed=1)
    assert run("init", "data.csv", "--for", "series", "--method", "veils", "-o", "p.yaml") == 2
    assert "veil" in capsys.readouterr().err


def test_a_veil_without_a_prior_is_not_sound(folder, capsys):
    text = "version: 1\nperson: id\ncolumns: {id: identifier, age: quasi, ill: sensitive}\n"
    for section in ("table: {method: veil}", "series: {method: veil}"):
        (folder / "p.yaml").write_text(text + section + "\n")
        assert run("policy", "check", "p.yaml") == 2
        assert "reticent prior" in capsys.readouterr().err


def test_returning_patients_are_settled_before_a_store_is_filled(folder, capsys):
    write_hospital(folder / "data.csv", 1000, seed=1)
    lines = (folder / "data.csv").read_text().splitlines()
    (folder / "data.csv").write_text("\n".join([*lines, *lines[1:50]]) + "\n")
    assert run("init", "data.csv", "--for", "evolving", "-o", "p.yaml") == 0
    assert Policy.load("p.yaml").persons.records == "first"
    assert run("evolve", "init", "s.db", "-p", "p.yaml") == run("evolve", "insert", "s.db", "data.csv") == 0
    assert run("init", "data.csv", "--for", "series", "-o", "q.yaml") == 3
    assert "49 records repeat a value" in capsys.readouterr().err
    assert not (folder / "q.yaml").exists()


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_unsure_guesses_are_asked_on_a_terminal_only(folder, monkeypatch):
    (folder / "data.csv").write_text("colour,age\n" + "".join(f"c{i % 3},{20 + i % 30}\n" for i in range(60)))
    monkeypatch.setattr("sys.stdin", Terminal("nonsense\ni\n"))
    monkeypatch.setattr("sys.stderr", Terminal())
    assert run("init", "data.csv", "-o", "asked.yaml") == 0
    assert run("init", "data.csv", "--yes", "-o", "yes.yaml") == 0
    assert Policy.load("asked.yaml").identifiers == ("colour",)
    assert Policy.load("yes.yaml").quasi == ("colour", "age")


@pytest.mark.parametrize("make", [encounters, admissions])
def test_a_wide_table_is_released_by_its_first_policy(folder, capsys, make):
    table = make(1500)
    pc.write_csv(table, folder / "wide.csv")
    assert run("init", "wide.csv", "-o", "p.yaml") == 0
    assert run("anonymize", "wide.csv", "-p", "p.yaml", "-o", "out", "--json") == 0
    out, err = capsys.readouterr()
    summary = json.loads(out.splitlines()[-1])
    data = Release.from_dir(folder / "out").tables["data"]
    single = [name for name in data.column_names if len(data[name].unique()) == 1 < len(table[name].unique())]
    assert len(single) <= data.num_columns / 4, single
    assert summary["suppressed"] <= 0.02 * table.num_rows
    assert "of the released records" in err
    assert "Unchanged" in err
    assert run("verify", "out", "-p", "p.yaml", "--original", "wide.csv") == 0


def test_a_veil_over_few_values_offers_few_of_them():
    assert [possible_l(10_000, values) for values in (2, 5, 15, 29, 30, 500)] == [2, 2, 5, 9, 10, 10]
    assert possible_l(400, 500) == 5


ODD = {
    "german": ("Pat. Nr.;Geburtsdatum;Geschlecht;Gewicht;Hauptdiagnose", "{i};{d:02}.{m:02}.{y};{s};{w},{i1};{c}"),
    "french": ("N° patient;Date de naissance;Sexe;IMC;Diagnostic", "{i};{d:02}/{m:02}/{y};{s};{b},{i1};{u}"),
    "mixed codes": ("mrn,age,sex,icd", "{i},{a},{s},{v}"),
    "yes or no": ("patient_id,age,insured,hiv", "{i},{a},{s},{n}"),
    "codes alone": ("patient_id,diagnosis", "{i},{c}"),
}
CODES = ["E11.9", "I10", "J45.0", "F32.1", "K21.0", "N39.0", "M54.5", "C50.9", "O80", "A09"]


def odd_table(name, rows):
    head, line = ODD[name]
    lines = [head]
    for i in range(rows):
        code = CODES[i * i % 97 % 10]
        lines.append(
            line.format(
                i=10_000 + i,
                d=i % 28 + 1,
                m=i % 12 + 1,
                y=1930 + i * 7 % 90,
                s="mw"[i % 2],
                w=50 + i * 3 % 50,
                a=i * 7 % 90,
                b=18 + i % 20,
                i1=i % 10,
                c=code,
                u=code.replace(".", ""),
                n="yn"[i % 3 == 0],
                v=code if i % 2 else code.replace(".", ""),
            )
        )
    return "\n".join(lines).encode("latin-1")


@pytest.mark.parametrize("name", [name for name in ODD if name != "codes alone"])
@pytest.mark.parametrize("kind", ["table", "evolving", "stream"])
def test_tables_as_hospitals_have_them(folder, capsys, name, kind):
    (folder / "data.csv").write_bytes(odd_table(name, 1200))
    assert run("init", "data.csv", "--for", kind, "-o", "policy.yaml") == 0
    told = capsys.readouterr().err
    policy = Policy.load("policy.yaml")
    assert policy.person == ODD[name][0].replace(";", ",").split(",")[0]
    assert not policy.plain
    for line in [line.strip() for line in told.splitlines() if line.startswith("  reticent ")]:
        assert run(*shlex.split(line)[1:]) == 0, line
    assert "set aside" not in capsys.readouterr().err


def test_what_no_kind_can_do_without_can_be_named(folder, capsys):
    (folder / "data.csv").write_text("who,town,thing\n" + "".join(f"{i},t{i % 3},{i * i % 7}\n" for i in range(900)))
    assert run("init", "data.csv", "--for", "evolving", "-o", "p.yaml") == 3
    assert "--sensitive COLUMN" in capsys.readouterr().err
    assert run("init", "data.csv", "--for", "evolving", "--sensitive", "thing", "-o", "p.yaml") == 3
    assert "--person COLUMN" in capsys.readouterr().err
    assert run("init", "data.csv", "--for", "evolving", "--sensitive", "things", "-o", "p.yaml") == 2
    assert "did you mean 'thing'" in capsys.readouterr().err
    named = ("--sensitive", "thing", "--person", "who")
    assert run("init", "data.csv", "--for", "evolving", *named, "-o", "p.yaml") == 0
    policy = Policy.load("p.yaml")
    assert (policy.person, policy.sensitive) == ("who", ("thing",))


def test_where_nobody_knows_a_column_the_veil_is_named(folder, capsys):
    (folder / "data.csv").write_bytes(odd_table("codes alone", 1200))
    assert run("init", "data.csv", "-o", "p.yaml") == 3
    assert "--method veil" in capsys.readouterr().err
    assert run("init", "data.csv", "--method", "veil", "-o", "p.yaml") == 0
    assert run("anonymize", "data.csv", "-p", "p.yaml", "--store", "s.db", "-o", "out") == 0
    (folder / "q.yaml").write_text("version: 1\ncolumns: {d: sensitive}\nprivacy: {l: 2}\ntable: {method: auto}\n")
    assert run("policy", "check", "q.yaml") == 2


@pytest.mark.parametrize("kind", ["evolving", "stream"])
def test_columns_with_types_work_as_text_does(folder, capsys, kind):
    rows = range(1200)
    columns = {
        "patient_id": pa.array(rows),
        "born": pa.array([at * 23 % 30_000 for at in rows], pa.int32()).cast(pa.date32()),
        "sex": pa.array(["fm"[at % 2] for at in rows]).dictionary_encode(),
        "insured": pa.array([at % 3 > 0 for at in rows]),
        "diagnosis": pa.array([CODES[at * at % 97 % 10] for at in rows]).dictionary_encode(),
    }
    pq.write_table(pa.table(columns), folder / "data.parquet")
    assert run("init", "data.parquet", "--for", kind, "-o", "policy.yaml") == 0
    assert Policy.load("policy.yaml").person == "patient_id"
    for line in [line.strip() for line in capsys.readouterr().err.splitlines() if line.startswith("  reticent ")]:
        assert run(*shlex.split(line)[1:]) == 0, line


def coded(folder, n=1500):
    """Codes of illnesses and their names, in columns whose names no list contains."""
    rng = np.random.default_rng(3)
    names = {"E11.9": "Zucker", "I10": "Druck", "J44.1": "Atem", "F32.9": "Gemuet", "N39.0": "Blase", "K80.2": "Galle"}
    codes = rng.choice(list(names), n)
    table = pa.table(
        {
            "pid": [f"p{i}" for i in range(n)],
            "Alter": rng.integers(18, 95, n),
            "sex": rng.choice(["m", "w"], n),
            "icd": codes,
            "Bezeichnung": [names[code] for code in codes],
            "Punkte": [list(names).index(code) * 5 + int(rng.integers(0, 3)) for code in codes],
            "Laune": rng.choice(["gut", "schlecht"], n),
        }
    )
    pc.write_csv(table, folder / "coded.csv")


def test_a_column_that_discloses_the_sensitive_value_is_not_released(folder, capsys):
    coded(folder)
    assert run("init", "coded.csv", "--for", "stream", "-o", "p.yaml", "--json") == 0
    columns = json.loads(capsys.readouterr().out.strip().splitlines()[-1])["columns"]
    assert (
        columns["Bezeichnung"]
        == columns["Punkte"]
        == {
            "role": "identifier",
            "why": "discloses 'icd', which is protected: not released",
        }
    )
    assert columns["Laune"]["role"] == "quasi"
    assert run("stream", "coded.csv", "-p", "p.yaml", "--store", "s.db", "--to", "out.ndjson") == 0
    for record in map(json.loads, (folder / "out.ndjson").read_text().splitlines()):
        assert set(record["quasi"]) | set(record["plain"]) == {"Alter", "sex", "Laune"}
    assert run("init", "coded.csv", "--sensitive", "Bezeichnung", "--for", "stream", "-o", "q.yaml") == 0
    assert Policy.load(folder / "q.yaml").columns["Punkte"].role == "identifier", (
        "also where the column was named by hand"
    )


def test_reasons_are_the_right_ones(folder, capsys):
    rng = np.random.default_rng(1)
    numbers = [f"{rng.integers(100, 999)} {rng.integers(100, 999)} {i:04}" for i in range(400)]
    ages = ["unknown" if i % 40 == 0 else str(rng.integers(0, 95)) for i in range(400)]
    ills = rng.choice(["E11.9", "I10", "J44.1", "F32.9"], 400)
    pc.write_csv(pa.table({"NHS_NUMBER": numbers[:380] + numbers[:20], "age": ages, "icd": ills}), folder / "t.csv")
    assert run("init", "t.csv", "-o", "p.yaml") == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().err.splitlines() if line.startswith("  ")}
    assert "20 records repeat a value" in lines["NHS_NUMBER"]
    assert "telephone" not in lines["NHS_NUMBER"]
    assert "values are not numbers; correct them, or list them under missing" in lines["age"]


def test_a_generalized_column_is_refined_again_when_there_is_room(folder, capsys):
    """The age must not stay in two bands because of a column that is dropped later."""
    rng, n = np.random.default_rng(5), 3000
    table = pa.table(
        {
            "DNI": [f"{i:08}T" for i in range(n)],
            "Sexo": rng.choice(["Hombre", "Mujer"], n),
            "Edad": rng.integers(0, 100, n),
            "Comunidad": rng.choice(["Madrid", "Galicia", "Aragon", "Murcia", "Asturias"], n),
            "Estado civil": rng.choice(["Soltero", "Casado", "Viudo"], n),
            "Tipo de ingreso": rng.choice(["Urgencias", "Programado"], n),
            "Estancia": np.minimum(rng.geometric(0.2, n), 40),
            "Tipo de alta": rng.choice(["Alta", "Traslado", "Otro"], n),
            "dx": rng.choice(["E11.9", "I10", "J44.1", "F32.9", "N39.0", "K80.2", "C34.1", "I50.0", "M54.5"], n),
        }
    )
    pc.write_csv(table, folder / "t.csv")
    assert run("init", "t.csv", "--for", "series", "-o", "p.yaml") == 0
    assert "make a kernel before the first publication" in capsys.readouterr().err
    policy = Policy.load(folder / "p.yaml")
    assert (policy.columns["Edad"].level or 0) <= 2
