"""Every benchmark runs at its smallest sizes, so that none breaks unseen."""

import ast
import importlib
from pathlib import Path

import pytest

import benchmarks
