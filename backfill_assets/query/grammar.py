"""Spark's grammar, as far as sqlglot has it otherwise."""

from collections.abc import Callable, Collection
from typing import Any, ClassVar, Final

from sqlglot import TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.parsers.spark import SparkParser

__all__ = ["SparkGrammar"]


def _as_written(name: str) -> Callable[[list[exp.Expr], Dialect], exp.Expr]:
    """Builds the call of a function whose second argument is a pattern, with the pattern as it is written."""

    def build(arguments: list[exp.Expr], dialect: Dialect) -> exp.Expr:
        node: exp.Expr = SparkParser.FUNCTIONS[name](arguments, dialect)
        if len(arguments) > 1 and isinstance(arguments[1], exp.Literal):
            node.set("format", arguments[1].copy())
        return node

    return build


_WITH_UNIT: Final = 2
"""How many arguments the call of a function has that cuts a time to a unit."""


def _truncated(name: str, unit: int) -> Callable[[list[exp.Expr]], exp.Expr]:
    """Builds the call of a function that cuts a time to a unit, which may be any expression."""

    def build(arguments: list[exp.Expr]) -> exp.Expr:
        if len(arguments) == _WITH_UNIT and not isinstance(arguments[unit], exp.Literal):
            return exp.Anonymous(this=name.lower(), expressions=arguments)
        node: exp.Expr = SparkParser.FUNCTIONS[name](arguments)
        return node

    return build


class _Percentile(exp.Quantile):
    """`percentile(value, percentage, frequency)`."""

    arg_types: ClassVar[dict[str, bool]] = {**exp.Quantile.arg_types, "frequency": False}


_PATTERNED: Final = ("DATE_FORMAT", "FROM_UNIXTIME", "TO_DATE", "TO_TIMESTAMP", "UNIX_TIMESTAMP")


class SparkGrammar(SparkParser):
    """Spark's grammar with what sqlglot leaves out of it. A plus before a value is a function to Spark: it makes numbers of
    texts, and `ORDER BY +1` names no column. And `date_format(at, 'y')` is not `date_format(at, 'yyyy')` in the year 905."""

    COLON_IS_VARIANT_EXTRACT = True
    FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        **SparkParser.FUNCTIONS,
        **{name: _as_written(name) for name in _PATTERNED},
        "DATE_TRUNC": _truncated("DATE_TRUNC", 0),
        "TRUNC": _truncated("TRUNC", 1),
        "TIMEDIFF": SparkParser.FUNCTIONS["TIMESTAMPDIFF"],
    }
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[[Any], exp.Expr | None]]] = {
        **SparkParser.FUNCTION_PARSERS,
        "PERCENTILE": lambda self: self._parse_distinct_arg_function(_Percentile),
    }
    UNARY_PARSERS: ClassVar[dict[TokenType, Callable[[Any], Any]]] = {
        **SparkParser.UNARY_PARSERS,
        TokenType.PLUS: lambda self: exp.Anonymous(this="positive", expressions=[self._parse_unary()]),
    }

    def _parse_term(self, parse_mod: bool = True) -> exp.Expr | None:
        # `a >>> 1`: two of its signs have been read as `>>`. What follows the third is marked, as `a >> 1` is another value.
        if self._index > 1 and all(
            each.token_type == TokenType.GT for each in self._tokens[self._index - 2 : self._index + 1]
        ):
            self._advance()
            return exp.Anonymous(this="shiftrightunsigned", expressions=[super()._parse_term(parse_mod)])
        return super()._parse_term(parse_mod)

    def _parse_table_alias(self, alias_tokens: Collection[TokenType] | None = None) -> exp.TableAlias | None:
        # How often a name of WITH is computed at most stands behind the name; it changes no rows.
        alias = super()._parse_table_alias(alias_tokens)
        if alias_tokens is self.ID_VAR_TOKENS and self._match_text_seq("MAX", "RECURSION", "LEVEL"):
            self._parse_number()
        return alias

    def _parse_pivot_aggregation(self) -> exp.Expr | None:
        # Not a call alone: `PIVOT (sum(x) + 1 FOR …)`.
        return self._parse_alias(self._parse_bitwise())
