"""Questions asked beside scores: where relevant documents are lost, whether queries can measure, what must stay out.

Each question has a file with a pure function of joined arrays and the frozen value that it returns, and commands in a
file of its own. Begin with `funnel.py` (`weir study funnel`, in `funnel_command.py`): it follows relevant documents
through stages, which `system_stages.py` takes from a composed system; `spans.py` has gold passages for chunkers.
`fitness.py` says whether queries and judgments can show a change, `ruler_faults.py` what is wrong with them, `noise.py`
how far a system moves by itself. `document_rules.py` has the measures of documents that must not be found, and the file
of their rules. `migration.py` compares two systems without judgments and decides by few labels
(`migrating.py` reads what is given); `canary.py` sees whether a model has changed. `filter_recall.py` counts what
filters cost a vector search (`filtering.py` asks it). `gate_looks.py` and `decision.py` decide at any number of looks,
by `stats/sequential.py`.
"""
