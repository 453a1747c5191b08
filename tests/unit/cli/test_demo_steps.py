"""The demo shows the commands, and of what they say no more than fits."""

from reticent.cli import output
from reticent.cli.demo import _run


def test_a_step_shows_its_command_and_some_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _run("datasets", "hospital", "-n", 50, "--seed", 1, "-o", "h.csv")
    assert capsys.readouterr().err.splitlines() == ["$ reticent datasets hospital -n 50 --seed 1 -o h.csv"]
    _run("policy", "check", "h.policy.yaml", first=2, last=1)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert max(map(len, lines)) <= 118


def test_a_slow_machine_shows_outcomes_and_no_progress(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _run("datasets", "hospital", "-n", 1000, "--seed", 1, "-o", "h.csv")
    monkeypatch.setattr(output.show_progress.__wrapped__, "__kwdefaults__", {"interval": 0.001})
    _run("anonymize", "h.csv", "-p", "h.policy.yaml", "-o", "r", first=1)
    assert capsys.readouterr().err.splitlines()[-1].startswith("1,000 of 1,000 records released")
