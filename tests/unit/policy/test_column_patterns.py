"""The reasons in `column_patterns.tsv` are those that the code names, so that a changed text cannot lose an identifier."""

from reticent.policy import column_patterns


def test_every_named_reason_is_in_the_file():
    reasons = {value for name, value in vars(column_patterns).items() if name.isupper() and isinstance(value, str)}
    assert reasons <= set(column_patterns.IDENTIFYING_NAMES.values())
    assert len(reasons) == 17
