"""Items in error when a server is killed and started again, or limits the rate of requests.

``python benchmarks/endpoint_faults.py [--runs 3] [--fault kill] [--fault limit] [--server transformers]`` needs ``pip
install xllamacpp gguf`` for llama.cpp, ``pip install transformers[serving]`` for ``transformers serve`` and, for the
rate limits, the program ``nginx``. The server serves ``fixtures/checkpoints/text-late``; a subject asks it all items of
the bank.

* kill: after a third of the answers the server is killed, and started again 0, 1 or 2 seconds later.
* limit: nginx passes on 20 requests per second and refuses the others by HTTP 429 or 503, with or without
  ``Retry-After``.  Printed are the rate of answers divided by 20, and the share of the requests that nginx refused.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "subjects"))

from real_servers import RealServer, _free_port, llama_cpp, transformers_serve, write_gguf, write_served

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.endpoint.model import EndpointModel

FIXTURES = Path(__file__).parents[1] / "fixtures"
FAULTS = ("kill", "limit")
CHECKPOINT = FIXTURES / "checkpoints" / "text-late"
RATE = 20
NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log crit;
events {{ worker_connections 256; }}
http {{
  log_format codes $status; access_log {folder}/codes codes;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  limit_req_zone $server_port zone=all:1m rate={rate}r/s; limit_req_status {code};
  server {{
    listen 127.0.0.1:{port};
    location / {{ limit_req zone=all; {error} proxy_pass http://127.0.0.1:{behind}; }}
    location @refused {{ {header} return {code}; }}
  }}
}}
"""


def llama_server(folder: Path) -> RealServer:
    """llama.cpp, not started, with its files in a folder."""
    write_gguf(CHECKPOINT, folder / "text-late.gguf")
    return llama_cpp(folder / "text-late.gguf", folder / "log.txt")


def transformers_server(folder: Path) -> RealServer:
    """``transformers serve``, not started, with its files in a folder."""
    write_served(folder / "text-late")
    return transformers_serve(folder / "text-late", folder / "log.txt")


SERVERS = {"llama.cpp": llama_server, "transformers": transformers_server}


def ask(
    server: RealServer, url: str, items: list[Item], arrived: Callable[[], object] = lambda: None
) -> tuple[Counter[str], float, list[str]]:
    """Ask all items at once and return their statuses, the seconds taken, and what was said of the errors."""
    accepted = [server.model, f"{server.model}@main"]  # the latter is the name in replies of `transformers serve`
    subject = EndpointModel.load(url, server.model, accept_models=accepted)
    start = time.perf_counter()
    completions = subject.answer_each(items, lambda *_: arrived())
    seconds = time.perf_counter() - start
    subject.close()
    return Counter(c.status.value for c in completions), seconds, [c.detail for c in completions if "err" in c.status]


def kill_and_start(server: RealServer, items: list[Item], pause: float) -> None:
    """Ask while the server goes away for `pause` seconds after a third of the answers."""

    def fault() -> None:
        server.kill()
        time.sleep(pause)
        server.start(wait=False)

    thread = threading.Thread(target=fault)
    answers = 0

    def count() -> None:
        nonlocal answers
        answers += 1
        if answers == len(items) // 3:
            thread.start()

    statuses, seconds, details = ask(server, server.url, items, count)
    thread.join()
    load = os.getloadavg()[0]
    print(f"away for {pause:g} s: {dict(statuses)} in {seconds:.1f} s, load {load:.1f} {details[:1]}", flush=True)


def limited(server: RealServer, items: list[Item], code: int, header: str) -> None:
    """Ask through nginx."""
    port = _free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "nginx.conf"
        config.write_text(
            NGINX.format(
                folder=folder,
                rate=RATE,
                code=code,
                port=port,
                behind=server.port,
                error=f"error_page {code} @refused;" if header else "",
                header=f"add_header Retry-After {header} always;" if header else "",
            )
        )
        nginx = subprocess.Popen([shutil.which("nginx") or "/usr/sbin/nginx", "-c", str(config), "-e", "stderr"])
        try:
            statuses, seconds, details = ask(server, f"http://127.0.0.1:{port}/v1", items)
        finally:
            nginx.terminate()
            nginx.wait()
        codes = (Path(folder) / "codes").read_text().split()
    rate = statuses["ok"] / seconds
    name = f"HTTP {code}" + (f" with Retry-After: {header}" if header else "")
    print(
        f"{name}: {dict(statuses)}, {rate:.1f} answers/s, {rate / RATE:.2f} of the limit, {codes.count(str(code))} of "
        f"{len(codes)} requests refused, load {os.getloadavg()[0]:.1f} {details[:1]}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--server", choices=SERVERS, default="llama.cpp")
    parser.add_argument("--fault", choices=FAULTS, action="append", help="what to try; both if it is not given")
    options = parser.parse_args()
    faults = options.fault or FAULTS
    items = list(read_bank(FIXTURES / "banks" / "text.bank").items)
    with tempfile.TemporaryDirectory() as folder:
        server = SERVERS[options.server](Path(folder))
        server.start()
        try:
            statuses, quiet, _ = ask(server, server.url, items)
            print(f"without a fault: {dict(statuses)} in {quiet:.1f} s", flush=True)
            for pause in (0.0, 1.0, 2.0) if "kill" in faults else ():
                for _ in range(options.runs):
                    kill_and_start(server, items, pause)
            for code, header in product((429, 503), ("", "1")) if "limit" in faults else ():
                for _ in range(options.runs):
                    limited(server, items, code, header)
        finally:
            server.kill()


if __name__ == "__main__":
    main()
