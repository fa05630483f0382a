"""The demo on real data."""
