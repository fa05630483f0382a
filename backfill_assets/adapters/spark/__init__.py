"""The Spark session: in this process, or on a Spark Connect server.

- `brief_settings`: settings of a session that hold for a while
- `patience`: how long a Spark Connect server that does not answer is waited for
- `reach`: a session that reaches the stores of the warehouse and of other tables
- `reaching_runner`: a runner for views whose tables are in other stores
- `resource`: Spark
- `session`: Spark sessions that belong to one run
- `worker`: a thread that does not keep a process alive
"""
