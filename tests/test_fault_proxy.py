"""The fault proxy: faults change no result of a run, and a seed gives the same faults again."""

import pytest

from fault_proxy import FORWARDED, FaultProxy, Schedule
from faults import FAULTS
from testing import Serve, measure, positions, serving, wavering

pytestmark = pytest.mark.usefixtures("no_retry_delay")
N_SAMPLES = 30


def test_faults_change_no_result_and_repeat_with_the_seed(serve: Serve) -> None:
    fault_counts, loopback = [], serve(wavering)
    faultless = measure(loopback, dataset=positions(N_SAMPLES))
    for seed, connections in [(1, 8), (1, 1), (2, 8)]:
        with serving(FaultProxy(loopback.url, Schedule(0.3, seed), patience=0.01)) as proxy:
            options = {"base_url": proxy.url, "fresh": True, "max_connections": connections}
            run = measure(loopback, dataset=positions(N_SAMPLES), **options)
        assert run.samples == faultless.samples
        assert run.results == faultless.results
        assert proxy.counts.pop(FORWARDED) == 2 * N_SAMPLES
        fault_counts.append(proxy.counts)
    assert len(loopback.requests) == (1 + len(fault_counts)) * 2 * N_SAMPLES
    assert fault_counts[0] == fault_counts[1] != fault_counts[2]


def test_faults_depend_only_on_seed_body_and_repetition() -> None:
    bodies = [b"%d" % number for number in range(2_000)]
    schedule, other_order = Schedule(0.05, seed=7), Schedule(0.05, seed=7)
    first = [schedule.fault(body) for body in bodies]
    assert [other_order.fault(body) for body in reversed(bodies)] == first[::-1]
    assert [schedule.fault(body) for body in bodies] != first
    assert [Schedule(0.05, seed=8).fault(body) for body in bodies] != first
    assert 60 < len(bodies) - first.count(None) < 140
    assert {*first, None} == {*FAULTS, None}
