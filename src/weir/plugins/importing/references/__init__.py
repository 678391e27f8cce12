"""Collections by reference, and files or folders of other layouts, imported once into the home folder.

Begin with `reference.py`; `hub.py` and `from_irds.py` read data sets of the Hugging Face hub and of ir_datasets,
`materialize.py` keeps them.
"""
