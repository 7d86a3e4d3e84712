"""Real model servers on loopback that serve a committed checkpoint: llama.cpp and ``transformers serve``.

Both serve ``fixtures/checkpoints/text-late`` in float32, with a chat template that adds nothing to the prompt, so that
their answers are those of the checkpoint in this process. Each fixture skips where its package is not installed.
``python tests/models/real_servers.py GGUF PORT REPEAT_PENALTY`` runs llama.cpp until its input ends.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

CHECKPOINT = Path(__file__).parents[2] / "fixtures" / "checkpoints" / "text-late"
#: A chat's texts and nothing else: the prompt as a local checkpoint without a template reads it.
RAW_TEMPLATE = (
    "{% for m in messages %}{% if m['content'] is string %}{{ m['content'] }}"
    "{% else %}{% for p in m['content'] %}{{ p['text'] or '' }}{% endfor %}{% endif %}{% endfor %}"
)
#: Seconds that a server may take to start on a busy machine.
START_SECONDS = 120.0
#: Tokens of prompt and answer together that llama.cpp takes in one request; the checkpoint was trained with 512.
LLAMA_CONTEXT = 512
LLAMA_SLOTS = 4
#: The program `transformers` without its look for a newer version, which needs a network.
TRANSFORMERS_COMMAND = "from transformers.cli.transformers import app; app()"


class RealServer:
    """A server in a process of its own, which can be killed and started again at the same port.

    Args:
        command: With ``{port}`` in the place of the port.
        model: Name to ask for.
        log: File for what it writes.
    """

    def __init__(self, command: Sequence[str], model: str, log: Path) -> None:
        self.port = _free_port()
        self.model = model
        self.log = log
        self._command = [part.replace("{port}", str(self.port)) for part in command]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """What ``/chat/completions`` is added to."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def spec(self) -> str:
        """The model as `load_model` takes it."""
        return f"{self.url}#{self.model}"

    def start(self, *, wait: bool = True) -> None:
        """Start the process and, with `wait`, return when it takes requests."""
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "HF_HUB_CACHE": str(self.log.parent),
        }
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment
            )
        if wait:
            self._wait()

    def kill(self) -> None:
        """End the process at once, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdin:
                self._process.stdin.close()
            self._process = None

    def get(self, path: str) -> Any:
        """Fetch JSON from a path of the server's root, past any proxy."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{self.port}{path}", timeout=5) as reply:
            return json.load(reply)

    def _wait(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                self.get("/health")
            except (OSError, urllib.error.URLError):
                time.sleep(0.1)
            else:
                return
        end = self.log.read_text(errors="replace")[-2000:]
        self.kill()
        pytest.fail(f"the server {self._command[0]} did not start within {START_SECONDS:g} s; it wrote:\n{end}")


@pytest.fixture(scope="session")
def gguf_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint as llama.cpp reads it."""
    pytest.importorskip("gguf", reason="llama.cpp reads GGUF files, which need the package gguf")
    pytest.importorskip("safetensors", reason="checkpoints need safetensors (extra hf)")
    path = tmp_path_factory.mktemp("gguf") / "text-late.gguf"
    write_gguf(CHECKPOINT, path)
    return path


@pytest.fixture(scope="session")
def llama_server(gguf_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    """llama.cpp's server, running; a test that kills it starts it again."""
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("llama.cpp needs the package xllamacpp")
    server = llama_cpp(gguf_file, tmp_path_factory.mktemp("llama") / "log.txt")
    server.start()
    yield server
    server.kill()


def llama_cpp(gguf_file: Path, log: Path, repeat_penalty: float = 1.0) -> RealServer:
    """llama.cpp's server, not started, with a repetition penalty of its own."""
    return RealServer([sys.executable, __file__, str(gguf_file), "{port}", str(repeat_penalty)], "text-late", log)


@pytest.fixture(scope="session")
def served_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkpoint with the chat template, and a repetition penalty in its generation_config."""
    folder = tmp_path_factory.mktemp("served") / "text-late"
    write_served(folder)
    return folder


@pytest.fixture(scope="session")
def transformers_server(served_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    """``transformers serve``, running."""
    for package in ("torch", "transformers", "fastapi", "uvicorn", "openai"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"transformers serve needs the package {package} (transformers[serving])")
    server = transformers_serve(served_checkpoint, tmp_path_factory.mktemp("transformers") / "log.txt")
    server.start()
    yield server
    server.kill()


def transformers_serve(checkpoint: Path, log: Path) -> RealServer:
    """``transformers serve``, not started."""
    command = [
        *(sys.executable, "-c", TRANSFORMERS_COMMAND, "serve", str(checkpoint)),
        *("--host", "127.0.0.1", "--port", "{port}", "--device", "cpu", "--dtype", "float32"),
    ]
    return RealServer(command, str(checkpoint), log)


def write_served(folder: Path) -> None:
    """Copy the checkpoint, with the chat template, and a repetition penalty in its generation_config."""
    shutil.copytree(CHECKPOINT, folder)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"chat_template": RAW_TEMPLATE}))
    decoding = json.loads((folder / "generation_config.json").read_text())
    decoding |= {"repetition_penalty": 1.1, "do_sample": False}
    (folder / "generation_config.json").write_text(json.dumps(decoding))


def write_gguf(folder: Path, path: Path, template: str = RAW_TEMPLATE) -> None:
    """Write a Llama checkpoint with a byte-level BPE as a GGUF file in float32; an empty chat template is left out."""
    import gguf
    import numpy as np
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text())
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = sorted(tokenizer["model"]["vocab"].items(), key=lambda entry: entry[1])
    special = {entry["content"] for entry in tokenizer["added_tokens"]}
    kinds = gguf.TokenType
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(folder.name)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("gpt2")
    # the checkpoint also isolates capitals and digits, which none of its merges hold: the tokens are the same
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([token for token, _ in vocabulary])
    writer.add_token_types([kinds.CONTROL if token in special else kinds.NORMAL for token, _ in vocabulary])
    writer.add_token_merges([" ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_pad_token_id(config["pad_token_id"])
    writer.add_add_bos_token(False)
    if template:
        writer.add_chat_template(template)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    for name, tensor in load_file(folder / "model.safetensors").items():
        weights = tensor.astype(np.float32)
        if name.endswith(("q_proj.weight", "k_proj.weight")):  # llama.cpp rotates neighbours, the checkpoint halves
            rows, columns = weights.shape
            halves = weights.reshape(config["num_attention_heads"], 2, -1, columns)
            weights = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(rows, columns)
        writer.add_tensor(names.get_name(name, (".weight",)), weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _run_llama(path: str, port: int, repeat_penalty: float) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {"text-late"}
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_parallel, params.n_ctx = LLAMA_SLOTS, LLAMA_SLOTS * LLAMA_CONTEXT
    params.n_gpu_layers = 0
    params.sampling.penalty_repeat = repeat_penalty
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    sys.stdin.read()
    del server


if __name__ == "__main__":
    _run_llama(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
