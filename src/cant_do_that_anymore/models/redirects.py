"""Redirects: what is sent to one server goes to no other."""

from collections.abc import Callable

from aiohttp import ClientHandlerType, ClientMiddlewareType, ClientRequest, ClientResponse

from ..errors import UserError


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
            is_answering = url.raw_path.endswith(path)
            found = f"{url.origin()}{url.raw_path.removesuffix(path) if is_answering else ''}"
            raise UserError(
                f"{endpoint} redirects to another server, {hide(found)}, to which nothing was "
                "sent; if that one is meant, --base-url takes its address"
            )
        return await send(request)

    return stay
