"""The Spark session: in this process, or on a Spark Connect server.

- `reach`: a session that reaches the warehouse's store
- `resource`: Spark
- `session`: Spark sessions that belong to one run
"""
