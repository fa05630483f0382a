"""Where in a view's query a fragment is that Spark refuses: Spark sees it in another text, the one that it is given."""

from collections.abc import Sequence

from backfill_assets.errors import QueryError
from backfill_assets.query.parsing import tokenize
from backfill_assets.query.refusals import place_of, refused_by_spark
from backfill_assets.query.spelling import Word, words_of

__all__ = ["placed"]


def placed(error: QueryError, written: str) -> QueryError:
    """Spark's refusal of a query, with the place of its fragment in the text as its author has `written` it.

    It is the same error if it names no fragment, or if the text has it more than once.

    Example:
        >>> error = refused_by_spark("[UNRESOLVED_COLUMN] no such column", "u.size")
        >>> placed(error, "SELECT t.id, u.SIZE FROM t JOIN u USING (id)").message
        'Spark refuses u.size in line 1, column 14: [UNRESOLVED_COLUMN] no such column'
    """
    fragment = error.facts.get("fragment", "")
    start = _only_start(written, fragment) if fragment else None
    if start is None:
        return error
    return refused_by_spark(error.facts["said"], fragment, place_of(written, start))


def _only_start(query: str, fragment: str) -> int | None:
    """Where a query's text has the words of a fragment, if it has them once."""
    try:
        words, sought = (words_of(each, tokenize(each)) for each in (query, fragment))
    except QueryError:
        return None
    spelled, wanted = _spelled(words), _spelled(sought)
    found = [at for at in range(len(spelled)) if spelled[at : at + len(wanted)] == wanted]
    return words[found[0]].start if len(found) == 1 else None


def _spelled(words: Sequence[Word]) -> list[str]:
    return [word.text for word in words]
