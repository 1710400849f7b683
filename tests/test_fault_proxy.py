"""The fault proxy: faults change no result of a run, and a seed gives the same faults again."""

import asyncio

import aiohttp
import pytest

from fault_proxy import FORWARDED, FaultProxy, Schedule, main
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


def test_requests_and_responses_pass_unchanged() -> None:
    async def responses_from(url: str) -> tuple[int, object, object]:
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer x"}) as session:
            turn = {"role": "user", "content": "e2e4"}
            request = {"model": "m", "messages": [turn]}
            async with session.post(f"{url}/chat/completions", json=request) as response:
                completion = await response.json()
            async with session.get(f"{url}/models") as models, session.get(f"{url}/x?y") as other:
                return other.status, completion, await models.json()

    with (
        serving(lambda _: "e7e5") as loopback,
        serving(FaultProxy(loopback.url, Schedule(0))) as proxy,
    ):
        assert asyncio.run(responses_from(proxy.url)) == asyncio.run(responses_from(loopback.url))
    proxied, direct = loopback.headers
    assert (proxied["Authorization"], proxied["Content-Type"]) == ("Bearer x", "application/json")
    assert proxied.keys() == direct.keys()


def test_an_unreachable_server_gives_http_502() -> None:
    async def response_from(url: str) -> str:
        async with aiohttp.ClientSession() as session, session.post(url, data=b"x") as response:
            return f"{response.status} {await response.text()}"

    with serving(wavering) as loopback:
        pass
    with serving(FaultProxy(loopback.url, Schedule(0))) as proxy:
        response = asyncio.run(response_from(proxy.url))
    assert response.startswith("502 ")
    assert f"{loopback.url} does not answer" in response


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--before", "localhost:8000"], "not 'localhost:8000'"),
        (["--before", "http://localhost:8000/v1", "--faults", "nan"], "from 0 to 1, not nan"),
        (["--before", "http://localhost:8000/v1", "--faults", "5"], "from 0 to 1, not 5.0"),
    ],
)
def test_invalid_options_are_refused(
    options: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["fault_proxy.py", *options])
    with pytest.raises(SystemExit):
        main()
    assert message in capsys.readouterr().err
