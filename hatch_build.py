"""Metadata that needs the repository's address, which pyproject.toml has once."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class RepositoryHook(MetadataHookInterface):
    """Derive the project's URLs and the README of a package index from the address."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in what pyproject.toml calls dynamic."""
        readme = Path(self.root, "README.md").read_text("utf-8")
        address = self.config["repository"]
        if address:
            tag = f"v{metadata['version']}"
            metadata["urls"] = {
                "Repository": address,
                "Documentation": f"{address}/blob/{tag}/docs/index.md",
                "Changelog": f"{address}/blob/{tag}/CHANGELOG.md",
                "Issues": f"{address}/issues",
            }
            # Readers of an index have no checkout.
            here, there = '".[cli]"  # in a checkout;', '"sigmascale[cli]"  #'
            readme = readme.replace(here, there)
            for start, view in (r"!\[", "raw"), (r"\[", "blob"):  # pictures, then links
                readme = re.sub(
                    rf"({start}[^]]*\]\()(?!https?:|#)",
                    rf"\1{address}/{view}/{tag}/",
                    readme,
                )
        metadata["readme"] = {"content-type": "text/markdown", "text": readme}
