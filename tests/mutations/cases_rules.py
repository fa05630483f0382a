"""Faults in the rules by which views over several tables follow changes: linear places, keys, groups of joined rows."""

from tests.mutations.mutation import Mutation

__all__ = ["RULES"]

LINEAR = "tests/query/test_linear.py"
AT_ONCE = "tests/e2e/tables/test_places.py"
FOLLOWED = "tests/e2e/tables/test_relational.py::test_a_view_follows_what_changed_by_the_rule_for_its_query"
CLASSES = "tests/query/test_key_classes.py"
GROUPED = "tests/query/test_grouped_rows.py"
EXACT = "tests/query/test_rules_are_exact.py"
CHANGES = "backfill_assets/adapters/compute/relational_changes.py"
APPLY = "backfill_assets/adapters/sql/apply_relational.py"
PARTITION = "backfill_assets/query/partition.py"
RESTRICTED = "backfill_assets/adapters/compute/restricted.py"

RULES: tuple[Mutation, ...] = (
    Mutation(
        name="a LEFT JOIN is taken to be linear in its right side",
        file="backfill_assets/query/linear.py",
        old='    if side == "LEFT" or kind in {"SEMI", "ANTI"}:\n        return linear\n',
        new='    if side == "LEFT" or kind in {"SEMI", "ANTI"}:\n        return linear | right\n',
        tests=(LINEAR,),
    ),
    Mutation(
        name="a RIGHT JOIN is taken to be linear in its left side",
        file="backfill_assets/query/linear.py",
        old="        return right\n",
        new="        return linear | right\n",
        tests=(LINEAR,),
    ),
    Mutation(
        name="groups are taken to be linear",
        file="backfill_assets/query/linear.py",
        old='    "from_",\n',
        new='    "from_",\n    "group",\n',
        tests=(LINEAR,),
    ),
    Mutation(
        name="a part that gives rows of nothing is taken to be linear",
        file="backfill_assets/query/linear.py",
        old="isinstance(each, exp.Select) and _is_plain(each)]",
        new="isinstance(each, exp.Select)]",
        tests=(LINEAR,),
    ),
    Mutation(
        name="a part of UNION ALL that is put together otherwise is not looked at",
        file="backfill_assets/query/linear.py",
        old="        case _:\n            yield node\n",
        new="        case exp.Select():\n            yield node\n",
        tests=(LINEAR,),
    ),
    Mutation(
        name="other parts of UNION ALL give their rows again with each change",
        file=CHANGES,
        old="        if parts[at] != parts[number]",
        new="        if parts[at] < parts[0]",
        tests=(AT_ONCE,),
    ),
    Mutation(
        name="places after the one that changed are bound to the new rows",
        file=CHANGES,
        old="*(at for at in places if at > number)",
        new="*(at for at in places if at > number + 99)",
        tests=(f"{FOLLOWED}[self_join]",),
    ),
    Mutation(
        name="places before the one that changed are bound to the old rows",
        file=CHANGES,
        old="*(at for at in places if at > number)",
        new="*(at for at in places if at != number)",
        tests=(f"{FOLLOWED}[self_join]",),
    ),
    Mutation(
        name="rows that go from a table stay in a view over several",
        file=CHANGES,
        old='        go=(lambda: found().where(f"NOT {CHANGE.name} {IS_INSERT}")) if deletes else None,',
        new="        go=None,",
        tests=("tests/e2e/tables/test_relational.py::test_many_changes_are_followed_by_spark_alike",),
    ),
    Mutation(
        name="groups of several values of a key are computed in part",
        file=PARTITION,
        old="        if not left:\n            self.refuse(select)\n        return left",
        new="        return left or carriers",
        tests=(CLASSES, GROUPED, EXACT),
    ),
    Mutation(
        name="windows over several values of a key are computed in part",
        file=PARTITION,
        old='                if not self.shape.kept(carriers, window.args.get("partition_by") or []):\n'
        "                    self.refuse(select)",
        new="                if not carriers:\n                    self.refuse(select)",
        tests=(CLASSES, GROUPED, EXACT),
    ),
    Mutation(
        name="joined rows of different values of a key are computed in part",
        file=PARTITION,
        old="        if left.covered and right.covered and not links:\n            self._unlinked(before, join)\n",
        new="",
        tests=(CLASSES, GROUPED, EXACT),
    ),
    Mutation(
        name="an outer join is computed in part by its other side",
        file=PARTITION,
        old='        if right.covered and not left.covered and not (is_inner or side == "RIGHT"):\n'
        "            self.refuse(join)\n",
        new="",
        tests=(CLASSES, GROUPED, EXACT),
    ),
    Mutation(
        name="a RIGHT JOIN is computed in part by its left side",
        file=PARTITION,
        old='        if left.covered and not right.covered and side in {"RIGHT", "FULL"}:\n'
        "            self.refuse(*before)\n",
        new="",
        tests=(CLASSES, GROUPED, EXACT),
    ),
    Mutation(
        name="the side that an outer join may leave out is taken for a key",
        file=PARTITION,
        old="        if is_inner:\n            carriers = closed",
        new='        if not side or side == "LEFT":\n            carriers = closed',
        tests=(CLASSES, GROUPED, EXACT),
    ),
    Mutation(
        name="a subquery over all rows is computed in part",
        file=PARTITION,
        old="            if found.covered and not found.linked and not alike:\n                self.refuse(inner)\n",
        new="",
        tests=(CLASSES, GROUPED, EXACT),
    ),
    Mutation(
        name="NOT IN and OR are taken for a join by the key",
        file=PARTITION,
        old="                and id(around) in top\n",
        new="",
        tests=(CLASSES, GROUPED, EXACT),
    ),
    Mutation(
        name="rows of DISTINCT of which values of a key differ are computed in part",
        file=PARTITION,
        old='(select.args.get("distinct") and not given)',
        new='(select.args.get("into") and not given)',
        tests=(CLASSES, GROUPED, EXACT),
    ),
    Mutation(
        name="one side of UNION ALL is given again for each value",
        file=PARTITION,
        old="        if isinstance(node, exp.Except | exp.Intersect):\n"
        "            outputs = left.outputs if both or not right.covered else ()",
        new="        if isinstance(node, exp.Except | exp.Intersect | exp.Union):\n"
        "            outputs = left.outputs or right.outputs",
        tests=(CLASSES, GROUPED, EXACT),
    ),
    Mutation(
        name="what EXCEPT takes away is not joined by the key",
        file=PARTITION,
        old="            outputs = left.outputs if both or not right.covered else ()",
        new="            outputs = left.outputs or right.outputs",
        tests=(CLASSES, GROUPED, EXACT),
    ),
    Mutation(
        name="LIMIT is computed in part",
        file=PARTITION,
        old='("limit", "offset", "kind"))',
        new='("offset", "kind"))',
        tests=(CLASSES, GROUPED),
    ),
    Mutation(
        name="grouping sets are computed in part",
        file=PARTITION,
        old="        if has_grouping_sets(group):\n            self.refuse(select)\n",
        new="",
        tests=(CLASSES, GROUPED),
    ),
    Mutation(
        name="floats are taken for a key",
        file="backfill_assets/query/kinds.py",
        old='    return name.replace(" ", "") if _EXACT.fullmatch(name) else ""',
        new='    return name.replace(" ", "")',
        tests=(CLASSES, GROUPED),
    ),
    Mutation(
        name="texts and numbers are taken for one key",
        file="backfill_assets/query/conditions.py",
        old='    return kind_of(left) == kind_of(right) != ""',
        new="    return True",
        tests=(CLASSES, GROUPED),
    ),
    Mutation(
        name="a set operation of two types tells the key of one of them",
        file=PARTITION,
        old="        outputs = tuple(at for at in outputs if at < len(kinds) and kinds[at])\n",
        new="",
        tests=(CLASSES, GROUPED),
    ),
    Mutation(
        name="spaces at the end of a text make another key of it",
        file="backfill_assets/query/key_classes.py",
        old='        return f"xxhash64(rtrim({value}))" if self.kind == "STRING" else f"xxhash64({value})"',
        new='        return f"xxhash64({value})"',
        tests=(CLASSES, GROUPED),
    ),
    Mutation(
        name="integers of two widths have different hashes",
        file="backfill_assets/query/key_classes.py",
        old='        return f"xxhash64(CAST({value} AS BIGINT))"',
        new='        return f"xxhash64({value})"',
        tests=(CLASSES, GROUPED),
    ),
    Mutation(
        name="rows of two touched keys come twice",
        file=RESTRICTED,
        old="Part(_beyond(touched[:number], part.frame), part.few)",
        new="part",
        tests=(AT_ONCE,),
    ),
    Mutation(
        name="changes of linear places count where a key is touched, too",
        file=RESTRICTED,
        old="Part(_beyond(classes, linear.frame), linear.few)",
        new="linear",
        tests=(AT_ONCE,),
    ),
    Mutation(
        name="rows of the view whose key is touched stay",
        file=RESTRICTED,
        old="        gone = go.frame.drop(COPY, ROW_HASH)",
        new='        gone = go.frame.drop(COPY, ROW_HASH).where("FALSE")',
        tests=(AT_ONCE,),
    ),
    Mutation(
        name="rows of a key are taken back from groups as they are now",
        file=RESTRICTED,
        old="at_once(query, work, [*each.places, *left])",
        new="at_once(query, work, left)",
        tests=(AT_ONCE,),
    ),
    Mutation(
        name="places of a key are new while linear ones are taken from old to new",
        file=RESTRICTED,
        old="relational_changes(query, work, steps.linear, later=later)",
        new="relational_changes(query, work, steps.linear)",
        tests=(AT_ONCE,),
    ),
    Mutation(
        name="one group of all rows is gone where there is no row",
        file=APPLY,
        old="    if not query.grouped.of_all:",
        new="    if query.grouped.of_all:",
        tests=(AT_ONCE,),
    ),
    Mutation(
        name="a row of nulls counts in the one group of all rows",
        file="backfill_assets/query/grouped_rows.py",
        old='f"CASE WHEN {HERE} = 1 THEN {each} END"',
        new='f"{each}"',
        tests=(CLASSES, GROUPED),
    ),
    Mutation(
        name="sums of floats are taken back that were computed again",
        file="backfill_assets/query/relational.py",
        old="classes=partners if exact else NO_CLASSES",
        new="classes=partners",
        tests=(CLASSES, GROUPED),
    ),
    Mutation(
        name="sessions that a GROUP BY merges are added up",
        file="backfill_assets/query/grouped_rows.py",
        old='if any(token.text.lower() == "session_window" for token in tokens):',
        new="if False:",
        tests=(CLASSES, GROUPED),
    ),
    Mutation(
        name="sessions that come and go are merged",
        file=APPLY,
        old="for field in fields if _SESSION in field.metadata}",
        new="for field in fields if _SESSION == field.name}",
        tests=("tests/e2e/tables/test_sessions.py",),
    ),
    Mutation(
        name="a query that names the window of its groups is computed in full",
        file="backfill_assets/query/resolved.py",
        old="    _put_calls(tree, {column.name.lower() for each in found for column in tables[each.upstream]})\n",
        new="",
        tests=(CLASSES, GROUPED),
    ),
    Mutation(
        name="a source that is called like a window is taken for it",
        file="backfill_assets/query/resolved.py",
        old="name in _WINDOWS and name not in others | {*columns}",
        new="name in _WINDOWS",
        tests=(CLASSES, GROUPED),
    ),
    Mutation(
        name="groups of joined rows are not proved by the user's own text",
        file="backfill_assets/adapters/proof/tables.py",
        old="different.missing or different.unexpected or {*found.columns}",
        new="{*found.columns}",
        tests=("tests/e2e/tables/test_apply.py::test_groups_are_compared_with_what_the_users_own_text_gives",),
    ),
    Mutation(
        name="hidden columns stand before a FROM that comes first",
        file="backfill_assets/query/relational.py",
        old="(whole is not None or not can_hide(tokens))",
        new="whole is not None",
        tests=(CLASSES, GROUPED),
    ),
    Mutation(
        name="more than a third of all rows is followed like a few",
        file="backfill_assets/core/strategies/rule_choice.py",
        old="            return MOST_CHANGED * rows > self.held\n",
        new="            return rows > self.held\n",
        tests=("tests/core/strategies/test_rule_choice.py",),
    ),
    Mutation(
        name="rows that are left out come back by a rule",
        file="backfill_assets/core/strategies/rule_choice.py",
        old='(changes.left_out, "rows_left_out")',
        new='(False, "rows_left_out")',
        tests=("tests/core/strategies/test_rule_choice.py",),
    ),
    Mutation(
        name="wrong rows of a view without a key are ordered by its hidden columns",
        file="backfill_assets/adapters/proof/tables.py",
        old="        found = found.drop(ROW_HASH, COPY)\n",
        new="        pass\n",
        tests=("tests/e2e/tables/test_apply.py::test_wrong_rows_of_a_view_without_a_key_are_named",),
    ),
    Mutation(
        name="views with other hidden columns go on as if they had these",
        file="backfill_assets/declare/fingerprints.py",
        old='                    **({"layout": LAYOUT} if declared.whole else {}),\n',
        new="",
        tests=("tests/declare/test_declarations.py",),
    ),
)
