"""llama.cpp's own server over a GGUF model, with OpenAI's API: a real server for embeddings and chat on this machine.

    python -m venv PEERS/llama && PEERS/llama/bin/pip install xllamacpp
    PEERS/llama/bin/python benchmarks/remote/llama_server.py model.gguf --port 8090 --embeddings
    weir run -d cranfield -s 'dense("openai:nomic", base="http://localhost:8090/v1", query_prompt="search_query: ",
        document_prompt="search_document: ")'

It prints its address and answers until it is stopped.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="A file in the format GGUF.")
    parser.add_argument("--port", type=int, default=8090)
    parser.add_argument("--embeddings", action="store_true", help="Answer with vectors, not with words.")
    parser.add_argument("--context", type=int, default=8192, help="Tokens of a text, and of its answer.")
    parser.add_argument("--parallel", type=int, default=1, help="Texts at a time.")
    parser.add_argument(
        "--threads", type=int, default=2, help="At most the idle cores: threads that wait for others spin."
    )
    given = parser.parse_args()

    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = given.model
    params.model_alias = {Path(given.model).parent.name}  # else answers name the path of the file
    params.port = given.port
    params.embedding = given.embeddings
    params.n_ctx = given.context * given.parallel
    params.n_parallel = given.parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = given.threads
    if given.embeddings:  # a text is read in one piece
        params.n_batch = params.n_ubatch = given.context
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
