import pytest

from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.policy.bundle import Bundle, named_files

COLUMNS = {
    "id": "identifier",
    "seen": {"role": "plain", "transform": {"shift": 5, "key": "study.key"}},
    "age": {"role": "quasi", "hierarchy": {"file": "age.csv"}},
    "ill": {"role": "sensitive", "updates": {"file": "updates.csv"}},
}
PRIOR = {"prior": {"file": "prior.csv", "kernel": {"file": "kernel.csv"}}}
NAMES = {"study.key", "age.csv", "updates.csv", "prior.csv", "kernel.csv"}


def settings(**more):
    return {"version": 1, "person": "id", "columns": COLUMNS, **PRIOR, **more}


def test_every_file_of_a_policy_is_in_the_one_list():
    assert {named.name for named in named_files(Policy.from_dict(settings()))} == NAMES


def test_a_key_is_carried_but_is_no_part_of_the_meaning(tmp_path):
    for name in NAMES:
        (tmp_path / name).write_text("value,count\na,1\n")
    policy = Policy.from_dict(settings(), base=tmp_path)
    before = policy.hash
    (tmp_path / "study.key").write_text("another")
    assert Policy.from_dict(settings(), base=tmp_path).hash == before
    bundle = Bundle.from_bytes(Bundle.pack(policy).to_bytes())
    assert set(bundle.files) == NAMES
    opened = bundle.unpack(tmp_path / "elsewhere")
    assert opened.hash == before
    assert all((tmp_path / "elsewhere" / name).stat().st_mode & 0o077 == 0 for name in NAMES)


@pytest.mark.parametrize("absent", sorted(NAMES))
def test_a_bundle_that_lacks_a_file_is_refused(tmp_path, absent):
    with pytest.raises(PolicyError, match="not sent"):
        Bundle(settings(), dict.fromkeys(NAMES - {absent}, b"")).unpack(tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", ["/etc/hostname", "../prior.csv", "a/../../b", "..", "a\\b", "", "a\0b"])
def test_no_file_is_laid_or_taken_outside_the_folder(tmp_path, name):
    with pytest.raises(PolicyError, match="outside"):
        Bundle(settings(), dict.fromkeys(NAMES, b"") | {name: b"x"}).unpack(tmp_path / "x")
    with pytest.raises(PolicyError):
        Bundle.pack(Policy.from_dict(settings(prior={"file": name}), base=tmp_path))


@pytest.mark.parametrize("kind", ["evolving", "series", "stream"])
def test_a_prior_in_a_section_is_refused(kind):
    with pytest.raises(PolicyError, match=f"{kind}: 'prior'"):
        Policy.from_dict(settings(**{kind: {"prior": {"file": "prior.csv"}}}))
