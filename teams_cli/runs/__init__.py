"""Runs: a run carries out a workflow with a team of its own, and ends with a report."""
