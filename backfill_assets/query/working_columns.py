"""The names of columns that rows have beside those of a view while its changes are computed, compared and merged."""

from typing import Final

__all__ = ["BALANCE", "DUPLICATE", "EXPECTED_ROWS", "FILE", "MOVED", "NET_ROWS", "OPERATION", "SIDE", "WORKING"]

OPERATION: Final = "__op"
"""What becomes of a row: `insert`, `update` or `delete`; the name of the folder in which it is staged."""
DUPLICATE: Final = "__twice"
"""Whether several rows have the same key."""
MOVED: Final = "__moved"
"""Whether a row has another primary key than before. A count of staged changes has this name, too."""
NET_ROWS: Final = "__rows"
"""How many equal rows come, less those that go."""
FILE: Final = "__file"
"""The path of the file that a row is in."""
SIDE: Final = "__side"
"""On which side of a comparison a row is; its sum is the number of missing rows."""
BALANCE: Final = "__balance"
"""How many more equal rows are expected than found."""
EXPECTED_ROWS: Final = "__expected"
"""How many equal rows are expected."""

WORKING: Final = frozenset({OPERATION, DUPLICATE, MOVED, NET_ROWS, FILE, SIDE, BALANCE, EXPECTED_ROWS})
"""All of these. A hidden column of a view must not have one of these names; the columns that a query gives cannot."""
