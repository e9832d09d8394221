"""The store of records: the contract in `contract`, and one engine a module."""
