"""Splits a query's text into its row-wise parts: one SELECT over one upstream each, joined by UNION ALL.

sqlglot parses the text; the text itself is kept and cut by token positions, because sqlglot's own rendering changes
some Spark functions. Every clause that is not row-wise is refused; expressions are not checked here.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError

from backfill_assets.query.grammar import SparkGrammar
from backfill_assets.query.interpreted import check_interpreted
from backfill_assets.query.nodes import all_of
from backfill_assets.query.refusals import nearest, place, refusal

__all__ = [
    "FAULTS",
    "Part",
    "items_of",
    "parse",
    "parse_parts",
    "tokenize",
    "upstream_named",
    "with_depth",
]

_CLAUSES: Final = {
    "with_": ("CTE", "WITH"),
    "joins": ("JOIN", "a join"),
    "laterals": ("JOIN", "LATERAL VIEW"),
    "group": ("GROUP_BY", "GROUP BY"),
    "having": ("HAVING", "HAVING"),
    "qualify": ("WINDOW", "QUALIFY"),
    "windows": ("WINDOW", "WINDOW"),
    "distinct": ("DISTINCT", "DISTINCT"),
    "order": ("ORDER_LIMIT", "ORDER BY"),
    "sort": ("ORDER_LIMIT", "SORT BY"),
    "cluster": ("ORDER_LIMIT", "CLUSTER BY"),
    "distribute": ("ORDER_LIMIT", "DISTRIBUTE BY"),
    "limit": ("ORDER_LIMIT", "LIMIT"),
    "offset": ("ORDER_LIMIT", "OFFSET"),
    "sample": ("NOT_DETERMINISTIC", "TABLESAMPLE"),
    "pivots": ("AGGREGATE", "PIVOT"),
    "by_name": ("UNSUPPORTED", "UNION ALL BY NAME"),
    "version": ("UNSUPPORTED", "a table version"),
}
_LACKS: Final = re.compile(r"Required keyword: '\w+' missing for <class .*>")
"""How sqlglot says that a clause lacks what belongs to it."""
_STATEMENTS: Final = (frozenset(Spark.Parser.STATEMENT_PARSERS) | Spark.Tokenizer.COMMANDS) - {TokenType.SEMICOLON}
FAULTS: Final = (AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What sqlglot raises, besides its own errors, for a text that is no SQL."""
_LIMITS: Final = frozenset({TokenType.LIMIT, TokenType.OFFSET})
_BEFORE_EXPRESSIONS: Final = frozenset({
    *(TokenType.SELECT, TokenType.DISTINCT, TokenType.COMMA, TokenType.DOT, TokenType.L_PAREN, TokenType.WHERE),
    *(
        TokenType.ORDER_BY,
        TokenType.GROUP_BY,
        TokenType.PARTITION_BY,
        TokenType.HAVING,
        TokenType.QUALIFY,
        TokenType.ON,
    ),
    *(TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.MOD, TokenType.DIV, TokenType.DPIPE),
    *(TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE, TokenType.NULLSAFE_EQ),
    *(TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.BETWEEN, TokenType.CASE, TokenType.WHEN, TokenType.THEN),
    *(TokenType.ELSE, TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE, TokenType.ALIAS, TokenType.L_BRACKET),
})
"""After one of these an expression or a name begins."""
_NAMES_IN_QUERIES: Final = {
    *(TokenType.GLOB, TokenType.NOTNULL, TokenType.RETURNING, TokenType.SERDE_PROPERTIES, TokenType.XOR, *_STATEMENTS),
} - {TokenType.DESC, TokenType.FETCH, TokenType.PIVOT, TokenType.SET, TokenType.SHOW, TokenType.UNPIVOT}
"""Words of statements, and of other dialects: within a query of Spark they are names."""
_QUANTIFIED: Final = frozenset({TokenType.SELECT, TokenType.GROUP_BY, TokenType.ORDER_BY})
_AFTER_NAMES: Final = frozenset({TokenType.COMMA, TokenType.DOT, TokenType.ALIAS})
"""An ALL between SELECT, or BY, and one of these is a name."""
_OPENS: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSES: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})


@dataclass(frozen=True)
class Part:
    """One SELECT of the query, with the tokens between its keywords; empty for a missing clause."""

    select: exp.Select
    table: exp.Table
    projection: tuple[Token, ...]
    condition: tuple[Token, ...]
    groups: tuple[Token, ...] = ()

    @property
    def qualifier(self) -> str:
        """The name that qualifies columns: the alias, otherwise the upstream's name as in the query."""
        return str(self.table.alias or self.table.name)

    @property
    def tokens(self) -> tuple[Token, ...]:
        return (*self.projection, *self.condition, *self.groups)

    def projection_items(self) -> list[tuple[Token, ...]]:
        """The tokens of each expression of the SELECT list."""
        return items_of(self.projection)

    def group_items(self) -> list[tuple[Token, ...]]:
        """The tokens of each expression of GROUP BY."""
        return items_of(self.groups)


