"""What Spark's errors say."""

import re

__all__ = ["is_of_spark", "is_of_values", "reason_of"]

_STATE = re.compile(r"SQLSTATE: (\w{5})\b")
_OF_VALUES = re.compile(r"22\w{3}|23505|P0001")
"""SQLSTATEs of errors about values: data exceptions, a duplicate key in a map, and `raise_error`."""
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
    if state is None:  # in-process, PySpark passes some Java errors on unchanged
        stated = _STATE.search(str(error))
        state = stated.group(1) if stated else ""
    return _OF_VALUES.fullmatch(state) is not None


def reason_of(error: Exception) -> str:
    """Spark's own message, in one line: PySpark puts some errors of Java into a text that begins with the call."""
    lines = str(error).strip().splitlines() or ["no message"]
    if not lines[0].startswith(_CALLED):
        return lines[0]
    raised = next((line[2:] for line in lines if line.startswith(": ")), lines[0])
    named = next(filter(None, map(_NAMED.search, lines)), None)
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    return "; cause: ".join([named.group() if named else raised, *causes[-1:]])
