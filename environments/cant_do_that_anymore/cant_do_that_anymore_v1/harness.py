"""The agent of this environment: one chat request, without tools and without code."""

import httpx
import verifiers.v1 as vf
from verifiers.v1.types import content_text


class OneReplyHarness(vf.Harness[vf.HarnessConfig]):
    """Sends the task's messages once. It runs within this process and needs no container."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """Ask the model; ``verifiers`` records the request and the reply."""
        system, prompt = self.resolve_prompt(data)
        turns = [{"role": "system", "content": system}] if system else []
        if isinstance(prompt, str):
            turns.append({"role": "user", "content": prompt})
        else:
            turns += [{"role": m.role, "content": content_text(m.content)} for m in prompt or []]
        headers = {"Authorization": f"Bearer {secret}"}
        body = {"model": ctx.model, "messages": turns}
        async with httpx.AsyncClient(timeout=None) as client:
            response = await client.post(f"{endpoint}/chat/completions", json=body, headers=headers)
        failed = not response.is_success
        return vf.ProgramResult(int(failed), "", response.text if failed else "")