def items_of(tokens: Sequence[Token]) -> list[tuple[Token, ...]]:
    """The items of a list, which commas divide."""
    items: list[list[Token]] = [[]]
    for depth, token in with_depth(tokens):
        if depth == 0 and token.token_type == TokenType.COMMA:
            items.append([])
        else:
            items[-1].append(token)
    return [tuple(item) for item in items]


def tokenize(query: str) -> list[Token]:
    """The tokens of the query without a closing semicolon, and without what does not change its rows: hints, which would be
    for whole tables, where a refresh may compute the query over changed rows alone, and LIMIT ALL.

    Errors: `QueryError`; `EnvironmentSetupError` where sqlglot cannot be extended.
    """
    check_interpreted()
    try:
        tokens = Spark().tokenize(query)
    except SqlglotError as error:
        if isinstance(error.__cause__, IndexError):
            raise refusal("SYNTAX", "the query ends within a comment or a hint", hint="close it with */") from None
        raise refusal("SYNTAX", f"the query cannot be read: {error.__cause__ or error}") from None
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    tokens = [token for token in tokens if token.token_type != TokenType.HINT]
    if not tokens:
        raise refusal("NOT_A_QUERY", "the query is empty")
    for token in tokens:
        if any(comment.endswith("\\") for comment in token.comments):
            raise refusal(
                "SYNTAX",
                f"a comment beside {token.text!r}{place(token)} ends in a backslash: Spark goes on with it in the next line",
                hint="end the comment with another character",
            )
    if any(token.token_type == TokenType.SEMICOLON for token in tokens):
        raise refusal("NOT_A_QUERY", "the query has several statements")
    _name_columns(tokens)
    return _that_count(tokens)


def _name_columns(tokens: Sequence[Token]) -> None:
    """Make names of words that sqlglot reads as clauses: the function window(), columns called limit, offset or all, and
    whatever comes after a dot."""
    for before, word, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if before.token_type in _QUANTIFIED and word.token_type == TokenType.ALL and after.token_type in _AFTER_NAMES:
            word.token_type = TokenType.VAR
    for token, following in pairwise(tokens):
        if following.token_type in _NAMES_IN_QUERIES or (
            token.token_type == TokenType.ALIAS and following.token_type in {TokenType.NOT, TokenType.SELECT}
        ):
            following.token_type = TokenType.VAR
        is_quoted = following.token_type == TokenType.IDENTIFIER
        if token.token_type == TokenType.DOT and following.text.isidentifier() and not is_quoted:
            following.token_type = TokenType.VAR
        if token.token_type == TokenType.WINDOW and following.token_type == TokenType.L_PAREN:
            token.token_type = TokenType.VAR
        if token.token_type in _BEFORE_EXPRESSIONS and following.token_type in _LIMITS:
            following.token_type = TokenType.VAR


def _that_count(tokens: Sequence[Token]) -> list[Token]:
    """The tokens without LIMIT ALL."""
    of_all = {
        at
        for at, (limit, word) in enumerate(pairwise(tokens))
        if (limit.token_type, word.token_type) == (TokenType.LIMIT, TokenType.ALL)
    }
    return [token for at, token in enumerate(tokens) if at not in of_all and at - 1 not in of_all]


def parse_parts(query: str, tokens: list[Token], *, clauses: tuple[str, ...] = ()) -> tuple[Part, ...]:
    """The parts of the query in order; `clauses` (sqlglot's names) are allowed although they are not row-wise.

    Errors: `QueryError` for a syntax error and for other clauses that are not row-wise.
    """
    root = parse(query, tokens)
    selects = list(_selects(root))
    for select in selects:
        _check_clauses(select, allowed=("expressions", "from_", "where", *clauses))
        _check_inner_queries(select)
    starts = [index for index, token in enumerate(tokens) if token.token_type == TokenType.SELECT]
    if len(starts) != len(selects):
        raise refusal("FORM", "the query's parts cannot be told apart", hint="begin each part with SELECT")
    return tuple(_part(select, tokens, start) for select, start in zip(selects, starts, strict=True))


def parse(query: str, tokens: list[Token]) -> exp.Expr:
    """The query as sqlglot reads it. Errors: `QueryError` for a syntax error and for statements that are not a query."""
    if tokens[0].token_type in _STATEMENTS:
        raise refusal("NOT_A_QUERY", f"the query is a {tokens[0].text.upper()} statement")
    try:
        roots = SparkGrammar(dialect=Spark()).parse(tokens, query)
    except ParseError as error:
        where = error.errors[0]
        raise refusal(
            "SYNTAX",
            f"the query has a syntax error in line {where['line']}, column {_start_column(where)}, "
            f"at {where['highlight']!r}: {_LACKS.sub('something is missing after it', where['description'])}",
            hint="" if _LACKS.match(where["description"]) else _if_a_name(where["highlight"]),
        ) from None
    except (SqlglotError, *FAULTS) as error:
        raise refusal("SYNTAX", f"the query cannot be read: {error}") from None
    root = roots[0] if roots else None
    if not isinstance(root, exp.Query):
        raise refusal("NOT_A_QUERY", f"the query begins with {tokens[0].text.upper()}, it is not a SELECT")
    if any(not any(each.args.values()) for each in all_of(root, exp.Group)):
        raise refusal("SYNTAX", "GROUP BY names nothing to group by")
    for each in all_of(root, exp.DataType):
        # sqlglot takes the name of a collation for that of a column.
        if isinstance(each.args.get("collate"), exp.Column):
            each.set("collate", exp.var(each.args["collate"].name))
    return root


