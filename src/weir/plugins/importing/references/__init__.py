"""Collections by reference, and files or folders of other layouts, imported once into the home folder.

Begin with `reference.py`.
"""
