"""Faults in how Spark is used as it is: a server that is lost, a cluster, a small heap."""

from tests.mutations.mutation import Mutation

__all__ = ["LOST"]

PATIENCE = "backfill_assets/adapters/spark/patience.py"
RESOURCE = "backfill_assets/adapters/spark/resource.py"
WAITS = "tests/adapters/spark/test_patience.py"
SESSIONS = "tests/adapters/spark/test_lost_session.py"
EPOCHS = "tests/core/epoch/test_lost_spark.py"

LOST: tuple[Mutation, ...] = (
    Mutation(
        name="each retry begins an outage anew",
        file=PATIENCE,
        old="            if at - self._failed > _SAME_OUTAGE_SECONDS:",
        new="            if at - self._failed > 0:",
        tests=(WAITS,),
    ),
    Mutation(
        name="all outages of a session share one deadline",
        file=PATIENCE,
        old="                self._began = at\n",
        new="                self._began = max(self._began, 0.0)\n",
        tests=(WAITS,),
    ),
    Mutation(
        name="pauses between retries grow to a minute",
        file=PATIENCE,
        old="_LONGEST_PAUSE_MS = 4000",
        new="_LONGEST_PAUSE_MS = 60000",
        tests=(WAITS,),
    ),
    Mutation(
        name="a server with another token is a fault of the query",
        file=PATIENCE,
        old='_GONE = ("UNAVAILABLE", "UNAUTHENTICATED")',
        new='_GONE = ("UNAVAILABLE",)',
        tests=(WAITS,),
    ),
    Mutation(
        name="a session of the same name on another server is taken for a fault of the query",
        file=PATIENCE,
        old="_OTHER_SERVER in str(error) or ",
        new="",
        tests=(WAITS,),
    ),
    Mutation(
        name="a lost session is used again",
        file=RESOURCE,
        old="            self._forget(abandon)\n            raise SparkLostError(",
        new="            raise SparkLostError(",
        tests=(SESSIONS,),
    ),
    Mutation(
        name="every error of an action loses the session",
        file=RESOURCE,
        old="            if not (is_remote(session) and is_lost(error)):",
        new="            if not is_remote(session):",
        tests=(SESSIONS,),
    ),
    Mutation(
        name="a run ends with its server",
        file="backfill_assets/core/epoch/protocol.py",
        old="STAGE_TRIES = 3",
        new="STAGE_TRIES = 1",
        tests=(EPOCHS,),
    ),
    Mutation(
        name="an epoch is computed again into the folder of the attempt that was lost",
        file="backfill_assets/core/epoch/protocol.py",
        old="""    for _ in range(STAGE_TRIES):
        attempt = parts.new_id()
""",
        new="""    attempt = parts.new_id()
    for _ in range(STAGE_TRIES):
""",
        tests=(EPOCHS,),
    ),
    Mutation(
        name="an interrupt waits for a server that hangs",
        file=RESOURCE,
        old="            if not future.done() and self._session is not None and is_remote(self._session):",
        new="            if False and self._session is not None:",
        tests=(f"{SESSIONS}::test_an_interrupt_ends_an_action_of_a_server_that_hangs",),
    ),
    Mutation(
        name="a server that hangs is asked to cancel before the run goes on",
        file=RESOURCE,
        old="            Thread(target=self._cancel, args=(future, tag), daemon=True).start()",
        new="            self._cancel(future, tag)",
        tests=(f"{SESSIONS}::test_an_interrupt_ends_an_action_of_a_server_that_hangs",),
    ),
    Mutation(
        name="a session that is let go keeps its connection",
        file="backfill_assets/adapters/spark/session.py",
        old="    session.client._channel.close()\n",
        new="",
        tests=(f"{SESSIONS}::test_an_interrupt_ends_an_action_of_a_server_that_hangs",),
    ),
    Mutation(
        name="a server is not asked for signs of life",
        file="backfill_assets/adapters/spark/session.py",
        old="        channel.setChannelOption(name, value)",
        new="        del name, value",
        tests=(f"{SESSIONS}::test_a_server_is_asked_for_signs_of_life",),
    ),
    Mutation(
        name="a server that is lost while culprits are searched for is a failed search",
        file="backfill_assets/adapters/compute/poison.py",
        old="    except SparkLostError:\n        raise\n",
        new="",
        tests=("tests/adapters/compute/test_poison_errors.py",),
    ),
    Mutation(
        name="keys without rights are an error of computing",
        file="backfill_assets/adapters/compute/poison.py",
        old="    if remedy := setup_remedy(error):",
        new="    if (remedy := setup_remedy(error)) and False:",
        tests=(
            "tests/adapters/compute/test_poison_errors.py::test_what_sparks_set_up_causes_is_not_an_error_of_computing",
        ),
    ),
    Mutation(
        name="a process that has used a server starts a Spark of its own",
        file="backfill_assets/adapters/spark/session.py",
        old="    if _CONNECT_MODE in os.environ:",
        new="    if False:",
        tests=(
            "tests/adapters/spark/test_settled_session.py::test_a_process_that_has_used_a_server_has_no_spark_of_its_own",
        ),
    ),
    Mutation(
        name="whatever Spark says is tried again",
        file="backfill_assets/core/epoch/protocol.py",
        old="        except SparkLostError as error:\n",
        new="        except (SparkLostError, ComputeError) as error:\n",
        tests=(EPOCHS,),
    ),
    Mutation(
        name="a server that stays dead is reported as one that never was",
        file="backfill_assets/core/epoch/protocol.py",
        old="            raise lost from error\n",
        new="            raise\n",
        tests=(EPOCHS,),
    ),
    Mutation(
        name="every broadcast takes 16 MB",
        file="backfill_assets/adapters/runtime/spark_conf.py",
        old='        "spark.buffer.pageSize": "2m",\n',
        new="",
        tests=("tests/e2e/tables/test_broadcasts.py",),
    ),
    Mutation(
        name="a cluster runs as many tasks as this machine has processors",
        file="backfill_assets/adapters/compute/tasks.py",
        old="    return int(found[0]) + 1",
        new="    return 2",
        tests=("tests/e2e/tables/test_tasks.py",),
    ),
    Mutation(
        name="few rows are spread over all of a cluster",
        file="backfill_assets/adapters/compute/tasks.py",
        old="min(wanted, parallelism(spark))",
        new="parallelism(spark)",
        tests=("tests/e2e/tables/test_tasks.py",),
    ),
    Mutation(
        name="a commit is tried again though Spark is lost",
        file="backfill_assets/core/epoch/commit.py",
        old="        if refused is not None:\n            raise refused\n",
        new="",
        tests=(f"{EPOCHS}::test_what_is_no_outcome_of_a_commit_is_not_tried_again",),
    ),
    Mutation(
        name="a commit that has landed is not looked for where Spark was lost since",
        file="backfill_assets/core/epoch/commit.py",
        old="            refused = error\n",
        new="            raise\n",
        tests=(f"{EPOCHS}::test_a_commit_that_lands_late_counts_though_spark_was_lost_since",),
    ),
    Mutation(
        name="a run ends with the server that merges its changes",
        file="backfill_assets/core/epoch/protocol.py",
        old="            lost = error\n            continue\n",
        new="            raise\n",
        tests=(f"{EPOCHS}::test_spark_that_is_lost_in_a_commit_is_not_waited_for_by_trying_the_commit_again",),
    ),
    Mutation(
        name="an interrupt waits for a Spark of this process that hangs",
        file=RESOURCE,
        old="            wait([future], timeout=ENDING_SECONDS)\n",
        new="            wait([future])\n",
        tests=(f"{SESSIONS}::test_an_interrupt_ends_an_action_of_a_spark_in_this_process_that_hangs",),
    ),
    Mutation(
        name="a process waits at its end for a Spark that hangs",
        file="backfill_assets/adapters/spark/worker.py",
        old=", daemon=True)",
        new=")",
        tests=(f"{SESSIONS}::test_an_interrupt_ends_an_action_of_a_spark_in_this_process_that_hangs",),
    ),
    Mutation(
        name="an action that ends late is left",
        file=RESOURCE,
        old="            if not future.done():\n                self._leave()\n",
        new="            self._leave()\n",
        tests=(f"{SESSIONS}::test_an_action_that_ends_late_is_waited_for_and_keeps_its_session",),
    ),
    Mutation(
        name="an interrupt does not reach jobs of this process",
        file="backfill_assets/adapters/spark/resource.py",
        old="            session.sparkContext.setJobGroup(tag, tag, interruptOnCancel=True)\n",
        new="            pass\n",
        tests=(
            "tests/adapters/spark/test_lost_session.py::test_an_action_that_ends_late_is_waited_for_and_keeps_its_session",
        ),
    ),
    Mutation(
        name="an interrupt cancels once, and a job that begins after it goes on",
        file="backfill_assets/adapters/spark/resource.py",
        old="        while not future.done():\n            session",
        new="        if not future.done():\n            session",
        tests=(
            "tests/adapters/spark/test_lost_session.py::test_an_action_that_ends_late_is_waited_for_and_keeps_its_session",
        ),
    ),
    Mutation(
        name="an interrupt does not reach a server",
        file="backfill_assets/adapters/spark/resource.py",
        old="            session.addTag(tag)\n",
        new="            pass\n",
        tests=("tests/adapters/spark/test_lost_session.py::test_an_interrupt_ends_an_action_of_a_server_that_hangs",),
    ),
    Mutation(
        name="an interrupt names another action",
        file="backfill_assets/adapters/spark/resource.py",
        old="session.interruptTag(tag)",
        new="session.interruptTag(tag[:-1])",
        tests=("tests/adapters/spark/test_lost_session.py::test_an_interrupt_ends_an_action_of_a_server_that_hangs",),
    ),
    Mutation(
        name="a session keeps the tags of all its actions",
        file="backfill_assets/adapters/spark/resource.py",
        old="                session.removeTag(tag)\n",
        new="                pass\n",
        tests=("tests/adapters/spark/test_lost_session.py::test_an_interrupt_ends_an_action_of_a_server_that_hangs",),
    ),
    Mutation(
        name="a server on this host is on another one",
        file="backfill_assets/adapters/spark/resource.py",
        old=', "::1", socket.gethostname()}',
        new=', "::1"}',
        tests=(
            "tests/adapters/spark/test_lost_session.py::test_a_warehouse_on_a_disk_needs_a_server_on_the_same_host",
        ),
    ),
    Mutation(
        name="anybody on the machine joins the cluster",
        file="backfill_assets/adapters/local/spark_cluster.py",
        old='        "spark.authenticate": "true",\n',
        new="",
        tests=("tests/adapters/local/test_spark_cluster.py::test_nobody_else_can_send_programs_to_it_or_end_them",),
    ),
    Mutation(
        name="who sees the pages of the cluster ends its applications",
        file="backfill_assets/adapters/local/spark_cluster.py",
        old='        "spark.ui.killEnabled": "false",\n',
        new="",
        tests=("tests/adapters/local/test_spark_cluster.py::test_nobody_else_can_send_programs_to_it_or_end_them",),
    ),
    Mutation(
        name="who sees the pages of the cluster ends its workers",
        file="backfill_assets/adapters/local/spark_cluster.py",
        old='        "spark.master.ui.decommission.allow.mode": "DENY",\n',
        new="",
        tests=("tests/adapters/local/test_spark_cluster.py::test_nobody_else_can_send_programs_to_it_or_end_them",),
    ),
    Mutation(
        name="programs are sent to the cluster by its pages",
        file="backfill_assets/adapters/local/spark_cluster.py",
        old='        "spark.master.rest.enabled": "false",\n',
        new="",
        tests=("tests/adapters/local/test_spark_cluster.py::test_nobody_else_can_send_programs_to_it_or_end_them",),
    ),
    Mutation(
        name="a worker that has died counts",
        file="backfill_assets/adapters/local/spark_cluster.py",
        old=' if each["state"] == "ALIVE")',
        new=")",
        tests=("tests/adapters/local/test_spark_cluster.py::test_a_worker_that_has_died_does_not_count",),
    ),
    Mutation(
        name="a server on this machine that asks for TLS is reached without",
        file="backfill_assets/adapters/spark/session.py",
        old="            if self.host != HOST or self.use_ssl or self.token is None:",
        new="            if self.host != HOST or self.token is None:",
        tests=(
            "tests/adapters/spark/test_lost_session.py::"
            "test_a_server_on_this_machine_is_reached_as_spark_does_where_tls_is_asked_for",
        ),
    ),
)
