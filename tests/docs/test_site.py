"""The site shows every page that is written, once."""

from pathlib import Path

import pytest
import yaml

TOP = Path(__file__).parent.parent.parent
DOCS = TOP / "docs"


def pages(nav):
    """Every file that a navigation names."""
    for entry in nav:
        for target in entry.values():
            yield from pages(target) if isinstance(target, list) else [target]


def test_every_page_stands_in_the_navigation_once():
    nav = yaml.safe_load((TOP / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert sorted(pages(nav)) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def test_no_setting_of_the_site_is_written_twice():
    # YAML takes the last of two equal keys and says nothing.
    lines = (TOP / "mkdocs.yml").read_text(encoding="utf-8").splitlines()
    keys = [line.partition(":")[0] for line in lines if line[:1].isalpha()]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_every_room_is_named(page):
    text = (TOP / page).read_text(encoding="utf-8")
    rooms = [path.name for path in (TOP / "src" / "reticent").iterdir() if (path / "__init__.py").is_file()]
    assert len(rooms) > 10
    assert not [room for room in rooms if f"  {room}/ " not in text]
