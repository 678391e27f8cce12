"""What re-rankings do to an order, and how far their verdicts depend on what should not matter.

`order_changes` two orders of the same candidates, query by query; `rank_bands` who reaches the first ranks, by the
place from which a document came; `reordering` both with scores and intervals, from run files alone.
`reranked_candidates` a first stage that is re-ranked many times; `answer_log` what a model was shown and said;
`verdict_stability` whether that depends on places, on order, on chance; `studies` all of it, with records.
"""
