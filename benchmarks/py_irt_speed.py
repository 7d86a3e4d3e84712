"""Time and held-out loss of the two-parameter fit of MMMU or AI2D against py-irt's.

``python benchmarks/py_irt_speed.py --python /path/to/venv/bin/python`` hides a tenth of the 60 x 1050 responses (with
``--data AI2D`` 60 x 3088), fits the rest by this package's ``map`` engine and by py-irt 2PL, each in a process of its
own with as many threads, and prints the CPU time of the fit alone and of the whole process, from the start of Python to
written parameters, with the mean negative log-likelihood of the hidden responses. CPU time, since whatever else runs on
the machine weighs less on it; with one thread the clock of an idle machine shows the same. The other Python is one
where ``pip install py-irt`` was done; py-irt runs as its command line would (Adam 0.1, decay .9999, its own prior and
posterior means), but without the live table, in its favour. ``--calibrate`` adds the whole command, with the choice of
the model, checks, predictor and replays, and with ``--before FOLDER`` that of a checkout of an earlier state. The
matrix is looked for in ``ADAPTIVE_EVAL_DATA`` (default ``../shared/data``).
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gate_decisions import NAMES
from interval_coverage import read
from large_inputs import COMMAND, ROOT, measure
from numpy.typing import NDArray
from scipy.special import log_expit

Array = NDArray[np.float64]

OURS = """
import json, sys, time
from pathlib import Path
import numpy as np
from pytest_adaptive_eval.calibration.engines.variational import fit_map

folder, repeats = Path(sys.argv[1]), int(sys.argv[2])
scores = np.load(folder / "scores.npy")
times = []
for _ in range(repeats):
    start = time.process_time()
    fit = fit_map(scores, model="2pl")
    times.append(time.process_time() - start)
found = {"times": times, "a": np.ravel(fit.discrimination).tolist(), "d": np.ravel(fit.intercept).tolist(),
         "theta": np.ravel(fit.theta).tolist(), "version": sys.version.split()[0]}
(folder / "ours.json").write_text(json.dumps(found))
"""

THEIRS = """
import json, random, sys, time
from importlib.metadata import version
from pathlib import Path
import numpy, pyro, torch
from py_irt.config import IrtConfig
from py_irt.training import IrtModelTrainer

folder, epochs, threads, seed, priors = Path(sys.argv[1]), *map(int, sys.argv[2:5]), sys.argv[5]
torch.set_num_threads(threads)
random.seed(seed), numpy.random.seed(seed), pyro.set_rng_seed(seed)
config = IrtConfig(model_type="2pl", epochs=epochs, priors=priors)
trainer = IrtModelTrainer(config=config, data_path=folder / "responses.jsonlines", verbose=False)
start = time.process_time()
trainer.train(device="cpu")
times = [time.process_time() - start]
last = trainer.last_params
a = {last["item_ids"][i]: x for i, x in enumerate(last["disc"])}
b = {last["item_ids"][i]: x for i, x in enumerate(last["diff"])}
theta = {last["subject_ids"][i]: x for i, x in enumerate(last["ability"])}
found = {"times": times, "a": [a[str(i)] for i in range(len(a))],
         "d": [-a[str(i)] * b[str(i)] for i in range(len(a))],
         "theta": [theta[str(s)] for s in range(len(theta))], "version": version("py-irt")}
(folder / "theirs.json").write_text(json.dumps(found))
"""


def write_csv(path: Path, scores: Array) -> None:
    """Write scores with a row a subject; missing ones are empty."""
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["subject", *(f"q{i}" for i in range(scores.shape[1]))])
        for s, row in enumerate(scores.tolist()):
            table.writerow([f"m{s}", *("" if value != value else int(value) for value in row)])


def timed(python: str, code: str, *arguments: object, threads: int) -> float:
    """CPU seconds that a script takes in a new process."""
    limits = {f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "OPENBLAS", "MKL")}
    before = os.times()
    command = [python, "-c", code, *map(str, arguments)]
    subprocess.run(command, check=True, env={**os.environ, **limits}, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def loss(fit: Mapping[str, Any], scores: Array, hidden: NDArray[np.bool_]) -> float:
    """Mean negative log-likelihood of the hidden responses, in nats."""
    z = np.outer(fit["theta"], fit["a"]) + np.asarray(fit["d"])
    return float(-np.where(scores > 0.5, log_expit(z), log_expit(-z))[hidden].mean())


def main() -> None:
    """Fit twice and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True, help="the interpreter of an environment with py-irt")
    parser.add_argument("--data", choices=("MMMU", "AI2D"), default="MMMU")
    parser.add_argument("--calibrate", action="store_true", help="the whole command too")
    parser.add_argument("--before", metavar="FOLDER", type=Path, help="with --calibrate: checkout of an earlier state")
    parser.add_argument("--epochs", type=int, default=3200, help="of py-irt; its own default is 2000")
    parser.add_argument("--priors", nargs="+", default=["vague"], help="of py-irt: vague (its default), hierarchical")
    parser.add_argument("--threads", type=int, default=1, help="of either")
    parser.add_argument("--repeats", type=int, default=5, help="fits of ours, of which the median is shown")
    parser.add_argument("--seed", type=int, default=0, help="of the hidden cells and of py-irt")
    options = parser.parse_args()

    scores = read(NAMES[options.data], "train")
    hidden = np.random.default_rng(options.seed).random(scores.shape) < 0.1
    size = f"{scores.shape[0]} models x {scores.shape[1]} items, {hidden.sum()} responses hidden"
    print(f"{size}; CPU time, threads: {options.threads}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "scores.npy", np.where(hidden, np.nan, scores))
        with (folder / "responses.jsonlines").open("w") as file:
            for s, row in enumerate(scores):
                seen = np.flatnonzero(~hidden[s])
                json.dump({"subject_id": str(s), "responses": {str(i): int(row[i]) for i in seen}}, file)
                file.write("\n")
        timed(sys.executable, OURS, folder, 1, threads=options.threads)  # reads the libraries from the disk
        whole = timed(sys.executable, OURS, folder, 1, threads=options.threads)
        timed(sys.executable, OURS, folder, options.repeats, threads=options.threads)
        ours = json.loads((folder / "ours.json").read_text())
        fit = statistics.median(ours["times"])
        row = "{:24} fit {:8.2f} s   whole {:8.2f} s   held-out loss {:.4f}"
        print(row.format("map, 2PL", fit, whole, loss(ours, scores, hidden)), flush=True)
        if options.calibrate:
            write_csv(folder / "responses.csv", np.where(hidden, np.nan, scores))
            states = {**({"before": options.before.resolve()} if options.before else {}), "now": ROOT}
            for state, code in states.items():
                command = ["calibrate", "responses.csv", "-o", "fitted.bank", "--replace"]
                taken, _ = measure([sys.executable, "-c", COMMAND, *command], folder, code)
                print(f"{'calibrate, ' + state:24} {'':14}   whole {taken:8.2f} s", flush=True)
        for priors in options.priors:
            arguments = (folder, options.epochs, options.threads, options.seed, priors)
            their_whole = timed(options.python, THEIRS, *arguments, threads=options.threads)
            theirs = json.loads((folder / "theirs.json").read_text())
            label = f"py-irt {theirs['version']}, {priors}"
            their_fit = theirs["times"][0]
            print(row.format(label, their_fit, their_whole, loss(theirs, scores, hidden)))
            print(
                f"{'':24} {their_fit / fit:.0f} x the time of map's fit, {their_whole / whole:.0f} x whole", flush=True
            )


if __name__ == "__main__":
    main()
