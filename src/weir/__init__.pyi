# The names at the top of weir, which `weir/__init__.py` imports when they are first used.
from typing import TYPE_CHECKING

from weir.api import listings as listings
from weir.api.auditing import align as align
from weir.api.auditing import audits as audits
from weir.api.auditing import subset as subset
from weir.api.benchmark import Benchmark as Benchmark
from weir.api.benchmark import benchmark as benchmark
from weir.api.comparisons import abstention as abstention
from weir.api.comparisons import compare as compare
from weir.api.comparisons import diff as diff
from weir.api.comparisons import gate as gate
from weir.api.comparisons import p_mrr as p_mrr
from weir.api.comparisons import power as power
from weir.api.comparisons import save_baseline as save_baseline
from weir.api.comparisons import threshold as threshold
from weir.api.comparisons import why as why
from weir.api.comparisons import within_groups as within_groups
from weir.api.evaluation import evaluate as evaluate
from weir.api.fusing import fit_fusion as fit_fusion
from weir.api.fusing import fuse as fuse
from weir.api.result_set import ResultSet as ResultSet
from weir.api.results_folder import describe as describe
from weir.api.results_folder import efficiency as efficiency
from weir.api.results_folder import official_scores as official_scores
from weir.api.results_folder import plan as plan
from weir.api.results_folder import published as published
from weir.api.results_folder import reproduce as reproduce
from weir.api.results_folder import results as results
from weir.api.results_folder import results_beside as results_beside
from weir.api.results_folder import verify as verify
from weir.core.corpus import Corpus as Corpus
from weir.core.corpus import Queries as Queries
from weir.core.qrels import Qrels as Qrels
from weir.core.run import Run as Run
from weir.core.scores import Scores as Scores
from weir.datasets.fetch import fetch as fetch
from weir.datasets.load import Dataset as Dataset
from weir.datasets.load import load as load
from weir.datasets.load import load_group as load_group
from weir.errors import WeirError as WeirError
from weir.experiment.experiment import Experiment as Experiment
from weir.measures import AP as AP
from weir.measures import RBP as RBP
from weir.measures import RR as RR
from weir.measures import Measure as Measure
from weir.measures import Success as Success
from weir.measures import measure as measure
from weir.measures import nDCG as nDCG
from weir.measures import parse_measure as parse_measure
from weir.measures.library import *  # noqa: F403 - every measure; each is named in its own file alone
from weir.models.encoder import as_encoder
from weir.systems import BM25 as BM25
from weir.systems import BM25F as BM25F
from weir.systems import RM3 as RM3
from weir.systems import Cross as Cross
from weir.systems import Dense as Dense
from weir.systems import Filtered as Filtered
from weir.systems import Score as Score
from weir.systems import as_reranker
from weir.systems import factorial as factorial
from weir.systems import parse_system as parse_system
from weir.systems import system as system
from weir.systems.fused import rrf as rrf
from weir.systems.lexical.analyzer import add_analyzer as add_analyzer

from . import labels as labels
from . import measures as measures
from . import stats as stats
from . import systems as systems

__version__: str
encoder = as_encoder
reranker = as_reranker

if TYPE_CHECKING:  # of plug-ins, which entry points name when a program runs
    from weir.plugins.encoders.late_interaction import ColBERT as ColBERT
    from weir.plugins.encoders.learned_sparse import Sparse as Sparse
    from weir.plugins.importing import import_files as import_files
    from weir.plugins.llm.api import judge as judge
    from weir.plugins.llm.api import llm_trace as llm_trace
    from weir.plugins.llm.api import llm_use as llm_use
    from weir.plugins.llm.reordering import ReorderRules as ReorderRules
    from weir.plugins.llm.rerankings import reranking as reranking
    from weir.plugins.llm.rerankings import sensitivity_of as sensitivity_of
    from weir.plugins.llm.studies import StudyRules as StudyRules
    from weir.plugins.questions.canary import check_canary as check_canary
    from weir.plugins.questions.canary import make_canary as make_canary
    from weir.plugins.questions.document_rules import with_document_rules as with_document_rules
    from weir.plugins.questions.filter_recall import FilterRules as FilterRules
    from weir.plugins.questions.filtering import filters as filters
    from weir.plugins.questions.fitness import fitness as fitness
    from weir.plugins.questions.funnel import FunnelRules as FunnelRules
    from weir.plugins.questions.gate_looks import gate_sequentially as gate_sequentially
    from weir.plugins.questions.migrating import migrate as migrate
    from weir.plugins.questions.migration import MigrationRules as MigrationRules
    from weir.plugins.questions.system_stages import funnel as funnel
    from weir.plugins.questions.system_stages import funnel_of_rankings as funnel_of_rankings
    from weir.plugins.report.cite import cite as cite
    from weir.plugins.report.report import report as report
    from weir.plugins.submissions.packs import pack_results as pack_results
    from weir.plugins.submissions.packs import verify_pack as verify_pack
    from weir.plugins.submissions.site import leaderboard as leaderboard
    from weir.plugins.training.pairs import Crops as Crops
    from weir.plugins.training.pairs import GivenPairs as GivenPairs
    from weir.plugins.training.pairs import WrittenQuestions as WrittenQuestions
    from weir.plugins.training.training import AdaptRules as AdaptRules
    from weir.plugins.training.training import adapt as adapt
    from weir.systems import MonoT5 as MonoT5
