"""Faults in the documentation of the public interface."""

from tests.mutations.mutation import Mutation

__all__ = ["DOCS"]

DECLARATIONS = "backfill_assets/declare/declarations.py"

DOCS: tuple[Mutation, ...] = (
    Mutation(
        name="a public argument is not documented",
        file=DECLARATIONS,
        old="        topic: The topic to read.\n",
        new="",
        tests=("tests/test_public_docstrings.py::test_a_public_name_says_what_it_takes_returns_and_raises",),
    ),
    Mutation(
        name="an error that is raised is not documented",
        file="backfill_assets/testing/manual_clock.py",
        old="        Raises:\n            ValueError: `seconds` is negative.\n",
        new="",
        tests=("tests/test_public_docstrings.py::test_a_public_name_says_what_it_takes_returns_and_raises",),
    ),
    Mutation(
        name="an example gives something else",
        file=DECLARATIONS,
        old="[('order_id', 'BIGINT'), ('amount', 'DECIMAL(12,2)')]",
        new="[('order_id', 'LONG'), ('amount', 'DECIMAL(12,2)')]",
        tests=("tests/test_public_docstrings.py::test_examples_return_what_they_show",),
    ),
    Mutation(
        name="a public default changes and the API page does not",
        file=DECLARATIONS,
        old='    bronze: Bronze = "all",',
        new='    bronze: Bronze = "new",',
        tests=("tests/test_docs.py::test_the_api_page_is_what_the_docstrings_say",),
    ),
)
