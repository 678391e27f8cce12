"""What re-rankings do to an order, and how far their verdicts depend on what should not matter.

`order_changes` two orders of the same candidates, query by query; `place_blocks` who reaches the first ranks, by the
place from which a document came; `reordering` both with scores and intervals, from run files alone; `shuffled_orders`
candidates in other orders; `studies` what asking again, in other orders and to other depths says of a re-ranker.
"""
