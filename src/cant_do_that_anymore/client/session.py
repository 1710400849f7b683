"""Create the model and the client that a spec describes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ..providers.base import Model, ModelInfo
from ..providers.catalog import Name, parse_name
from ..task.spec import DEFAULT_MODEL, Spec
from .cache import open_cache
from .client import Client
from .pricing import CostLimit, Spending, cost_limit_for, price_for


def model_info(spec: Spec) -> ModelInfo:
    """Return what is known about the spec's model, without a key and without a request."""
    return _name_in(spec).info()


def create_model(spec: Spec) -> Model:
    """Create the spec's model, ready to answer."""
    return _name_in(spec).load()


def _name_in(spec: Spec) -> Name:
    """Parse the model's name. A server may serve a single model, which needs no name."""
    model = spec.model or (None if spec.base_url else DEFAULT_MODEL)
    return parse_name(model, spec.base_url, spec.tag, spec.header)


@asynccontextmanager
async def open_client(
    spec: Spec, model: Model, limit: CostLimit | None = None
) -> AsyncIterator[Client]:
    """Open a client for the model, as the spec describes it; close the model afterwards."""
    try:
        with open_cache(model.info, fresh=spec.fresh) as cache:
            limit = limit or cost_limit_for(spec, model.info)
            spending = Spending(limit, price_for(spec, model.info))
            yield Client(model, cache, spec.max_connections, spending)
    finally:
        await model.close()
