"""The llama.cpp server of the package xllamacpp, for machines without the program llama-server.

Run as ``python -m pytest_adaptive_eval.extensions.serving.llama_cpp --model FILE.gguf --port PORT``. Options have the
names of llama-server's.
"""

from __future__ import annotations

import argparse
import signal


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(prog="llama.cpp (xllamacpp)", description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--alias", default="")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ctx-size", type=int, default=0, help="tokens of all slots together; 0: as the model has")
    parser.add_argument("--parallel", type=int, default=4, help="answers at once")
    parser.add_argument("--threads", type=int, default=-1)
    parser.add_argument("--n-gpu-layers", type=int, default=-1)
    options = parser.parse_args()
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.model_alias = {options.alias or options.model}
    params.hostnames = [options.host]
    params.port = options.port
    params.n_ctx = options.ctx_size
    params.n_parallel = options.parallel
    params.n_gpu_layers = options.n_gpu_layers
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    server = xllamacpp.Server(params)
    signal.pause()
    del server


if __name__ == "__main__":
    main()
