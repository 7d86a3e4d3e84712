"""Licences of data, as files beside it name them."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_adaptive_eval.inputs import read_regular

_LICENCES = (
    ("Apache License", "Apache-2.0"),
    ("MIT License", "MIT"),
    ("BSD 3-Clause", "BSD-3-Clause"),
    ("Attribution-ShareAlike 4.0", "CC-BY-SA-4.0"),
    ("Attribution-ShareAlike 3.0", "CC-BY-SA-3.0"),
    ("Attribution-NonCommercial 4.0", "CC-BY-NC-4.0"),
    ("Attribution 4.0", "CC-BY-4.0"),
    ("Academic Free License", "AFL-3.0"),
    ("GNU GENERAL PUBLIC LICENSE", "GPL"),
    ("Permission is hereby granted, free of charge", "MIT"),
)


#: Files that may name a licence among other things.
_ABOUT = ("README.md", "dataset_info.json")


def licence_of(source: Path) -> str:
    """Return the licence that a file beside the data names, empty if there is none."""
    if source.is_dir():
        folder = source
    else:
        folder = source.parent
    for path in (path for base in (folder, folder.parent) if base.is_dir() for path in sorted(base.iterdir())):
        is_licence = re.match(r"(?i)licen[sc]e|copying", path.name)
        if not path.is_file() or path.is_symlink() or not (is_licence or path.name in _ABOUT):
            continue
        text = read_regular(path)[:20_000].decode("utf-8", "replace")
        flat = " ".join(text.split())
        if is_licence:
            for words, name in _LICENCES:
                if words.lower() in flat.lower():
                    return name
            return flat[:60]
        if match := re.search(r'(?mi)(?:^license|"license"): *"?([^\s"]+)', text):
            return match[1]
    return ""
