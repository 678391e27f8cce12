"""Collections by reference, and files of other layouts, imported once into the home folder; begin with
`reference.py`."""
