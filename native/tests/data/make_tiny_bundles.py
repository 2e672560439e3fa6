"""Writes two small random Whisper bundles, `one` and `two`, for engine_test.

usage: make_tiny_bundles.py FOLDER      (with the repository's root in PYTHONPATH)
"""

import sys
from pathlib import Path

from as2d_cli.catalog.build import Recipe, build
from as2d_cli.catalog.bundle import sha256_of
from tests.catalog.material import put, whisper_files

folder = Path(sys.argv[1])
for seed, name in enumerate(("one", "two")):
    sources = put(folder / "sources" / name, whisper_files(seed=seed))
    bundle = folder / name
    bundle.mkdir(parents=True, exist_ok=True)
    build(
        Recipe(
            id=name,
            role="target",
            family="whisper",
            languages=("en",),
            licence="MIT",
            sources={path.name: path for path in sources.iterdir()},
            digests={path.name: sha256_of(path) for path in sources.iterdir()},
        ),
        bundle,
    )
