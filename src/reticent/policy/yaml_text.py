"""YAML of policies: every entry has a line number, no key occurs twice, and aliases are refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from reticent.errors import PolicyError

Place = tuple[Any, ...]


def parse_yaml(text: str, name: str) -> tuple[Any, dict[Place, int]]:
    """Parse YAML or JSON; return the plain values and the line number of every entry.

    Raises:
        PolicyError: the text is not YAML, or has a duplicate key or an alias; the message names the line.
    """
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        lines = dict(_lines(node, (), name))
        return None if node is None else loader.construct_document(node), lines
    except _AliasError as error:
        raise PolicyError(f"{name}, line {error}: aliases are not allowed.", hint="Write the value in full.") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise PolicyError(f"{name}, line {line}: invalid YAML ({error.problem}).") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise PolicyError(f"{name}: invalid YAML ({type(error).__name__}).", hint="Write plain YAML.") from None


class _AliasError(Exception):
    """An alias in the text; its argument is the line number."""


class _Loader(yaml.SafeLoader):
    """Refuses aliases: a few nested aliases expand to gigabytes, and policies do not need aliases."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            alias = self.peek_event()  # type: ignore[no-untyped-call]
            raise _AliasError(alias.start_mark.line + 1)
        return super().compose_node(parent, index)


def _lines(node: Any, at: Place, name: str) -> Iterator[tuple[Place, int]]:
    if node is None:
        return
    yield at, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        keys: set[Any] = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.value in keys:
                raise PolicyError(
                    f"{name}, line {line}: '{key.value}' occurs twice in the same section.", hint="Keep one of them."
                )
            keys.add(key.value)
            yield from _lines(value, (*at, key.value), name)
            yield (*at, key.value), line
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield from _lines(value, (*at, number), name)


class _PlainDumper(yaml.SafeDumper):
    """Writes repeated values in full, because the parser refuses aliases."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - signature of the base class
        return True


def dump_yaml(data: dict[str, Any]) -> str:
    """Write plain values as YAML, in their order."""
    return yaml.dump(data, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True)
