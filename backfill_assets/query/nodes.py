"""Finds nodes in the tree of a query.

Reading a query means looking for nodes a hundred times, and sqlglot's own `find_all` passes each one through five generators.
"""

from typing import TypeVar

from sqlglot import exp

__all__ = ["all_of", "collated"]

_Node = TypeVar("_Node", bound=exp.Expr)


def all_of(tree: exp.Expr, *types: type[_Node]) -> list[_Node]:
    """The nodes of these types in the tree, itself among them: those further out first, and otherwise as in the text."""
    queue = [tree]
    for node in queue:
        for value in node.args.values():
            if isinstance(value, list):
                queue += [each for each in value if isinstance(each, exp.Expr)]
            elif isinstance(value, exp.Expr):
                queue.append(value)
    return [node for node in queue if isinstance(node, types)]


def collated(tree: exp.Expr) -> list[exp.Expr]:
    """The texts in the tree that have a collation by which different ones may be equal: any but UTF8_BINARY, which compares
    bytes."""
    types = [node.args["collate"] for node in all_of(tree, exp.DataType) if node.args.get("collate")]
    named = [*types, *(node.expression for node in all_of(tree, exp.Collate))]
    others = [each for each in named if each.name.upper() != "UTF8_BINARY"]
    return [each.find_ancestor(exp.Cast, exp.Collate) or each for each in others]
