from __future__ import annotations

from reticent.policy.icd10 import BLOCKS, CHAPTERS


def test_all_chapters_and_blocks_are_there():
    assert len(CHAPTERS) == 22
    assert len({roman for _, _, roman in CHAPTERS}) == 22
    assert len(BLOCKS) > 250


def test_ranges_are_sorted_and_disjoint():
    for ranges in ([(first, last) for first, last, _ in CHAPTERS], BLOCKS):
        flat = [code for pair in ranges for code in pair]
        assert flat == sorted(flat)
        assert all(ranges[i][1] < ranges[i + 1][0] for i in range(len(ranges) - 1))


def test_each_block_lies_in_one_chapter():
    for first, last in BLOCKS:
        assert sum(low <= first and last <= high for low, high, _ in CHAPTERS) == 1


def test_known_codes_find_their_block():
    def block(code: str) -> tuple[str, str]:
        return next((low, high) for low, high in BLOCKS if low <= code[:3] <= high)

    assert block("I21.9") == ("I20", "I25")
    assert block("C50.1") == ("C50", "C50")
    assert block("Y05") == ("X85", "Y09")
    assert block("U07.1") == ("U00", "U49")
