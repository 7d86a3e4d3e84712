"""Metadata of the package that depend on where it is built: links to the repository, and the text of the index page."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)\s]+)(?=\))")


class CustomMetadataHook(MetadataHookInterface):
    """URLs of the project and a README with whole links, where GitHub Actions builds; the README as it is elsewhere."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the readme and, in GitHub Actions, the URLs."""
        text = Path(self.root, "README.md").read_text("utf-8")
        server, name = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
        if server and name:
            home, version = f"{server}/{name}", os.environ.get("GITHUB_REF_NAME", "main")
            text = LINK.sub(lambda link: f"{home}/{_kind(link[1])}/{version}/{link[1]}", text)
            owner, _, repository = name.partition("/")
            metadata["urls"] = {
                "Repository": home,
                "Documentation": f"https://{owner}.github.io/{repository}/",
                "Changelog": f"{home}/blob/main/CHANGELOG.md",
                "Issues": f"{home}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def _kind(path: str) -> str:
    return "raw" if path.endswith((".svg", ".png")) else "blob"
