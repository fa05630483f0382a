"""Faults that the tests must find: each is put into a copy of the project, and the tests that concern it are run there."""
