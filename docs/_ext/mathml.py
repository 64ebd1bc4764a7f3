"""Formulas as MathML, which browsers draw themselves: no script, no network."""

from docutils import nodes
from docutils.utils.math import latex2mathml


def visit_inline(writer, node):
    """Write a formula within a line."""
    writer.body.append(latex2mathml.tex2mathml(node.astext()))
    raise nodes.SkipNode


def visit_display(writer, node):
    """Write a formula of its own."""
    writer.body.append('<div class="formula">')
    writer.body.append(latex2mathml.tex2mathml(node.astext(), as_block=True))
    writer.body.append("</div>")
    raise nodes.SkipNode


def setup(app):
    """Offer the renderer to ``html_math_renderer``."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
