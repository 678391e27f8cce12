"""Collections that are not folders of Weir's: named by reference, or files and folders of another shape.

`reference.py` says what a name is; `from_hub.py`, `from_irds.py` and `from_file.py` bring one kind each into Weir's
home, where `materialize.py` keeps it in Weir's own layout; `hub_parts.py` knows what the files of a data set hold,
`described.py` the TOML that describes files.
"""
