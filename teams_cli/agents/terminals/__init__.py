"""The clients that people sit in front of: joined from inside, their states, and how they are woken."""
