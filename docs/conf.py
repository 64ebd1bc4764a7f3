"""How Sphinx builds the site; ``make docs`` runs it with warnings as errors.

Pages are Markdown (MyST). Their code cells run during the build, so that every number
and picture on the site comes from the installed package.
Nothing is loaded from the network, neither by the build nor by the pages.
"""

import os
import sys
import sysconfig
import warnings
from importlib.metadata import metadata
from pathlib import Path

import sigmascale.exceptions

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
# The kernel of the code cells finds the commands of this environment, and its settings
# are ours, whatever the user's own are.
os.environ["PATH"] = f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}"
os.environ["IPYTHONDIR"] = str(Path(__file__).parent / "_ipython")

project = "sigmascale"
author = "The sigmascale developers"
project_copyright = author
package = metadata("sigmascale")
version = release = package["Version"]
urls = dict(each.split(", ") for each in package.get_all("Project-URL", []))

extensions = [
    "as_read",  # ours, in _ext, as are the next two
    "mathml",
    "notebooks",
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "architecture.md"]  # which is for the repository
nitpicky = True

# -- Markdown and the code cells in it
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "smartquotes"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 600  # on a busy machine
nb_merge_streams = True
nb_render_markdown_format = "gfm"  # tables in the output of cells

# -- the reference
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
add_module_names = False

# Names of the package that are modules of its rooms are imported by these names.
for each in ("datasets", "export", "frames"):
    sys.modules[f"sigmascale.{each}"] = getattr(sigmascale, each)

# What examples do is right: a warning of ours is a mistake in them, or a false alarm.
for each in vars(sigmascale.exceptions).values():
    if isinstance(each, type) and issubclass(each, Warning):
        warnings.simplefilter("error", each)

# -- the pages
html_theme = "pydata_sphinx_theme"
html_title = "sigmascale"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"*": [], "tutorials/*": []}  # the reference alone has many pages
html_theme_options = {
    "header_links_before_dropdown": 4,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {"**": ["page-toc"], "cheatsheet": []},
    "show_prev_next": True,
    "show_toc_level": 2,
    "github_url": urls.get("Repository", ""),
}


def leave_out_what_is_inherited(app, what, name, obj, skip, options):
    """Leave out members that scikit-learn or Python gave to a class."""
    function = getattr(obj, "fget", None) or obj
    module = getattr(function, "__module__", None) or ""
    return None if module.startswith("sigmascale") else True


def find_in_the_package(app, env, node, contnode):
    """Resolve a name of the package that a docstring of a submodule mentions."""
    if node.get("refdomain") != "py":
        return None
    target = f"sigmascale.{node['reftarget']}"
    python = env.get_domain("py")
    return python.resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], target, node, contnode
    )


def setup(app):
    """Connect what Sphinx has no setting for."""
    app.connect("missing-reference", find_in_the_package)
    app.connect("autodoc-skip-member", leave_out_what_is_inherited)
