"""A loopback server with OpenAI's batch API, and its faults.

It counts every answer that it charges for, whether it was asked for at once or in a batch.
"""

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from aiohttp import web

from cant_do_that_anymore.client.batch import client
from loopback import Body, Loopback

SINGLY = 4
"""So many requests are sent singly with the fixture ``small_batches``."""
Line = dict[str, Any]
Spoils = Callable[[Line, int], Line | None]
"""Gives another result than the answer for a line of the batch of that number, or None."""
Disturbs = Callable[["BatchServer", web.Request], Awaitable[web.StreamResponse | None]]
Ends = Callable[[int], str]


def always_completed(number: int) -> str:
    return "completed"


def failed_line(line: Line, status: int = 500, message: str = "the engine is down") -> Line:
    """A result with another status than 200, as it stands in the file of errors."""
    body = {"error": {"message": message}}
    return {
        "custom_id": line["custom_id"],
        "response": {"status_code": status, "body": body},
        "error": None,
    }


@dataclass
class BatchServer(Loopback):
    """Takes files and batches as well.

    Attributes:
        polls: so often a batch is under way when it is looked at.
        ends: the status in which the batch of a number ends; an expired one has done half.
        spoils: spoils single lines.
        disturbs: called before anything about files and batches is answered.
        most_lines: a larger batch has too many tokens.
        batches: all that were made, by id.
        charged: how often each body was answered, and paid.
        live: the bodies that were asked for at once.
    """

    polls: int = 1
    ends: Ends = always_completed
    spoils: Spoils | None = None
    disturbs: Disturbs | None = None
    most_lines: int = 1_000_000
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    charged: Counter[str] = field(default_factory=Counter)
    live: Counter[str] = field(default_factory=Counter)
    looks: Counter[str] = field(default_factory=Counter)

    def add_routes(self, app: web.Application) -> None:
        super().add_routes(app)
        for path in ("/v1/files", "/v1/files/upload"):
            app.router.add_post(path, self._disturbed(self.upload))
        app.router.add_get("/v1/files/{id}/content", self._disturbed(self.content))
        app.router.add_post("/v1/batches", self._disturbed(self.create))
        app.router.add_get("/v1/batches", self._disturbed(self.listing))
        app.router.add_get("/v1/batches/{id}", self._disturbed(self.look))

    def completion(self, request: Body) -> dict[str, Any]:
        body = {name: value for name, value in request.items() if name != "path"}
        text = json.dumps(body)
        self.charged[text] += 1
        if "path" in request:
            self.live[text] += 1
        return super().completion(request)

    def in_batch(self, body: Body) -> dict[str, Any]:
        """The answer to a request in a batch."""
        return self.completion(body)

    @property
    def twice(self) -> list[str]:
        """What was charged more than once, but for one of the first, which tells who answers."""
        again = [body for body, times in self.charged.items() if times > 1]
        first = list(self.charged)[: client.MIN_BATCH]
        return again[1:] if again and again[0] in first else again

    @property
    def sizes(self) -> list[int]:
        """How many requests each batch had."""
        return [batch["request_counts"]["total"] for batch in self.batches.values()]

    def _disturbed(
        self, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handled(http: web.Request) -> web.StreamResponse:
            disturbed = await self.disturbs(self, http) if self.disturbs else None
            return disturbed or await handler(http)

        return handled

    async def upload(self, http: web.Request) -> web.StreamResponse:
        form = await http.post()
        upload = form["file"]
        assert isinstance(upload, web.FileField)
        assert form["purpose"] in ("batch", "batch-api")
        name = f"file-{len(self.files)}"
        self.files[name] = upload.file.read()
        return web.json_response({"id": name, "object": "file"})

    async def create(self, http: web.Request) -> web.StreamResponse:
        wanted = await http.json()
        if wanted["input_file_id"] not in self.files:
            return web.json_response({"error": {"message": "No such file"}}, status=503)
        return web.json_response(self.made(wanted))

    def made(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Make a batch, and do all its work at once; it shows that only later."""
        number = len(self.batches)
        lines = [json.loads(line) for line in self.files[wanted["input_file_id"]].splitlines()]
        assert len({line["custom_id"] for line in lines}) == len(lines)
        assert {line["url"] for line in lines} == {wanted["endpoint"]}
        status = self.ends(number)
        batch: dict[str, Any] = {
            "id": f"batch_{number}",
            "object": "batch",
            "input_file_id": wanted["input_file_id"],
            "status": "validating",
            "ends": status,
            "request_counts": {"total": len(lines), "completed": 0, "failed": 0},
        }
        self.batches[batch["id"]] = batch
        if len(lines) > self.most_lines:
            batch["ends"] = status = "failed"
            message = "Enqueued token limit reached. Limit: 20000 enqueued tokens."
            batch["errors"] = {"data": [{"code": "token_limit_exceeded", "message": message}]}
        if status == "failed":
            return self._shown(batch)
        answered, faulty = [], []
        for place, line in enumerate(lines):
            if status in ("expired", "cancelled") and place % 2:
                error = {"code": "batch_expired", "message": "not executed in time"}
                faulty.append({"custom_id": line["custom_id"], "response": None, "error": error})
            elif self.spoils and (spoilt := self.spoils(line, number)) is not None:
                if spoilt:
                    faulty.append(spoilt)
            else:
                response = {"status_code": 200, "body": self.in_batch(line["body"])}
                answered.append(
                    {"custom_id": line["custom_id"], "response": response, "error": None}
                )
        for kind, results in (("output", answered), ("error", faulty)):
            Random(number).shuffle(results)
            name = f"{kind}-{number}"
            self.files[name] = "\n".join(map(json.dumps, results)).encode()
            batch[f"{kind}_file_id"] = name if results else None
        batch["request_counts"] |= {"completed": len(answered), "failed": len(faulty)}
        return self._shown(batch)

    async def listing(self, http: web.Request) -> web.StreamResponse:
        shown = [self._shown(batch) for batch in reversed(self.batches.values())]
        return web.json_response({"object": "list", "data": shown, "has_more": False})

    async def look(self, http: web.Request) -> web.StreamResponse:
        name = http.match_info["id"]
        if name not in self.batches:
            return web.json_response({"error": {"message": "No such batch"}}, status=404)
        self.looks[name] += 1
        return web.json_response(self._shown(self.batches[name]))

    def _shown(self, batch: dict[str, Any]) -> dict[str, Any]:
        has_ended = self.looks[batch["id"]] > self.polls
        if has_ended:
            return batch | {"status": batch["ends"]}
        hidden = {"output_file_id": None, "error_file_id": None, "errors": None}
        return batch | {"status": "in_progress"} | hidden

    async def content(self, http: web.Request) -> web.StreamResponse:
        return web.Response(body=self.files[http.match_info["id"]])
