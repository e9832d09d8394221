"""Extensions: each brings commands, records and handlers of its own."""
