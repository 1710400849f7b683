"""Redirects: what is sent to one server goes to no other."""

from collections.abc import Callable

from aiohttp import ClientHandlerType, ClientMiddlewareType, ClientRequest, ClientResponse

from ..errors import Problem


def staying_at(endpoint: str, path: str, hide: Callable[[str], str]) -> ClientMiddlewareType:
    """Follows redirects within an origin, and refuses all others before anything is sent.

    The client itself leaves out keys on the way to another origin, but neither what stands in
    other headers nor the question.
    """

    origin: tuple[object, ...] = ()

    async def stay(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
        nonlocal origin
        url = request.url
        asked = url.scheme, url.host, url.port
        origin = origin or asked  # nobody is redirected before the first request
        if asked != origin:
            found = f"{url.origin()}{url.raw_path.removesuffix(path)}"
            raise Problem(
                f"{endpoint} redirects to another server, to which nothing was sent; "
                f"--base-url {hide(found)} would ask that one"
            )
        return await send(request)

    return stay
