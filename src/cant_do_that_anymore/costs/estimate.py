"""Estimates: planned runs with the forecast of what each still needs."""

from typing import Any, NamedTuple

from ..task.spec import Spec
from .approval import cheaper_than
from .forecast import Figures, Forecast


class Planned(NamedTuple):
    """A run that is planned, and its forecast; ``model`` is its display name."""

    model: str
    spec: Spec
    forecast: Forecast

    @property
    def heading(self) -> str:
        """The model, the eval, and any effort and pool."""
        effort, pool = self.spec.reasoning_effort, self.spec.pool
        settings = [f"{effort} effort" if effort else "", f"pool {pool}" if pool else ""]
        return ", ".join(filter(None, (self.model, self.spec.eval, *settings)))

    @property
    def needs_requests(self) -> bool:
        """Whether any request has to be sent."""
        return self.forecast.total.requests.high > 0

    @property
    def steps(self) -> dict[str, Figures]:
        """The steps that need requests, their total, and the total without reasoning."""
        forecast = self.forecast
        steps = {"dataset": forecast.dataset, "measuring": forecast.measuring}
        rows = {title: step for title, step in steps.items() if step.requests.high}
        if len(rows) > 1:
            rows["total"] = forecast.total
        if forecast.at_once:
            rows["without reasoning"] = forecast.at_once
        return rows

    @property
    def cheaper(self) -> list[str]:
        """Options that usually cost less, if the run may need approval."""
        cost = self.forecast.total.dollars
        if not cost or cost.high <= (Spec.ask_above or 0.0):
            return []
        return cheaper_than(self.spec, self.forecast)

    def rows(self) -> list[dict[str, object]]:
        """Return one row for each step and figure: the expected value, with a 95% range."""
        return [
            {
                "model": self.model,
                "eval": self.spec.eval,
                "step": step,
                "measure": name,
                "value": figure.expected,
                "low": figure.low,
                "high": figure.high,
            }
            for step, figures in self.steps.items()
            for name, figure in figures._asdict().items()
            if figure
        ]

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        steps = ("dataset", "measuring", "total", "at_once")
        figures = {name: getattr(self.forecast, name) for name in steps}
        return {
            "model": self.model,
            "eval": self.spec.eval,
            **{
                name: of_step
                and {key: value and value._asdict() for key, value in of_step._asdict().items()}
                for name, of_step in figures.items()
            },
            "assumptions": self.forecast.assumptions,
            "cheaper": self.cheaper,
        }
