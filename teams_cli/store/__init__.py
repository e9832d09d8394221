"""Where records live: the contract in `contract`, and one engine a module."""
