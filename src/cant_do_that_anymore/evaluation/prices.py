"""What tokens cost, by the price list of the library ``genai-prices``, which needs no network."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import BadInput
from ..models.asking import Asking
from ..models.model import Model, Usage
from ..models.names import OUR_MODELS
from ..models.purse import FREE, Price, Purse
from ..models.server import TEXT_PREFIX
from .datasets import Dataset
from .metrics import Sample

_A_LOT = 1000
"""Prices are asked for so many tokens at once; far below where long prompts cost more."""
_PROVIDERS = {"grok": "x-ai", "azureai": "azure"}
"""Providers that Inspect AI and the price list call by different names."""


@dataclass(frozen=True)
class Cost:
    """US dollars by the price list; None where there is no price or nothing is known.

    Attributes:
        measuring: of all answers of the samples, whenever they were asked.
        dataset: of all questions asked to find the dataset, whenever they were asked.
        spent: of what this command itself asked; answers kept from before cost nothing new.
    """

    measuring: float | None = None
    dataset: float | None = None
    spent: float | None = None


def price_of(name: str, endpoint: str = "") -> Price | None:
    """The price of a model by its name and address, or None if the list has none.

    >>> price_of("cdta/random")
    Price(input=0.0, output=0.0, request=0.0)
    >>> price_of("some-model", "http://localhost:8000/v1") is None
    True
    """
    if name in OUR_MODELS:
        return FREE
    from genai_prices import Usage as Tokens  # takes half a second to import
    from genai_prices import calc_price

    provider, model = ("", name.removeprefix(TEXT_PREFIX)) if endpoint else _split(name)

    def dollars(usage: Tokens) -> float:
        if endpoint:
            found = calc_price(usage, model, provider_api_url=endpoint)
        else:
            found = calc_price(usage, model, provider_id=provider)
        return float(found.total_price)

    try:
        request = dollars(Tokens())
        many_in = dollars(Tokens(input_tokens=_A_LOT))
        many_out = dollars(Tokens(output_tokens=_A_LOT))
    except LookupError:
        return None
    return Price((many_in - request) / _A_LOT, (many_out - request) / _A_LOT, request)


def purse_for(model: Model, limit: float | None) -> Purse:
    """A purse that holds as many dollars, or no end of them.

    Raises:
        BadInput: if there is a limit and no price to keep it by.
    """
    if limit is None:
        return Purse()
    price = price_of(model.name, model.endpoint)
    if not price:
        raise BadInput(
            f"--max-cost cannot be kept: the price of {model.name} is unknown; leave it out, or "
            "limit the run with -n"
        )
    return Purse(limit, price)


def cost_of(asking: Asking, dataset: Dataset, samples: Sequence[Sample]) -> Cost:
    """What a run cost."""
    price = price_of(asking.model.name, asking.model.endpoint)
    if not price:
        return Cost()
    answers = [answer for s in samples for answer in (s.standard, s.variant) if not answer.error]
    used = sum((answer.usage for answer in answers), Usage())
    own_dataset = any(answer.version == dataset.version for answer in answers)
    return Cost(
        measuring=price.of(used, len(answers)),
        dataset=price.of(dataset.usage, dataset.asked) if dataset.asked and own_dataset else None,
        spent=price.of(asking.used, asking.asked),
    )


def _split(name: str) -> tuple[str, str]:
    provider, _, model = name.removeprefix(TEXT_PREFIX).partition("/")
    return _PROVIDERS.get(provider, provider), model
