"""The public face: what `import weir` offers, taking what people hold and answering with values that show themselves.

`evaluation` scores a run; `comparisons` sets runs against each other; `fusing` makes one run of several; `benchmark`
runs systems on collections; `results_folder` reads and checks what was made; `result_set` is what most of them return.
"""
