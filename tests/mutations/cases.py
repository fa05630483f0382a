"""All faults that the tests must find, by module."""

from tests.mutations.cases_adapters import ADAPTERS
from tests.mutations.cases_added import ADDED
from tests.mutations.cases_addresses import ADDRESSES
from tests.mutations.cases_azure import AZURE
from tests.mutations.cases_checks import CHECKS
from tests.mutations.cases_choice import CHOICE
from tests.mutations.cases_clock import CLOCK
from tests.mutations.cases_columns import COLUMNS
from tests.mutations.cases_commands import COMMANDS
from tests.mutations.cases_computed import COMPUTED
from tests.mutations.cases_conservation import CONSERVATION
from tests.mutations.cases_copies import COPIES
from tests.mutations.cases_core import CORE
from tests.mutations.cases_corrected import CORRECTED
from tests.mutations.cases_docs import DOCS
from tests.mutations.cases_drawn import DRAWN
from tests.mutations.cases_edges import EDGES
from tests.mutations.cases_epochs import EPOCHS
from tests.mutations.cases_feeds import FEEDS
from tests.mutations.cases_few import FEW
from tests.mutations.cases_files import FILES
from tests.mutations.cases_followed import FOLLOWED
from tests.mutations.cases_found import FOUND
from tests.mutations.cases_grammar import GRAMMAR
from tests.mutations.cases_joined import JOINED
from tests.mutations.cases_kafka import KAFKA
from tests.mutations.cases_lagging import LAGGING
from tests.mutations.cases_layout import LAYOUT
from tests.mutations.cases_lifting import LIFTING
from tests.mutations.cases_limited import LIMITED
from tests.mutations.cases_logs import LOGS
from tests.mutations.cases_lost import LOST
from tests.mutations.cases_numbered import NUMBERED
from tests.mutations.cases_odd import ODD
from tests.mutations.cases_orders import ORDERS
from tests.mutations.cases_other_logs import OTHER_LOGS
from tests.mutations.cases_parameters import PARAMETERS
from tests.mutations.cases_parted import PARTED
from tests.mutations.cases_pipes import PIPES
from tests.mutations.cases_reached import REACHED
from tests.mutations.cases_reads import READS
from tests.mutations.cases_relational import RELATIONAL
from tests.mutations.cases_replace import REPLACE
from tests.mutations.cases_replaced import REPLACED
from tests.mutations.cases_requests import REQUESTS
from tests.mutations.cases_rules import RULES
from tests.mutations.cases_runs import RUNS
from tests.mutations.cases_secrets import SECRETS
from tests.mutations.cases_session import SESSION
from tests.mutations.cases_shells import SHELLS
from tests.mutations.cases_since import SINCE_PASS
from tests.mutations.cases_skips import SKIPS
from tests.mutations.cases_spark import SPARK
from tests.mutations.cases_stored import STORED
from tests.mutations.cases_stores import STORES
from tests.mutations.cases_tables import OVER_TABLES
from tests.mutations.cases_texts import TEXTS
from tests.mutations.cases_together import TOGETHER
from tests.mutations.cases_touched import TOUCHED
from tests.mutations.cases_values import VALUES
from tests.mutations.cases_variables import VARIABLES
from tests.mutations.mutation import Mutation

__all__ = ["MUTATIONS"]

MUTATIONS: tuple[Mutation, ...] = (
    *CORE, *EPOCHS, *RUNS, *KAFKA, *OVER_TABLES, *CHOICE, *JOINED, *ADAPTERS, *LOGS, *FILES, *CONSERVATION, *READS, *SPARK,
    *SESSION, *VALUES, *CHECKS, *CLOCK, *COLUMNS, *SHELLS, *SINCE_PASS, *SKIPS, *RELATIONAL, *TEXTS, *ORDERS, *RULES, *STORED,
    *STORES, *DOCS, *LOST, *ODD, *REPLACE, *TOUCHED, *FOUND, *LAYOUT, *REQUESTS, *LIFTING, *COMPUTED, *PARAMETERS, *COPIES,
    *CORRECTED, *PARTED, *OTHER_LOGS, *LIMITED, *ADDED, *REPLACED, *NUMBERED, *LAGGING, *SECRETS, *DRAWN, *GRAMMAR, *PIPES,
    *ADDRESSES, *AZURE, *VARIABLES, *EDGES, *FEEDS, *FEW, *FOLLOWED, *COMMANDS, *TOGETHER, *REACHED,
)  # fmt: skip
