"""Language models as judges: pairs of query and document to grades, with how far they can be trusted.

`judging_pairs.py` which pairs, with their texts; `judge_prompt.py`, `prompts/` what is asked, and the scale of answers;
`grade_verdict.py` what an answer says; `panel.py` texts to grades, samples combined; `judging.py` all pairs, some of
them twice; `probes.py` changed passages that should not move a grade; `judge_report.py` what came of it;
`model_families.py` whose models are related; `labels_folder.py` what is written.
"""
