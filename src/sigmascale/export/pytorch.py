"""A recalibrator as a PyTorch module."""

from __future__ import annotations

from typing import Any

from .learned import Learned


def to_torch(
    scaler: Any, *, coverage: float | None = None, asymmetric: bool = False
) -> Any:
    """Return a fitted recalibrator as a PyTorch module.

    The module maps the conditioning table, a tensor of shape (n, n_columns) with the
    uncertainty first, or of shape (n,), to recalibrated uncertainties of the same dtype
    and device. All that was learned is in buffers: it moves with ``.to(device)`` and is
    saved with the ``state_dict`` of the model that it is a part of. Buffers stay in
    float64, in which everything is computed, when the model is cast to less.

    Parameters
    ----------
    scaler : recalibrator
        A fitted one.
    coverage : float, optional
        Return limits of the errors, too, which hold with this probability; needs
        `conformalize`.
    asymmetric : bool, default False
        Whether the limits are quantiles of their own.

    Returns
    -------
    torch.nn.Module
        ``module(X)`` gives uncertainties or, if `coverage` is given, uncertainties and
        limits of shape (n, 2). ``module(X, by_category)`` is for limits by category.

    Notes
    -----
    A module raises no errors and no warnings: where the uncertainty is negative, or a
    number that is needed is missing or infinite, the result is NaN. Labels that were
    text are given by their position in ``module.labels[name]``; other numbers count as
    unknown, and take the average factor.

    The gradient is that of the arithmetic and of interpolation. A step, from one bin to
    the next, has the gradient 0: of a bin-wise factor s(u) u it is s.

    The module can be exported (``torch.export``), compiled and traced; it cannot be
    scripted (``torch.jit.script``), because it runs a program of Python functions.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> import sigmascale as ss
    >>> scaler = ss.TemperatureScaling().fit([1.0, 1.0], [2.0, -2.0])
    >>> ss.export.to_torch(scaler)(torch.tensor([1.0, 3.0]))  # doctest: +SKIP
    tensor([2., 6.])
    """
    learned = Learned.of(scaler, coverage, asymmetric=asymmetric)
    try:
        from .torch_module import Recalibration
    except ImportError as problem:
        if problem.name != "torch":
            raise
        msg = "A PyTorch module needs PyTorch: pip install torch."
        raise ImportError(msg, name="torch") from problem
    return Recalibration(learned)
