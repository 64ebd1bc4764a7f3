"""Parameters of what learns, as scikit-learn reads, sets and clones them.

Objects keep the habits of scikit-learn without its base class: to import that takes
longer than most commands need for their work.
"""

from __future__ import annotations

import inspect
from typing import Any, Self

from ..exceptions import InvalidInputError
from .text import listed, quoted


class Parametrised:
    """What is made of parameters, which are kept untouched under their names.

    >>> class Doubling(Parametrised):
    ...     def __init__(self, times=2, inner=None):
    ...         self.times, self.inner = times, inner
    >>> Doubling(3).set_params(inner=Doubling()).set_params(inner__times=4)
    Doubling(times=3, inner=Doubling(times=4))
    """

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Return the parameters by name, with their defaults."""
        if cls.__init__ is object.__init__:
            return {}
        parameters = list(inspect.signature(cls.__init__).parameters.values())
        return {parameter.name: parameter.default for parameter in parameters[1:]}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool, default True
            Whether those of parameters that have some are there, too, as "name__inner".

        Returns
        -------
        dict
        """
        parameters = {name: getattr(self, name) for name in self._defaults()}
        if deep:
            for name, value in list(parameters.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    for inner, inner_value in value.get_params().items():
                        parameters[f"{name}__{inner}"] = inner_value
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name.

        Parameters
        ----------
        **parameters
            New values; "name__inner" is a parameter of the parameter "name".

        Returns
        -------
        self
        """
        names = list(self._defaults())
        # a parameter before what is set of it
        for path in sorted(parameters, key=lambda path: path.count("__")):
            name, _, inner = path.partition("__")
            if name not in names:
                msg = (
                    f"{type(self).__name__} has no parameter {quoted(name)}; it has "
                    f"{listed(names) or 'none'}."
                )
                raise InvalidInputError(msg)
            if inner:
                getattr(self, name).set_params(**{inner: parameters[path]})
            else:
                setattr(self, name, parameters[path])
        return self

    def __repr__(self) -> str:
        """Return how it was made, without what is the default."""
        changed = []
        for name, default in self._defaults().items():
            value = repr(getattr(self, name))
            if value != repr(default):
                changed.append(f"{name}={value}")
        return f"{type(self).__name__}({', '.join(changed)})"


def check_is_fitted(learned: Any) -> None:
    """Refuse a recalibrator that has learned nothing yet, by scikit-learn's error."""
    if hasattr(learned, "scale_"):
        return
    from sklearn.exceptions import NotFittedError

    msg = f"This {type(learned).__name__} has learned nothing yet: call `fit` first."
    raise NotFittedError(msg)
