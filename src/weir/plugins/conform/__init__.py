"""The conformance kit: does a tool compute its measures exactly?

`oracle.py` computes exact values straight from definitions and shares no code with `weir.measures`.
`vectors.py` reads inputs with the oracle's answers, `tools.py` asks other tools through `adapters/`,
`certificate.py` grades the answers.
"""
