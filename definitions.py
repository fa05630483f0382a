"""The demo's code location: flights of 2013 from Kafka, and views over them."""

from pathlib import Path

from backfill_assets import build_definitions
from examples.flights import bad_days, flights, late_departures, routes
from resources import resources_for

defs = build_definitions(flights, late_departures, routes, bad_days, resources=resources_for(Path(__file__).parent))
