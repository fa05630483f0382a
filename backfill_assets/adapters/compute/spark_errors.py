"""What Spark's errors say."""

import re

__all__ = ["is_of_spark", "is_of_values", "reason_of"]

_STATE = re.compile(r"SQLSTATE: (\w{5})\b")
_OF_VALUES = re.compile(r"22\w{3}|21000|23505|P0001")
"""SQLSTATEs of errors about values: data exceptions, a subquery for one value with several, a duplicate key in a map, and
`raise_error`."""
_NAMED_OTHERWISE = re.compile(
    r"\[(?:COLLECTION_SIZE_LIMIT_EXCEEDED|INVALID_FORMAT)\b|due to exceeding the limit \d+ elements"
)
"""Errors about values that have another SQLSTATE, such as that of a syntax error for a pattern in a column, or none."""
_COMPUTING = re.compile(r"Job aborted due to stage failure|org\.apache\.spark\.sql\.catalyst\.expressions\.")
"""What stands in the error of a task, or of rows that Spark computes while it plans."""
_OF_EXPRESSION = re.compile(
    r"\b(?:org\.apache\.spark\.Spark(?:Arithmetic|ArrayIndexOutOfBounds|DateTime|IllegalArgument|NumberFormat)Exception"
    r"|java\.util\.regex\.PatternSyntaxException|java\.util\.\w*Format\w*Exception|java\.time\.(?:\w+\.)*\w+Exception"
    r"|java\.lang\.(?:Arithmetic|ArrayIndexOutOfBounds|IllegalArgument|IndexOutOfBounds|NegativeArraySize|NumberFormat"
    r"|StringIndexOutOfBounds)Exception|java\.lang\.RuntimeException: (?:Invalid XML|Error loading expression))"
)
"""Errors of Java that some functions raise for a value, without any SQLSTATE."""
_CALLED, _CAUSE = "An error occurred while calling", "Caused by: "
_NAMED = re.compile(r"\[[A-Z][A-Z0-9_.]+\] .*")
"""An error as Spark names it."""


def is_of_spark(error: Exception) -> bool:
    """Whether Spark raised an error, wherever it runs."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return isinstance(error, PySparkException | Py4JError)


def is_of_values(error: Exception) -> bool:
    """Whether Spark refuses values, which it will always do, as opposed to a failure outside the data."""
    from pyspark.errors import PySparkException

    state = error.getSqlState() if isinstance(error, PySparkException) else None
    text = f"{error}\n{_raised(error)}"
    if state is None:  # in-process, PySpark passes some Java errors on unchanged
        stated = _STATE.search(text)
        state = stated.group(1) if stated else ""
    if _NAMED_OTHERWISE.search(text):
        return True
    if not state:
        return bool(_COMPUTING.search(text)) and _OF_EXPRESSION.search(text) is not None
    return _OF_VALUES.fullmatch(state) is not None


def _raised(error: Exception) -> str:
    """What Java raised and where, if PySpark has put only the cause of that into its own error."""
    return str(getattr(error, "_stackTrace", None) or "")


def reason_of(error: Exception) -> str:
    """Spark's own message, in one line: PySpark puts some errors of Java into a text that begins with the call."""
    lines = str(error).strip().splitlines() or ["no message"]
    causes = [each.removeprefix(_CAUSE) for each in map(str.strip, lines) if each.startswith(_CAUSE)]
    if not lines[0].startswith(_CALLED):
        # Some errors only announce others, in the lines that follow.
        announces = lines[0].rstrip().endswith(":")
        return " ".join(" ".join([lines[0], *(causes[-1:] or lines[1:2])]).split()) if announces else lines[0]
    raised = next((line[2:] for line in lines if line.startswith(": ")), lines[0])
    named = next(filter(None, map(_NAMED.search, lines)), None)
    return "; cause: ".join([named.group() if named else raised, *causes[-1:]])
