"""Faults of replacing a view's definition."""

from tests.mutations.mutation import Mutation

__all__ = ["REPLACE"]

LIVES = "backfill_assets/core/epoch/lives.py"
REPLACING = "backfill_assets/app/replacing.py"
PURE = "tests/core/epoch/test_lives.py"
KILLS = "tests/e2e/kills/test_kill_replace.py"
REAL = "tests/e2e/tables/test_replace.py"
SEEN = f"{REAL}::test_readers_see_all_old_rows_and_then_all_new_ones"
GOES_ON = f"{REAL}::test_a_replacement_that_stopped_early_goes_on_unless_it_was_changed_again"

REPLACE: tuple[Mutation, ...] = (
    Mutation(
        name="a table is taken over although a run has gone on with it",
        file=LIVES,
        old="    commit(parts, record, staged, look, gives_up=True)",
        new="    commit(parts, record, staged, look)",
        tests=(f"{PURE}::test_a_table_that_has_gone_on_is_not_taken_over",),
    ),
    Mutation(
        name="a table that is taken over goes on from its own position",
        file=LIVES,
        old="        position=made.position,",
        new="        position=look.record.position if look.record else made.position,",
        tests=(f"{PURE}::test_a_life_that_takes_over_has_the_rows_and_the_position_of_another_table",),
    ),
    Mutation(
        name="a replaced view keeps its columns",
        file=REPLACING,
        old="        delta_schema=table.schema().to_json(),\n",
        new="",
        tests=(SEEN,),
    ),
    Mutation(
        name="a replaced view keeps the order of its columns",
        file="backfill_assets/adapters/delta/output.py",
        old="        anew = bool(named) and reorders(table.schema(), schema)",
        new="        anew = False",
        tests=(f"{REAL}::test_columns_come_in_the_order_of_the_new_definition",),
    ),
    Mutation(
        name="a view has a column with a name of the change feed",
        file="backfill_assets/query/column_names.py",
        old="    if name.lower() in _OF_THE_FEED:",
        new="    if name in _OF_THE_FEED:",
        tests=("tests/query/test_rowwise.py",),
    ),
    Mutation(
        name="copied files that a commit named are swept",
        file="backfill_assets/adapters/delta/staging.py",
        old="""        names |= {action["add"]["path"].partition("/")[0] for action in actions if "add" in action}""",
        new="""        names |= set()""",
        tests=(SEEN,),
    ),
    Mutation(
        name="a view is switched before the new one has caught up",
        file=REPLACING,
        old="    if report.stopped is not Stop.CAUGHT_UP or not report.record.live:",
        new="    if False:",
        tests=(GOES_ON,),
    ),
    Mutation(
        name="a replacement goes on by a definition that was changed again",
        file=REPLACING,
        old="        _discard(beside, building)  # built",
        new="        pass  # built",
        tests=(GOES_ON,),
    ),
    Mutation(
        name="copies that a run of the old definition deleted are not made again",
        file=REPLACING,
        old="TRIES = 5\n",
        new="TRIES = 1\n",
        tests=(f"{REAL}::test_runs_of_the_old_definition_may_go_on_until_the_switch",),
    ),
    Mutation(
        name="the way back leads to the same definition",
        file=REPLACING,
        old="    if look.record is not None and not changed_parts(look.record.fingerprint, new.fingerprint):",
        new="    if False:",
        tests=(f"{REAL}::test_runs_of_the_old_definition_may_go_on_until_the_switch",),
    ),
    Mutation(
        name="what another call began anew takes a view's place",
        file=REPLACING,
        old="    if found.life != (life, True) or found.record is None or not found.record.live:",
        new="    if found.record is None:",
        tests=(f"{REAL}::test_what_another_call_began_anew_does_not_take_the_place_of_a_view",),
    ),
    Mutation(
        name="what is put back is ended before it is in the view's place",
        file=REPLACING,
        old="""    record = _switch(workspace, kept, workspace.table(view), life=found.record.incarnation)
    _discard(beside, kept)
""",
        new="""    _discard(beside, kept)
    record = _switch(workspace, kept, workspace.table(view), life=found.record.incarnation)
""",
        tests=(
            "tests/e2e/cli/test_cli.py::test_a_view_that_was_replaced_is_put_back_by_one_command",
            f"{REAL}::test_what_was_replaced_comes_back_and_goes_on",
            f"{KILLS}::test_a_kill_while_it_is_undone_leaves_the_new_rows_or_the_old_ones",
        ),
    ),
    Mutation(
        name="what a killed call has left of what was kept stays",
        file=REPLACING,
        old="        _discard(beside, kept)  # what a call that ended early has left of it\n",
        new="",
        tests=(f"{KILLS}::test_a_kill_while_it_is_undone_leaves_the_new_rows_or_the_old_ones",),
    ),
    Mutation(
        name="a damaged view cannot be replaced, as its files cannot be copied",
        file="backfill_assets/adapters/storage/object_store.py",
        old="        with self._writing(to, through=FileNotFoundError):",
        new="        with self._writing(to):",
        tests=(
            "tests/adapters/storage/test_put_files.py::"
            "test_a_file_that_is_not_there_to_be_copied_is_told_from_a_store_that_cannot_be_written",
            "tests/e2e/tables/test_replace.py::test_a_damaged_view_is_replaced_and_not_kept",
        ),
    ),
    Mutation(
        name="what others have written is put back",
        file="backfill_assets/app/replacing.py",
        old="    if found.external is not None:",
        new="    if False:",
        tests=("tests/e2e/tables/test_replace.py::test_what_others_have_written_is_not_put_back",),
    ),
    Mutation(
        name="a damaged view cannot be replaced",
        file="backfill_assets/app/replacing.py",
        old="        _discard(beside, kept)\n        return False\n    kept.output.vacuum",
        new="        raise\n    kept.output.vacuum",
        tests=("tests/e2e/tables/test_replace.py::test_a_damaged_view_is_replaced_and_not_kept",),
    ),
    Mutation(
        name="what was replaced stays for ever",
        file="backfill_assets/app/replacing.py",
        old='= ("replacements", "replaced")\n',
        new='= ("replacements",)\n',
        tests=("tests/e2e/tables/test_replace.py::test_nothing_is_left_beside_a_view_that_is_forgotten_or_dropped",),
    ),
    Mutation(
        name="what was replaced outlives the view",
        file="backfill_assets/app/lifecycle.py",
        old="        discard_beside(workspace, table.declared)\n",
        new="        pass\n",
        tests=("tests/e2e/tables/test_replace.py::test_nothing_is_left_beside_a_view_that_is_forgotten_or_dropped",),
    ),
    Mutation(
        name="a view whose history is still read is kept, and cannot be put back",
        file=REPLACING,
        old="look.external is not None or not look.record.live:",
        new="look.external is not None:",
        tests=(f"{REAL}::test_a_view_whose_history_is_still_read_is_replaced_and_not_kept",),
    ),
    Mutation(
        name="a view that was reset meanwhile is replaced",
        file=REPLACING,
        old="            if not left or destination.output.look_for_reset().life != before.life:",
        new="            if not left:",
        tests=(f"{REAL}::test_a_view_that_another_call_has_ended_while_its_replacement_was_copied_is_left_alone",),
    ),
    Mutation(
        name="an error of a replacement does not say how it is given up",
        file=REPLACING,
        old="        error.hint = (\n",
        new="        _ = (\n",
        tests=(f"{REAL}::test_errors_of_a_replacement_say_how_to_give_it_up",),
    ),
    Mutation(
        name="plans of what lay beside a view stay for ever",
        file=REPLACING,
        old="            workspace.state.ledger().remove(table.target, look.record.incarnation)",
        new="            pass",
        tests=(f"{REAL}::test_nothing_is_left_beside_a_view_that_is_forgotten_or_dropped",),
    ),
    Mutation(
        name="what a replacement has still to read is vacuumed",
        file="backfill_assets/app/dependents.py",
        old=', _record(workspace.beside(view, "replacements"), view)):',
        new=",):",
        tests=(f"{REAL}::test_a_view_that_a_replacement_is_still_to_read_is_not_vacuumed",),
    ),
)
