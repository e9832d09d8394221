"""Runs: a workflow carried out by a team of its own, from its begin to its report."""
