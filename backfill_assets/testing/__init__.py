"""Simulated upstreams, crash points and a manual clock: for the project's own tests and for users' views."""
