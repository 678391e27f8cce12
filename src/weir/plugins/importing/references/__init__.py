"""Collections by reference, imported once into the home folder; begin with `reference.py`."""
