"""The store of records: `contract` says what every engine promises, and `files` is the engine that keeps files."""
