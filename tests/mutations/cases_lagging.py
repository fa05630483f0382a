"""Faults of stores whose lists lag behind, and of what is committed or deleted on a version that was not looked at."""

from tests.mutations.mutation import Mutation

__all__ = ["LAGGING"]

STAGING = "backfill_assets/adapters/delta/staging.py"
LAYOUT = "backfill_assets/adapters/delta/layout.py"
LISTS = "tests/adapters/delta/test_lagging_lists.py"
LAID_OUT = "tests/adapters/delta/test_layout_commits.py"

LAGGING: tuple[Mutation, ...] = (
    Mutation(
        name="whether files were committed is read of a log that is listed again",
        file=STAGING,
        old="    table = location.at(looked.version) if folders else None",
        new="    table = location.load() if folders else None",
        tests=(f"{LISTS}::test_files_of_the_newest_epoch_are_not_swept_though_its_commit_is_not_listed_yet",),
    ),
    Mutation(
        name="what a life needs that is not listed yet is swept",
        file=STAGING,
        old="    if swept and _is_overtaken(location, looked):",
        new="    if False:",
        tests=(f"{LISTS}::test_nothing_is_swept_by_a_look_that_does_not_know_the_newest_life",),
    ),
    Mutation(
        name="a drop deletes the files of a life that is not listed yet",
        file=STAGING,
        old="record.kind is not CommitKind.DROP or _is_overtaken(location, looked):",
        new="record.kind is not CommitKind.DROP:",
        tests=(f"{LISTS}::test_a_drop_deletes_nothing_of_a_life_that_it_does_not_know",),
    ),
    Mutation(
        name="a layout counts as not committed if its put was repeated",
        file=LAYOUT,
        old="    return _is_committed(location, table.version() + 1, files)",
        new="    return False",
        tests=(f"{LAID_OUT}::test_a_layout_is_committed_whatever_a_repeated_request_says",),
    ),
    Mutation(
        name="delta-rs sets properties on a version that nobody has looked at",
        file="backfill_assets/adapters/delta/maintenance.py",
        old=", commit_properties=_ONCE)",
        new=")",
        tests=(f"{LAID_OUT}::test_properties_are_set_on_the_version_that_was_loaded_or_not_at_all",),
    ),
    Mutation(
        name="delta-rs sets properties in the copy of a log",
        file="backfill_assets/adapters/delta/maintenance.py",
        old="loaded = location.to_write(table)",
        new="loaded = table",
        tests=(f"{LAID_OUT}::test_properties_are_set_in_the_store_and_not_in_the_copy_of_a_log",),
    ),
)
