"""The servers of `backfill up`: a broker, a Spark server, and an S3 server.

- `broker`: the embedded broker
- `s3_server`: an S3 server with its files in a folder
- `servers`: local servers that outlive the command that started them
- `spark_server`: the embedded Spark Connect server
"""
