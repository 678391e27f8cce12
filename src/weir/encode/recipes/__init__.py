"""Where a checkpoint lies, what it says about itself, and how it is to be used."""
