"""Tests of the logarithm of a mean."""

import numpy as np
import pytest

from tf_samtone.models.log_mean import LogMean


def test_it_is_the_logarithm_of_the_mean_over_all_batches():
    metric = LogMean()
    metric.update_state([1.0, 3.0])
    metric.update_state([8.0])
    assert float(metric.result()) == pytest.approx(np.log(4.0))


def test_weights_leave_rows_out():
    metric = LogMean()
    metric.update_state([1.0, 3.0], sample_weight=[0, 1])
    assert float(metric.result()) == pytest.approx(np.log(3.0))
