"""Faults in what is declared of stores, in answers that are cut, sessions that are gone, and changes that were merged."""

from tests.mutations.mutation import Mutation

__all__ = ["ADDRESSES"]

S3, S3_TEST = "backfill_assets/adapters/storage/s3.py", "tests/adapters/storage/test_s3.py"
STAGING, MERGED = "backfill_assets/adapters/delta/staging.py", "tests/adapters/delta/test_merged_changes.py"
FOLDERS = "backfill_assets/core/epoch/staged_folders.py"

ADDRESSES: tuple[Mutation, ...] = (
    Mutation(
        name="an address may end in a query or a fragment, which only some clients read",
        file="backfill_assets/adapters/storage/addresses.py",
        old="scheme != scheme.lower() or _UNCLEAR.search(inside)",
        new="scheme != scheme.lower()",
        tests=("tests/adapters/storage/test_upstream_location.py",),
    ),
    Mutation(
        name="an address may have no bucket",
        file="backfill_assets/adapters/storage/addresses.py",
        old="    if not inside or scheme",
        new="    if scheme",
        tests=("tests/adapters/storage/test_upstream_location.py",),
    ),
    Mutation(
        name="an endpoint may have a password in it",
        file=S3,
        old='    if endpoint is not None and "@" in endpoint:',
        new="    if endpoint is None:",
        tests=(S3_TEST,),
    ),
    Mutation(
        name="the beginning of a password is shown as an endpoint",
        file=S3,
        old='    before, _, place = endpoint.rpartition("@")\n',
        new='    before, place = "", endpoint.partition("@")[0]\n',
        tests=(S3_TEST,),
    ),
    Mutation(
        name="an empty option of a store is an option",
        file=S3,
        old="for name, value in sorted(options.items()) if value}",
        new="for name, value in sorted(options.items())}",
        tests=(S3_TEST,),
    ),
    Mutation(
        name="a token of the environment is sent with declared keys",
        file=S3,
        old='    if tokens and "token" not in declared and',
        new='    if not tokens and "token" not in declared and',
        tests=(S3_TEST,),
    ),
    Mutation(
        name="an answer that is cut is the end of a refresh",
        file="backfill_assets/adapters/storage/object_store.py",
        old='            if "response body" not in str(error):',
        new="            if error:",
        tests=("tests/e2e/stores/test_s3_faults.py::test_answers_that_are_cut_are_asked_for_again",),
    ),
    Mutation(
        name="a session that its client has closed is what Spark could not compute",
        file="backfill_assets/adapters/spark/patience.py",
        old=', "NO_ACTIVE_SESSION")',
        new=")",
        tests=("tests/adapters/spark/test_patience.py",),
    ),
    Mutation(
        name="a wrong token is told as none",
        file="backfill_assets/adapters/spark/session.py",
        old=" or os.environ.get(_TOKEN) else",
        new=" else",
        tests=("tests/adapters/spark/test_lost_session.py",),
    ),
    Mutation(
        name="each table waits for a server that does not answer",
        file="backfill_assets/adapters/spark/resource.py",
        old="            self._refusal = (time.monotonic(), error)",
        new="            self._refusal = None if error else None",
        tests=("tests/adapters/spark/test_lost_session.py",),
    ),
    Mutation(
        name="staged files that were added as they are go with changes that were merged",
        file=STAGING,
        old="        left -= {unquote(",
        new="        named = {unquote(",
        tests=(MERGED,),
    ),
    Mutation(
        name="staged files that the newest version has go where the log forgot their epochs",
        file=STAGING,
        old="    left = paths - set(",
        new="    left = paths or set(",
        tests=(MERGED,),
    ),
    Mutation(
        name="of staged changes only those of the newest entry are kept",
        file=STAGING,
        old="        folders -= {won.name} if won is not None else set()",
        new="        folders = set()",
        tests=(MERGED,),
    ),
    Mutation(
        name="changes of an epoch in progress go",
        file=FOLDERS,
        old="        if staged is not None and is_over(staged) and any(",
        new="        if staged is not None and any(",
        tests=(MERGED,),
    ),
    Mutation(
        name="any file of a past epoch is taken for a change",
        file=FOLDERS,
        old="any(each.startswith(OPERATIONS) for each in inside)",
        new="bool(inside)",
        tests=(MERGED,),
    ),
)
