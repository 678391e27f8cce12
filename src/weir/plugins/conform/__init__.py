"""The conformance kit: does a tool compute its measures exactly? Begin with `oracle.py`.

- `oracle.py` computes exact values straight from definitions; it shares no code with `weir.measures`.
- `vectors.py` reads the golden vectors in `vectors/`: inputs with the oracle's answers.
- `tools.py` asks other tools through `run_adapter.py` and `adapters/`, each in its own process.
- `certificate.py` grades the answers and explains differences; `command.py` is `weir study conform`.
"""
