"""Questions beside scores: where relevant documents are lost, whether queries can measure a change, and more.

Most questions have a file with a function of arrays and the value that it returns, and a file with commands.
Begin with `funnel.py` (`weir study funnel`). `of_results.py` asks the questions of a results folder, for its
page.
"""
