"""The Spark session: in this process, or on a Spark Connect server.

- `resource`: Spark
- `session`: Spark sessions that belong to one run
"""
