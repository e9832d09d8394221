"""What those commands run that need much: imported when they run, and not to look at what commands there are."""
