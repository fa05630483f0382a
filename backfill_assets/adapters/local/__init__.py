"""The servers of `backfill up`: a broker, a Spark server, alone or on a cluster, and an S3 server.

- `broker`: the embedded broker
- `s3_server`: an S3 server with its files in a folder
- `servers`: local servers that outlive the command that started them
- `spark_cluster`: a standalone Spark cluster, a master and workers
- `spark_programs`: how the programs of the installed Spark are started
- `spark_server`: the embedded Spark Connect server
"""
