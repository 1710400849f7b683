"""What tokens cost, by the price list of the library ``genai-prices``, which needs no network."""

from collections.abc import Sequence
from typing import Any

from ..errors import BadInput
from ..models.asking import Asking
from ..models.model import Known, Usage
from ..models.names import OUR_MODELS
from ..models.purse import FREE, Price, Purse
from .results import Cost, Dataset
from .spec import Spec
from .vocabulary import Sample

_A_LOT = 1000
"""Prices are asked for so many tokens at once; far below where long prompts cost more."""
_PROVIDERS = {"grok": "x-ai", "azureai": "azure"}
"""Providers that Inspect AI and the price list call by different names."""


def price_of(model: Known) -> Price | None:
    """The price of a model by its address, or by its name at a provider; None if unknown."""
    if model.name in OUR_MODELS:
        return FREE
    from genai_prices import Usage as Tokens  # takes half a second to import
    from genai_prices import calc_price

    name = str(model.identity["name"])
    if model.identity["api"] == "inspect":
        provider, _, name = name.partition("/")
        whose: dict[str, Any] = {"provider_id": _PROVIDERS.get(provider, provider)}
    else:
        whose = {"provider_api_url": model.endpoint}

    def dollars(usage: Tokens) -> float:
        return float(calc_price(usage, name, **whose).total_price)

    try:
        request = dollars(Tokens())
        many_in = dollars(Tokens(input_tokens=_A_LOT))
        many_out = dollars(Tokens(output_tokens=_A_LOT))
    except LookupError:
        return None
    return Price((many_in - request) / _A_LOT, (many_out - request) / _A_LOT, request)


def price_for(spec: Spec, model: Known) -> Price | None:
    """The price of a model, asked as the spec says."""
    price = price_of(model)
    return price.in_batch if price and spec.batch else price


def purse_for(model: Known, limit: float | None) -> Purse:
    """A purse that holds as many dollars, or no end of them.

    Raises:
        BadInput: if there is a limit and no price to keep it by.
    """
    if limit is None:
        return Purse()
    check_price(model)
    return Purse(limit)


def check_price(model: Known) -> None:
    """Refuse to keep a cost limit with a model whose price is unknown.

    Raises:
        BadInput: if it is.
    """
    if not price_of(model):
        raise BadInput(
            f"--max-cost cannot be kept: the price of {model.name} is unknown; leave it out, or "
            "limit the run with -n"
        )


def cost_of(asking: Asking, dataset: Dataset, samples: Sequence[Sample]) -> Cost:
    """What a run cost."""
    price = price_of(asking.model)
    if not price:
        return Cost()
    if asking.in_waves:
        price = price.in_batch
    replies = (reply for sample in samples for reply in sample.replies.values())
    answers = [reply.answer for reply in replies if not reply.answer.error]
    used = sum((answer.usage for answer in answers), Usage())
    own_dataset = any(answer.version == dataset.version for answer in answers)
    return Cost(
        measuring=price.of(used, len(answers)),
        dataset=price.of(dataset.usage, dataset.asked) if dataset.asked and own_dataset else None,
        spent=asking.till.spent,
    )
