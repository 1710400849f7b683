"""A loopback server with OpenAI's batch API and its faults.

It counts every answer that it charges for, whether it was requested singly or in a batch.
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

SINGLE_REQUESTS = 4
"""The number of requests sent singly with the fixture ``small_batches``."""
Line = dict[str, Any]
LineFault = Callable[[Line, int], Line | None]
"""Return a result to use instead of the answer to a line of the batch of this number, or None."""
RequestFault = Callable[["BatchServer", web.Request], Awaitable[web.StreamResponse | None]]
FinalStatus = Callable[[int], str]


def always_completed(number: int) -> str:
    return "completed"


def failed_line(line: Line, status: int = 500, message: str = "the engine is down") -> Line:
    """A line of the error file: a result whose status is not 200."""
    body = {"error": {"message": message}}
    return {
        "custom_id": line["custom_id"],
        "response": {"status_code": status, "body": body},
        "error": None,
    }


@dataclass
class BatchServer(Loopback):
    """Also accepts files and batches.

    Attributes:
        polls: how many polls find a batch still in progress.
        final_status: the final status of the batch of a number; an expired batch is half done.
        line_fault: replaces the results of single lines.
        request_fault: called before each response about files and batches.
        max_lines: a batch with more lines exceeds the token limit.
        batches: all batches created, by id.
        charged: how often each body was answered and charged.
        single: the same for the bodies sent singly.
    """

    polls: int = 1
    final_status: FinalStatus = always_completed
    line_fault: LineFault | None = None
    request_fault: RequestFault | None = None
    max_lines: int = 1_000_000
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    charged: Counter[str] = field(default_factory=Counter)
    single: Counter[str] = field(default_factory=Counter)
    polls_by_batch: Counter[str] = field(default_factory=Counter)

    def add_routes(self, app: web.Application) -> None:
        super().add_routes(app)
        for path in ("/v1/files", "/v1/files/upload"):
            app.router.add_post(path, self._with_fault(self.upload))
        app.router.add_get("/v1/files/{id}/content", self._with_fault(self.content))
        app.router.add_post("/v1/batches", self._with_fault(self.create))
        app.router.add_get("/v1/batches", self._with_fault(self.listing))
        app.router.add_get("/v1/batches/{id}", self._with_fault(self.retrieve))

    def completion(self, request: Body) -> dict[str, Any]:
        body = {name: value for name, value in request.items() if name != "path"}
        text = json.dumps(body)
        self.charged[text] += 1
        if "path" in request:
            self.single[text] += 1
        return super().completion(request)

    def batch_completion(self, body: Body) -> dict[str, Any]:
        """Return the response to a request in a batch."""
        return self.completion(body)

    @property
    def charged_twice(self) -> list[str]:
        """Bodies charged more than once, except one of the first, used for the identity check."""
        repeated = [body for body, times in self.charged.items() if times > 1]
        first = list(self.charged)[: client.MIN_BATCH]
        return repeated[1:] if repeated and repeated[0] in first else repeated

    @property
    def sizes(self) -> list[int]:
        """The number of requests in each batch."""
        return [batch["request_counts"]["total"] for batch in self.batches.values()]

    def _with_fault(
        self, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(http: web.Request) -> web.StreamResponse:
            fault = await self.request_fault(self, http) if self.request_fault else None
            return fault or await handler(http)

        return handle

    async def upload(self, http: web.Request) -> web.StreamResponse:
        form = await http.post()
        upload = form["file"]
        assert isinstance(upload, web.FileField)
        assert form["purpose"] in ("batch", "batch-api")
        name = f"file-{len(self.files)}"
        self.files[name] = upload.file.read()
        return web.json_response({"id": name, "object": "file"})

    async def create(self, http: web.Request) -> web.StreamResponse:
        body = await http.json()
        if body["input_file_id"] not in self.files:
            return web.json_response({"error": {"message": "No such file"}}, status=503)
        return web.json_response(self.create_batch(body))

    def create_batch(self, body: dict[str, Any]) -> dict[str, Any]:
        """Create a batch and process it at once; polls show the results only later."""
        number = len(self.batches)
        lines = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
        assert len({line["custom_id"] for line in lines}) == len(lines)
        assert {line["url"] for line in lines} == {body["endpoint"]}
        status = self.final_status(number)
        batch: dict[str, Any] = {
            "id": f"batch_{number}",
            "object": "batch",
            "input_file_id": body["input_file_id"],
            "status": "validating",
            "final_status": status,
            "request_counts": {"total": len(lines), "completed": 0, "failed": 0},
        }
        self.batches[batch["id"]] = batch
        if len(lines) > self.max_lines:
            batch["final_status"] = status = "failed"
            message = "Enqueued token limit reached. Limit: 20000 enqueued tokens."
            batch["errors"] = {"data": [{"code": "token_limit_exceeded", "message": message}]}
        if status == "failed":
            return self.as_json(batch)
        answered, failed = [], []
        for index, line in enumerate(lines):
            if status in ("expired", "cancelled") and index % 2:
                error = {"code": "batch_expired", "message": "not executed in time"}
                failed.append({"custom_id": line["custom_id"], "response": None, "error": error})
            elif self.line_fault and (result := self.line_fault(line, number)) is not None:
                if result:
                    failed.append(result)
            else:
                response = {"status_code": 200, "body": self.batch_completion(line["body"])}
                answered.append(
                    {"custom_id": line["custom_id"], "response": response, "error": None}
                )
        for kind, results in (("output", answered), ("error", failed)):
            Random(number).shuffle(results)
            name = f"{kind}-{number}"
            self.files[name] = "\n".join(map(json.dumps, results)).encode()
            batch[f"{kind}_file_id"] = name if results else None
        batch["request_counts"] |= {"completed": len(answered), "failed": len(failed)}
        return self.as_json(batch)

    async def listing(self, http: web.Request) -> web.StreamResponse:
        data = [self.as_json(batch) for batch in reversed(self.batches.values())]
        return web.json_response({"object": "list", "data": data, "has_more": False})

    async def retrieve(self, http: web.Request) -> web.StreamResponse:
        name = http.match_info["id"]
        if name not in self.batches:
            return web.json_response({"error": {"message": "No such batch"}}, status=404)
        self.polls_by_batch[name] += 1
        return web.json_response(self.as_json(self.batches[name]))

    def as_json(self, batch: dict[str, Any]) -> dict[str, Any]:
        has_ended = self.polls_by_batch[batch["id"]] > self.polls
        if has_ended:
            return batch | {"status": batch["final_status"]}
        hidden = {"output_file_id": None, "error_file_id": None, "errors": None}
        return batch | {"status": "in_progress"} | hidden

    async def content(self, http: web.Request) -> web.StreamResponse:
        return web.Response(body=self.files[http.match_info["id"]])
