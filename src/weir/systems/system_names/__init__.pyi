from weir.systems.compose import Filtered
from weir.systems.dense_search import dense as dense
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
from weir.systems.lexical.bm25 import BM25, BM25F
from weir.systems.lexical.passages import Chunked
from weir.systems.lexical.rm3 import RM3
from weir.systems.remote.command import Command
from weir.systems.stored_run import CandidatePool, StoredRun

bm25 = BM25
bm25f = BM25F
chunked = Chunked
command = Command
filtered = Filtered
pool = CandidatePool
rm3 = RM3
run = StoredRun
