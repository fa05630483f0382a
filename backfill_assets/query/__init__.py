"""SQL to maintenance plan (sqlglot, no Spark), and the Spark code that carries the plan out."""
