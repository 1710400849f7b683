"""Whom a spec names, and how they are asked."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from ..errors import pluralize
from ..models.asking import Asking
from ..models.batching import Batching, check_batch
from ..models.ledger import Ledger
from ..models.purse import FREE, Purse
from ..models.store import opened_store
from ..providers.base import Model, ModelInfo
from ..providers.catalogue import Name, parsed
from ..providers.openai_api import ServerModel
from .prices import price_for, purse_for
from .spec import DEFAULT_MODEL, Spec

log = logging.getLogger(__name__)


def known_for(spec: Spec) -> ModelInfo:
    """What is known of the model that the spec names, without a key and without asking it."""
    return _name_in(spec).known()


def model_for(spec: Spec) -> Model:
    """That model, ready to be asked."""
    if spec.batch and not spec.base_url:  # before anything is loaded or a key is missing
        check_batch(known_for(spec), fresh=spec.fresh)
    return _name_in(spec).load()


def has_address(model: ModelInfo) -> bool:
    """Whether others decide who answers to the name, and may change their mind."""
    return "api" in model.identity


def _name_in(spec: Spec) -> Name:
    """A server may have one model only, which needs no name."""
    name = parsed(spec.model or (None if spec.base_url else DEFAULT_MODEL), spec.base_url)
    return replace(name, tag=spec.tag, headers=spec.header)


@asynccontextmanager
async def asking_for(spec: Spec, model: Model, purse: Purse | None = None) -> AsyncIterator[Asking]:
    """Who asks the model as the spec says; afterwards the model is closed."""
    try:
        with opened_store(fresh=spec.fresh) as store:
            purse, price = purse or purse_for(spec, model), price_for(spec, model) or FREE
            if spec.batch and isinstance(model, ServerModel):
                yield Batching(model, store, spec.max_connections, purse, price)
                return
            if under_way := Ledger(store, model).under_way():
                told = pluralize(under_way, "question")
                log.warning("a batch with %s is under way; --batch waits for its answers", told)
            yield Asking(model, store, spec.max_connections, purse, price)
    finally:
        await model.close()
