"""Whose a model may be that was named without its provider."""

_PROVIDERS = ("openai", "anthropic", "google")


def with_provider(name: str) -> str:
    """The full name, if the price list knows the model of a large provider, else "".

    >>> with_provider("gpt-4o"), with_provider("my-model")
    ('openai/gpt-4o', '')
    """
    from genai_prices import Usage, calc_price  # takes half a second to import

    for provider in _PROVIDERS:
        try:
            calc_price(Usage(), name, provider_id=provider)
        except LookupError:
            continue
        return f"{provider}/{name}"
    return ""