def upstream_named(table: exp.Table, upstreams: Collection[str]) -> str:
    """The upstream that a table in FROM names; Spark ignores case. Errors: `QueryError`."""
    written = ".".join(each.name for each in table.parts)
    same = [name for name in upstreams if name.lower() == written.lower()]
    if written not in upstreams and len(same) != 1:
        raise refusal(
            "UNKNOWN_UPSTREAM",
            f"the query reads from {written!r}{place(table)}, which is not an upstream of the view",
            hint=nearest(written, list(upstreams)),
        )
    return written if written in upstreams else same[0]


def _if_a_name(word: str | None) -> str:
    """What to do where a syntax error is at a word that may be meant as a name; empty if it cannot be one."""
    return f"write Spark SQL; if {word} is a name, put it in backquotes" if word and word.isidentifier() else ""


def _start_column(where: "dict[str, Any]") -> int:
    """sqlglot names the column of the last character."""
    return int(where["col"]) - len(where["highlight"] or " ") + 1


def _selects(node: exp.Expr) -> Iterator[exp.Select]:
    """The SELECTs under UNION ALL and parentheses, from left to right."""
    match node:
        case exp.Select():
            yield node
        case exp.Union():
            if node.args.get("distinct"):
                raise refusal("DISTINCT", "the query has UNION without ALL, which removes duplicates")
            _check_clauses(node, allowed=("this", "expression", "distinct"))
            yield from _selects(node.this)
            yield from _selects(node.expression)
        case exp.SetOperation():
            raise refusal("DISTINCT", f"the query has {type(node).__name__.upper()}, which compares whole tables")
        case exp.Subquery():
            _check_clauses(node, allowed=("this",))
            yield from _selects(node.this)
        case _:
            raise refusal("NOT_A_QUERY", "a part of the query is not a SELECT")


def _check_clauses(node: exp.Expr, *, allowed: tuple[str, ...]) -> None:
    # In the order of _CLAUSES, so that a query with several of them is always refused for the same one.
    present = [name for name, value in node.args.items() if value and name not in allowed]
    for name, (reason, clause) in _CLAUSES.items():
        if name in present:
            raise refusal(reason, f"the query has {clause}")
    if present:
        raise refusal(
            "UNSUPPORTED", f"the query has a clause that cannot be maintained: {present[0].strip('_').upper()}"
        )


def _check_inner_queries(select: exp.Select) -> None:
    inner = [node for node in all_of(select, exp.Query, exp.Values) if node is not select]
    if any(isinstance(node, exp.Subquery) and node.find(exp.Join) for node in inner):
        raise refusal("JOIN", "the query has a join")
    if inner:
        raise refusal("SUBQUERY", "the query has a subquery")


def _part(select: exp.Select, tokens: list[Token], start: int) -> Part:
    table = _table(select)
    at = table.parts[0].meta["start"]
    named = next(index for index, token in enumerate(tokens) if token.start <= at <= token.end)
    source = named - 1
    is_plain = tokens[source].token_type == TokenType.FROM and source > start and bool(select.expressions)
    if not is_plain or tokens[source - 1].token_type == TokenType.COMMA:
        reason = "FORM" if source < start and select.expressions else "SYNTAX"
        raise refusal(reason, "a part of the query is not written as SELECT expressions FROM an upstream")
    first = start + 1 + (tokens[start + 1].token_type == TokenType.ALL)
    end = next(
        (
            index
            for index, (depth, token) in enumerate(with_depth(tokens[named:]), named)
            if depth < 0 or (depth == 0 and token.token_type == TokenType.UNION)
        ),
        len(tokens),
    )
    by = next((index for index in range(named, end) if tokens[index].token_type == TokenType.GROUP_BY), end)
    where = next((index for index in range(named, by) if tokens[index].token_type == TokenType.WHERE), by)
    return Part(select, table, tuple(tokens[first:source]), tuple(tokens[where + 1 : by]), tuple(tokens[by + 1 : end]))


def _table(select: exp.Select) -> exp.Table:
    if select.args.get("from_") is None:
        raise refusal("FORM", "a part of the query reads no upstream: it has no FROM")
    table = select.args["from_"].this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise refusal("FORM", f"the query reads from {table.sql('spark')}, which is not an upstream")
    _check_clauses(table, allowed=("this", "alias", "db", "catalog"))
    if table.args.get("alias") and table.args["alias"].args.get("columns"):
        raise refusal("UNSUPPORTED", "the query renames the upstream's columns in FROM", hint="rename them with AS")
    return table


def with_depth(tokens: Sequence[Token]) -> Iterator[tuple[int, Token]]:
    """Each token with the number of parentheses around it; a closing parenthesis counts as outside its pair."""
    depth = 0
    for token in tokens:
        depth -= token.token_type in _CLOSES
        yield depth, token
        depth += token.token_type in _OPENS
