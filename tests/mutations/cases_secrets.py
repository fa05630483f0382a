"""Faults by which secrets are shown."""

from tests.mutations.mutation import Mutation

__all__ = ["SECRETS"]

ERRORS = "backfill_assets/adapters/storage/store_errors.py"
DEFINED = "backfill_assets/defs/definitions.py"
UNSHOWN = "tests/defs/test_unshown_secrets.py"
SHOWN = "tests/adapters/storage/test_shown_secrets.py"

SECRETS: tuple[Mutation, ...] = (
    Mutation(
        name="keys of the environment are shown",
        file=ERRORS,
        old=" | _of_environment()",
        new="",
        tests=(SHOWN,),
    ),
    Mutation(
        name="what stores repeat is shown",
        file=ERRORS,
        old='        text = pattern.sub(rf"\\1{_HELD}", text)',
        new="        pattern.search(text)",
        tests=(f"{SHOWN}::test_what_is_secret_is_masked",),
    ),
    Mutation(
        name="errors that led to one are shown as they are",
        file=ERRORS,
        old="        left += [each.__cause__, each.__context__]\n",
        new="",
        tests=(f"{SHOWN}::test_errors_that_led_to_one_are_masked_too_and_keep_their_classes",),
    ),
    Mutation(
        name="an object that is not put is told with the keys",
        file="backfill_assets/adapters/storage/object_store.py",
        old="        with self._writing(path):\n            return obstore.put(",
        new="        with ThreadPoolExecutor(_REQUESTS):\n            return obstore.put(",
        tests=(f"{SHOWN}::test_a_token_that_has_expired_is_in_no_error",),
    ),
    Mutation(
        name="a commit that fails is told with what the store has repeated",
        file="backfill_assets/adapters/delta/output.py",
        old="            mask(error, self.location.storage_options)  # it is told what the store has said\n",
        new="            error.add_note(self.target)\n",
        tests=(f"{SHOWN}::test_the_error_of_a_commit_is_masked",),
    ),
    Mutation(
        name="Dagster shows what a store has repeated",
        file="backfill_assets/defs/assets.py",
        old="    mask(error)\n",
        new="",
        tests=("tests/defs/test_masked_failures.py",),
    ),
    Mutation(
        name="Dagster shows keys that are written into a resource",
        file=DEFINED,
        old="    _check_unshown(used.values())\n",
        new="",
        tests=(f"{UNSHOWN}::test_a_secret_that_is_written_into_a_resource_is_refused_by_name",),
    ),
    Mutation(
        name="Dagster shows the address of a cluster's Spark",
        file="resources/cluster.py",
        old="SparkResource(root=project)",
        new='SparkResource(remote=os.environ["SPARK_REMOTE"], root=project)',
        tests=(f"{UNSHOWN}::test_a_cluster_shows_no_token_of_spark",),
    ),
    Mutation(
        name="a lease that cannot be renewed comes with a traceback",
        file="backfill_assets/app/heartbeat.py",
        old="        except EnvironmentSetupError as error:",
        new="        except ZeroDivisionError as error:",
        tests=(
            "tests/adapters/storage/test_shown_secrets.py::test_a_lease_that_the_store_refuses_is_told_in_one_line",
        ),
    ),
    Mutation(
        name="a password in an address is shown",
        file="backfill_assets/adapters/storage/store_errors.py",
        old="]+(?=@)",
        new="]+(?=@@)",
        tests=("tests/adapters/storage/test_shown_secrets.py::test_what_is_secret_is_masked",),
    ),
)
