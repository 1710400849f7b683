"""Create the model and the client that a spec describes."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from ..errors import pluralize
from ..providers.base import Model, ModelInfo
from ..providers.catalogue import Name, parse_name
from ..providers.openai_api import ServerModel
from ..task.spec import DEFAULT_MODEL, Spec
from .batch.client import BatchClient, check_batch
from .batch.jobs import BatchJournal
from .budget import FREE, Budget
from .client import Client
from .pricing import price_for, purse_for
from .store import opened_store

log = logging.getLogger(__name__)


def model_info(spec: Spec) -> ModelInfo:
    """What is known of the model that the spec names, without a key and without asking it."""
    return _name_in(spec).info()


def create_model(spec: Spec) -> Model:
    """That model, ready to be asked."""
    if spec.batch and not spec.base_url:  # before anything is loaded or a key is missing
        check_batch(model_info(spec), fresh=spec.fresh)
    return _name_in(spec).load()


def is_remote(model: ModelInfo) -> bool:
    """Whether others decide who answers to the name, and may change their mind."""
    return "api" in model.identity


def _name_in(spec: Spec) -> Name:
    """A server may have one model only, which needs no name."""
    name = parse_name(spec.model or (None if spec.base_url else DEFAULT_MODEL), spec.base_url)
    return replace(name, tag=spec.tag, headers=spec.header)


@asynccontextmanager
async def open_client(
    spec: Spec, model: Model, purse: Budget | None = None
) -> AsyncIterator[Client]:
    """Who asks the model as the spec says; afterwards the model is closed."""
    try:
        with opened_store(fresh=spec.fresh) as store:
            purse, price = purse or purse_for(spec, model), price_for(spec, model) or FREE
            if spec.batch and isinstance(model, ServerModel):
                yield BatchClient(model, store, spec.max_connections, purse, price)
                return
            if under_way := BatchJournal(store, model).under_way():
                told = pluralize(under_way, "question")
                log.warning("a batch with %s is under way; --batch waits for its answers", told)
            yield Client(model, store, spec.max_connections, purse, price)
    finally:
        await model.close()
