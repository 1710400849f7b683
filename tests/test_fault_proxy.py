"""The proxy that injects faults: its effect on a run, and that a schedule can be repeated."""

import asyncio

import aiohttp
import pytest

from fault_proxy import PASSED_ON, FaultProxy, Schedule, main
from faults import FAULTS
from testing import Serve, measure, positions, serving, wavering

pytestmark = pytest.mark.usefixtures("impatient")
SAMPLES = 30


def test_a_run_through_the_proxy_is_the_run_without_and_the_schedule_repeats_itself(
    serve: Serve,
) -> None:
    met, loopback = [], serve(wavering)
    faultless = measure(loopback, dataset=positions(SAMPLES))
    for seed, connections in [(1, 8), (1, 1), (2, 8)]:
        with serving(FaultProxy(loopback.url, Schedule(0.3, seed), patience=0.01)) as proxy:
            options = {"base_url": proxy.url, "fresh": True, "max_connections": connections}
            run = measure(loopback, dataset=positions(SAMPLES), **options)
        assert run.samples == faultless.samples
        assert run.results == faultless.results
        assert proxy.done.pop(PASSED_ON) == 2 * SAMPLES
        met.append(proxy.done)
    assert len(loopback.requests) == (1 + len(met)) * 2 * SAMPLES
    assert met[0] == met[1] != met[2]


def test_whether_a_request_fails_depends_on_nothing_but_its_body_and_how_often_it_came() -> None:
    bodies = [b"%d" % number for number in range(2_000)]
    alone, among_others = Schedule(0.05, seed=7), Schedule(0.05, seed=7)
    first = [alone.fault(body) for body in bodies]
    assert [among_others.fault(body) for body in reversed(bodies)] == first[::-1]
    assert [alone.fault(body) for body in bodies] != first
    assert [Schedule(0.05, seed=8).fault(body) for body in bodies] != first
    assert 60 < len(bodies) - first.count(None) < 140
    assert {*first, None} == {*FAULTS, None}


def test_what_is_passed_on_stays_as_it_is() -> None:
    async def asked(url: str) -> tuple[int, object, object]:
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer x"}) as session:
            turn = {"role": "user", "content": "e2e4"}
            request = {"model": "m", "messages": [turn]}
            async with session.post(f"{url}/chat/completions", json=request) as reply:
                said = await reply.json()
            async with session.get(f"{url}/models") as models, session.get(f"{url}/x?y") as other:
                return other.status, said, await models.json()

    with (
        serving(lambda _: "e7e5") as loopback,
        serving(FaultProxy(loopback.url, Schedule(0))) as proxy,
    ):
        assert asyncio.run(asked(proxy.url)) == asyncio.run(asked(loopback.url))
    there, here = loopback.headers
    assert (there["Authorization"], there["Content-Type"]) == ("Bearer x", "application/json")
    assert there.keys() == here.keys()


def test_before_a_server_that_is_not_there_it_says_so() -> None:
    async def told(url: str) -> str:
        async with aiohttp.ClientSession() as session, session.post(url, data=b"x") as reply:
            return f"{reply.status} {await reply.text()}"

    with serving(wavering) as loopback:
        pass
    with serving(FaultProxy(loopback.url, Schedule(0))) as proxy:
        said = asyncio.run(told(proxy.url))
    assert said.startswith("502 ")
    assert f"{loopback.url} does not answer" in said


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--before", "localhost:8000"], "not 'localhost:8000'"),
        (["--before", "http://localhost:8000/v1", "--faults", "nan"], "from 0 to 1, not nan"),
        (["--before", "http://localhost:8000/v1", "--faults", "5"], "from 0 to 1, not 5.0"),
    ],
)
def test_what_would_pass_on_nothing_or_spoil_nothing_is_refused(
    given: list[str],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["fault_proxy.py", *given])
    with pytest.raises(SystemExit):
        main()
    assert told in capsys.readouterr().err
