"""The broker and the Spark server of `backfill up`.

- `broker`: the embedded broker
- `servers`: a local broker and a local Spark server that outlive the command that started them
- `spark_server`: the embedded Spark Connect server
"""
