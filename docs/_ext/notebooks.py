"""Notebooks to download: what only the site understands is removed from them."""

import json
import re
from pathlib import Path

DOWNLOAD = re.compile(r"^\*\{nb-download\}.*$\n?", re.MULTILINE)
LINK_TO_A_PAGE = re.compile(r"\[([^\]]+)\]\([^)]*\.md[^)]*\)")


def leave_out_what_is_of_the_site(app, problem):
    """Take links to pages, and to the notebook itself, out of notebooks."""
    if problem or app.builder.name != "html":
        return
    for path in Path(app.outdir, "_downloads").rglob("*.ipynb"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                words = DOWNLOAD.sub("", "".join(cell["source"]))
                words = LINK_TO_A_PAGE.sub(r"\1", words)
                cell["source"] = words.splitlines(keepends=True)
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False), "utf-8")


def setup(app):
    """Look at notebooks once all are written."""
    app.connect("build-finished", leave_out_what_is_of_the_site, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
