"""Whether a store writes an object only if it is absent, which every commit depends on.

A store that has no such put, or ignores that it is asked for, would let one commit overwrite another without an error.
"""

import uuid

from backfill_assets.adapters.storage.asked_stores import SECONDS
from backfill_assets.adapters.storage.store_errors import said
from backfill_assets.adapters.storage.warehouse import Warehouse
from backfill_assets.errors import EnvironmentSetupError

__all__ = ["MARKER", "check_store"]

MARKER = "_state/conditional-put"
"""An object that is put only if it is absent, by each run again; there it is proof. Its content tells stores apart."""


def check_store(warehouse: Warehouse) -> bool:
    """Check that the warehouse's store can be written, and puts an object only if it is absent; a disk does.

    One request for a warehouse that is known to the store, two for a new one. Two clients at the same moment are not tried.

    Returns:
        Whether it has been checked before; of a disk nobody knows.

    Raises:
        EnvironmentSetupError: The store cannot be used, with the reason.
    """
    if warehouse.is_local:
        return False
    store, content = warehouse.objects("", seconds=SECONDS), f"{uuid.uuid4()}\n".encode()
    try:
        is_known = not store.put_if_absent(MARKER, content)
        overwrites = not is_known and store.put_if_absent(MARKER, content)
    except Exception as error:  # of as many kinds as there are stores
        raise EnvironmentSetupError(
            f"the store of the warehouse {warehouse.uri} refused to write an object if it is absent: "
            f"{said(error, warehouse.storage_options)}",
            hint="nothing was written. Check endpoint, region, keys and bucket; the store must know put-if-absent "
            "(If-None-Match: * on S3)",
        ) from None
    if overwrites:
        raise EnvironmentSetupError(
            f"the store of the warehouse {warehouse.uri} overwrote an object that it was asked to write only if it is absent",
            hint="commits of two writers would overwrite each other there. Use a store with conditional puts "
            "(If-None-Match: * on S3)",
        )
    return is_known
