"""A Ray cluster of several nodes on this machine: ``python ray_nodes.py NODES`` prints its address.

Each line ``kill`` on the standard input kills a node with all its processes by SIGKILL, the last one first, and prints
``killed``. The cluster ends with the standard input.
"""

from __future__ import annotations

import os
import signal
import sys

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")


def main() -> None:
    """Start the cluster and serve it."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(int(sys.argv[1]) - 1)]
    cluster.wait_for_nodes()
    sys.stdout.write(f"{cluster.address}\n")
    sys.stdout.flush()
    for line in sys.stdin:
        if line.strip() == "kill":
            for processes in nodes.pop().all_processes.values():
                for process in processes:
                    os.kill(process.process.pid, signal.SIGKILL)
            sys.stdout.write("killed\n")
            sys.stdout.flush()
    cluster.shutdown()


if __name__ == "__main__":
    main()
