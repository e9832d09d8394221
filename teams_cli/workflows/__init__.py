"""Workflows: Markdown files that people read as a guide and `teams run` carries out."""
