"""Which rows of other places have to be found, given those of one: only where that can leave nothing out."""

from backfill_assets.query.key_classes import KeyClass, KeyClasses
from backfill_assets.query.linear import Linearity
from backfill_assets.query.steps import lookups

BY_ORDER = KeyClass({0: "no", 1: "order_no"}, "", "INTEGER")
BY_CUSTOMER = KeyClass({1: "customer", 2: "id"}, "", "STRING")
BY_BOTH = KeyClass({2: "id", 3: "id"}, "", "STRING")


def steps(place: int, linear: set[int], parts: tuple[int, ...] = (0, 0, 0, 0)) -> list[tuple[int, tuple[int, ...]]]:
    keys = KeyClasses((BY_CUSTOMER, BY_ORDER, BY_BOTH))
    found = lookups(keys, Linearity(linear=frozenset(linear), parts=parts), place)
    assert all(each.known in each.key.columns for each in found)
    return [(each.known, each.others) for each in found]


def test_rows_are_found_from_place_to_place_by_keys_that_both_have() -> None:
    assert steps(0, {0, 1, 2, 3}) == [(0, (1,)), (1, (2,)), (2, (3,))]
    assert steps(2, {0, 1, 2, 3}) == [(2, (1,)), (2, (3,)), (1, (0,))]


def test_rows_of_a_place_in_which_the_query_is_not_linear_say_nothing_of_others() -> None:
    """Without a row of this place there may be rows of the result, by other keys than it has."""
    assert steps(0, {0}) == [(0, (1,))]
    assert steps(0, {0, 1}) == [(0, (1,)), (1, (2,))]
    assert steps(0, set()) == []


def test_other_parts_of_a_union_are_left_alone() -> None:
    assert steps(0, {0, 1, 2, 3}, (0, 0, 1, 1)) == [(0, (1,))]
