"""A golden set of 35 queries on five topics in the folder golden."""

import runpy
import sys
from pathlib import Path

import weir

sys.argv = ["golden_story.py", "golden"]
runpy.run_path(str(Path(weir.__file__).parents[2] / "scripts" / "golden_story.py"), run_name="__main__")
