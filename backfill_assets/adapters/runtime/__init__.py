"""What the machine gives, and how Spark is set up on it: Java, jars, settings, processes, ports, files, the clock.

- `cache`: where downloads and generated launchers live
- `jars`: the jars that Spark and the embedded broker need, fetched once per user by the Ivy inside PySpark
- `java`: finds a Java runtime that Spark and Kafka can use
- `private_files`: files that only their owner can read, from their first byte on
- `processes`: child processes that outlive their starter
- `session_settings`: which settings of a Spark session results depend on, and what becomes of each
- `spark_conf`: the Spark settings of this project
- `system_clock`: real time
- `tcp_ports`: ports of the embedded servers on the loopback address
"""
