from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chimera.errors import ConfigError, ProviderBusyError
from chimera.providers.failures import Failure
from chimera.providers.retry import Backoff

BUSY = Failure(ProviderBusyError, "busy", retryable=True)


@given(st.integers(1, 12), st.floats(0, 100))
def test_the_wait_doubles_up_to_a_limit(attempts: int, first: float) -> None:
    full = min(first * 2 ** (attempts - 1), 8.0)
    delay = Backoff(20, first).delay(attempts, BUSY)
    assert delay is not None
    assert full * 0.75 <= delay <= full


def test_attempts_are_counted() -> None:
    backoff = Backoff(2, 0.0)
    assert [backoff.delay(attempts, BUSY) is None for attempts in (1, 2, 3)] == [False, False, True]
    assert Backoff(0).delay(1, BUSY) is None


def test_what_will_not_get_better_is_not_tried_again() -> None:
    assert Backoff().delay(1, Failure(ProviderBusyError, "no credit")) is None


@pytest.mark.parametrize(("asked", "delay"), [(0.0, 0.0), (12.5, 12.5), (60.0, 60.0), (60.1, None)])
def test_the_service_is_asked_first(asked: float, delay: float | None) -> None:
    failure = Failure(ProviderBusyError, "busy", retryable=True, retry_after=asked)
    assert Backoff().delay(1, failure) == delay


@pytest.mark.parametrize("options", [{"max_retries": -1}, {"first_delay": -0.1}])
def test_negative_numbers_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        Backoff(**options)
