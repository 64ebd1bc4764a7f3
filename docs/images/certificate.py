"""Draw the picture of the README: python docs/images/certificate.py."""

from __future__ import annotations

from pathlib import Path

import sigmascale as ss


def main() -> None:
    """Write the certificates before and after as SVG, beside this file."""
    data = ss.datasets.load_health()
    mended = ss.Recalibrator().fit(data.calibration).apply(data.test)
    with ss.plots.drawing() as new_figure:
        figure = new_figure((5.2, 3.2))
        ss.plots.certificate(
            ss.validate(data.test), ss.validate(mended), ax=figure.subplots()
        )
        text = ss.plots.svg(
            figure,
            key="certificate",
            title="How right, how finely, before and after recalibration",
            alone=True,
        )
    Path(__file__).with_suffix(".svg").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
