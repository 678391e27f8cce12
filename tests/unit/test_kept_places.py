"""Where documents without a score stand."""

from __future__ import annotations

import numpy as np
import pytest

from weir.systems.rerank.reranking import SCORE_STEP, fill_unscored


def test_places_without_a_value_are_kept():
    nan = np.nan
    values = np.array([nan, 1, nan, 5, 5, nan, nan, 2.0])
    score = fill_unscored(values, np.array([0, 5, 5, 7, 8]))
    assert np.argsort(-score[:5]).tolist() == [0, 3, 2, 4, 1]
    assert score[:5] == pytest.approx(
        [5, 1 - 4 * SCORE_STEP, 5 - 2 * SCORE_STEP, 5 - SCORE_STEP, 5 - 3 * SCORE_STEP]
    )
    assert score[5:].tolist() == [0, -SCORE_STEP, 2]
    assert (np.diff(np.sort(score[:5].astype(np.float32))) > 0).all()
