"""The machine, and how Spark is set up on it: Java, jars, settings, processes, ports, files, the clock.

- `cache`: the folder for downloads and generated launchers
- `class_archive`: an archive of the classes that Spark loads, with which it starts faster
- `garbage`: what Python's garbage collector looks at
- `jars`: the jars that Spark and the embedded broker need, fetched once per user by the Ivy inside PySpark
- `java`: finds a Java runtime that Spark and Kafka can use
- `private_files`: files that only their owner can read, from their first byte on
- `processes`: processes that outlive the one that started them
- `session_settings`: which settings of a Spark session can change results, and what is done about each
- `spark_conf`: the Spark settings of this project
- `system_clock`: real time
- `tcp_ports`: ports of the embedded servers on the loopback address
- `temporary_folders`: temporary folders of this process, and of those that were killed
"""
