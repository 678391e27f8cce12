from typing import TYPE_CHECKING

from weir.plugins.encoders.expansions import DeepCT as DeepCT
from weir.plugins.encoders.expansions import Doc2Query as Doc2Query
from weir.plugins.encoders.late_interaction import ColBERT as ColBERT
from weir.plugins.encoders.learned_sparse import Sparse as Sparse
from weir.plugins.encoders.t5 import monot5 as monot5
from weir.systems.compose import Filtered as Filtered
from weir.systems.compose import Pipeline as Pipeline
from weir.systems.compose import as_reranker as as_reranker
from weir.systems.compose import as_system as as_system
from weir.systems.dense_search import dense as dense
from weir.systems.expression import factorial as factorial
from weir.systems.expression import parse_system as parse_system
from weir.systems.expression import system as system
from weir.systems.fused import Fused as Fused
from weir.systems.fused import borda as borda
from weir.systems.fused import combanz as combanz
from weir.systems.fused import combmax as combmax
from weir.systems.fused import combmed as combmed
from weir.systems.fused import combmin as combmin
from weir.systems.fused import combmnz as combmnz
from weir.systems.fused import combsum as combsum
from weir.systems.fused import condorcet as condorcet
from weir.systems.fused import isr as isr
from weir.systems.fused import logisr as logisr
from weir.systems.fused import rbc as rbc
from weir.systems.fused import rrf as rrf
from weir.systems.fused import wsum as wsum
from weir.systems.lexical.bm25 import BM25 as BM25
from weir.systems.lexical.bm25 import BM25F as BM25F
from weir.systems.lexical.bm25 import PRESETS as PRESETS
from weir.systems.lexical.bm25 import BM25Preset as BM25Preset
from weir.systems.lexical.passages import Chunked as Chunked
from weir.systems.lexical.rm3 import RM3 as RM3
from weir.systems.protocol import IN_MEMORY as IN_MEMORY
from weir.systems.protocol import RERANKERS as RERANKERS
from weir.systems.protocol import SYSTEMS as SYSTEMS
from weir.systems.protocol import Context as Context
from weir.systems.protocol import Costs as Costs
from weir.systems.protocol import Reranker as Reranker
from weir.systems.protocol import Retriever as Retriever
from weir.systems.protocol import Scorer as Scorer
from weir.systems.protocol import Searcher as Searcher
from weir.systems.protocol import usage as usage
from weir.systems.rerank.scorers import PairReranker as PairReranker
from weir.systems.rerank.scorers import Score as Score
from weir.systems.rerank.scorers import cross as cross
from weir.systems.stored_run import CandidatePool as CandidatePool
from weir.systems.stored_run import StoredRun as StoredRun

Dense = dense
Cross = cross
MonoT5 = monot5

if TYPE_CHECKING:  # the names in texts, as in 'rm3(bm25)', which registries give when a program runs
    from weir.plugins.encoders.learned_sparse import sparta as sparta
    from weir.plugins.encoders.learned_sparse import splade as splade
    from weir.plugins.encoders.learned_sparse import unicoil as unicoil
    from weir.plugins.llm.rerank import llm as llm
    from weir.plugins.servers.elasticsearch import elasticsearch as elasticsearch
    from weir.plugins.servers.endpoint import Http
    from weir.plugins.servers.postgres import postgres as postgres
    from weir.plugins.servers.service_reranker import rerank as rerank
    from weir.systems.remote.command import Command

    bm25 = BM25
    bm25f = BM25F
    chunked = Chunked
    colbert = ColBERT
    command = Command
    deepct = DeepCT
    doc2query = Doc2Query
    filtered = Filtered
    http = Http
    pool = CandidatePool
    rm3 = RM3
    run = StoredRun
    score = Score
