"""Systems that run elsewhere: programs in any language (`command.py`)."""
