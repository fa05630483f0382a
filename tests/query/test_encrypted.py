"""Encryption gives the same again with an initialization vector that is written in the query, and without one in mode ECB."""

import pytest

from backfill_assets.errors import QueryError
from backfill_assets.query.determinism import check_calls
from backfill_assets.query.parsing import tokenize


@pytest.mark.parametrize("vector", ["unhex('0001')", "X'00'", "'0123456789ab'"])
def test_a_vector_that_is_written_gives_the_same_again(vector: str) -> None:
    check_calls(tokenize(f"SELECT hex(AES_ENCRYPT(x, key, 'GCM', 'DEFAULT', {vector}, 'more')) AS r FROM t"))


@pytest.mark.parametrize("vector", ["''", "X''", "unhex('')", "x", "lower('00')", "unhex('0', x)", "'a' || x", ""])
def test_an_empty_vector_is_drawn_and_others_may_be_empty(vector: str) -> None:
    arguments = ", ".join(filter(None, ("x", "key", "'CBC'", "'PKCS'", vector)))
    with pytest.raises(QueryError, match=r"calls aes_encrypt\(\)"):
        check_calls(tokenize(f"SELECT hex(aes_encrypt({arguments})) AS r FROM t"))
