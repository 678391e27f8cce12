"""The conformance kit: does a tool compute its measures exactly? Begin with `certificate.py`."""
