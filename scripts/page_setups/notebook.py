import pandas as pd

import weir

news = weir.load("brook-news")
docs = news.corpus.to_frame().rename(columns={"doc": "doc_id"})
queries = news.queries.to_frame().rename(columns={"query": "query_id"})
judgments = news.qrels.to_frame().set_axis(["query_id", "doc_id", "relevance"], axis=1)


def engine(name):
    run = weir.parse_system(name).index(news.corpus).search(news.queries, 20).to_frame()
    return run[["query", "doc", "score"]].set_axis(["query_id", "doc_id", "score"], axis=1)


old, new = engine('bm25(analyzer="whitespace")'), engine("rm3")
