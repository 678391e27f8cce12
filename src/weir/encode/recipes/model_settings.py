"""Settings that every kind of model has: how they are checked, and how they print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

from weir.encode.recipes.cards import check_kind
from weir.errors import BadValue

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["ARTIFACT", "check_least", "check_model", "given_settings", "model_arguments"]

ARTIFACT = "a name of `weir models`, a hub name or a folder"


def check_model(model: object, kind: str, otherwise: str) -> None:
    """Raise BadValue for a model that is no text, or whose card says that it is of another kind; otherwise: what that
    means."""
    if not isinstance(model, str) or not model.strip():
        raise BadValue(f"model is {model!r}; expected {ARTIFACT}")
    check_kind(model, kind, otherwise)


def check_least(settings: Mapping[str, tuple[object, int]], optional: bool = True) -> None:
    """Raise BadValue for a setting that is no whole number from its least one. settings: name -> (value, least);
    optional: whether None leaves it to the checkpoint."""
    for name, (value, least) in settings.items():
        if not (optional and value is None) and (type(value) is not int or value < least):
            raise BadValue(f"{name} is {value!r}; expected a whole number from {least}")


def given_settings(config: DataclassInstance, leave_out: tuple[str, ...] = ("model",)) -> dict[str, object]:
    """The settings of a configuration that are not by default, by name, in the order in which they are declared."""
    values = {f.name: (getattr(config, f.name), f.default) for f in fields(config) if f.name not in leave_out}
    return {name: value for name, (value, default) in values.items() if value != default}


def model_arguments(config: DataclassInstance, model: str) -> tuple[list[object], dict[str, object]]:
    """How a system that takes a configuration's settings prints them: the model, and what is not by default."""
    return [model], given_settings(config)
