"""Judgments and two run files of brook-news: production and a candidate."""

import weir

news = weir.load("brook-news")
news.qrels.save("qrels.tsv")
for name, system in (("production", weir.BM25()), ("candidate", weir.RM3())):
    system.index(news.corpus).search(news.queries, k=100).save(f"{name}.trec")
