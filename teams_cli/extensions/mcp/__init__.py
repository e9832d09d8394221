"""The MCP server: commands as tools, and the records of the team as resources, over standard input and output."""

from teams_cli.extensions import Extension

EXTENSION = Extension(commands={"mcp": "commands"})
