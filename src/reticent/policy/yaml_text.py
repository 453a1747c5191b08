"""YAML as policies use it: every place has a line, a word stands once, and nothing is written by reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from reticent.errors import PolicyError

Place = tuple[Any, ...]


def parse_yaml(text: str, name: str) -> tuple[Any, dict[Place, int]]:
    """The plain values of a text, and the line of every place in it; JSON is YAML too.

    Raises:
        PolicyError: not YAML, a word written twice, or an alias; the line is named.
    """
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        lines = dict(_lines(node, (), name))
        return None if node is None else loader.construct_document(node), lines
    except _AliasError as error:
        raise PolicyError(f"{name}, line {error}: a policy has no aliases.", hint="Write the value out.") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise PolicyError(f"{name}, line {line}: not readable as YAML ({error.problem}).") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise PolicyError(f"{name}: not readable ({type(error).__name__}).", hint="Write plain YAML.") from None


class _AliasError(Exception):
    """The line of an alias."""


class _Loader(yaml.SafeLoader):
    """Reads no aliases: a few of aliases unfold to gigabytes, and a policy has no use for them."""

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
        words: set[Any] = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.value in words:
                raise PolicyError(
                    f"{name}, line {line}: '{key.value}' is written twice in the same place.", hint="Keep one of them."
                )
            words.add(key.value)
            yield from _lines(value, (*at, key.value), name)
            yield (*at, key.value), line
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield from _lines(value, (*at, number), name)


class _PlainDumper(yaml.SafeDumper):
    """Writes repeated values out: the parser refuses aliases."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the library's words
        return True


def dump_yaml(data: dict[str, Any]) -> str:
    """Plain values as YAML, in their order."""
    return yaml.dump(data, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True)
