#!/usr/bin/python3
"""Measures the operator against a real Kubernetes API server: load and reaction times. Prints one line of JSON.

  tests/bench/cluster/run.py [--keep-logs FOLDER] [--kubeconfig FILE] [cluster_bench's options]

Without --kubeconfig it starts its own control plane (tests/cluster/kubernetes) in its own network namespace,
because pods need an address other than 127.0.0.1, which Endpoints do not allow. The operator and the scheduling service
run beside it; cluster_bench acts as all kubelets and coordinators. All share the machine.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
KUBERNETES = os.path.join(ROOT, "tests/cluster/kubernetes")
BIN = os.path.join(ROOT, "build/bin")
COMPONENTS = ["apiserver", "etcd", "scheduler", "controller-manager"]
# No kubelet renews the nodes' leases, and the scheduler's default limit of 50 requests per second is too low here.
ARGUMENTS = {"MEDLEY_CONTROLLER_MANAGER_ARGS": "--node-monitor-grace-period=10h --kube-api-qps=500 --kube-api-burst=1000",
             "MEDLEY_SCHEDULER_ARGS": "--kube-api-qps=1000 --kube-api-burst=2000"}
PATIENCE = 60
POD_IP = "198.18.0.1"  # from the address range for benchmarks (RFC 2544)
PLANNER_PORT = 7078  # of cluster_bench, which forwards to the scheduling service
IN_NAMESPACE = "MEDLEY_BENCH_IN_NAMESPACE"


def wait_for(what, holds):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = holds()
        if value:
            return value
        time.sleep(0.05)
    sys.exit(f"cluster bench: waited {PATIENCE} s for {what}")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def enter_network_namespace():
    """Runs this program again in a network namespace that has only loopback, with the address POD_IP."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    setup = f'ip link set lo up && ip address add {POD_IP}/32 dev lo && exec "$@"'
    os.environ[IN_NAMESPACE] = "1"
    os.execvp("unshare", ["unshare", *user, "--net", "--", "sh", "-c", setup, "sh", sys.executable, *sys.argv])


def control_plane(folder):
    """Starts a control plane. Returns its kubeconfig, its process ids, and a function that stops it."""
    state = os.path.join(folder, "kubernetes")
    environment = {**os.environ, **ARGUMENTS, "MEDLEY_CLUSTER_STATE": state}
    up = subprocess.run([f"{KUBERNETES}/up"], env=environment, capture_output=True, text=True, check=False)
    if up.returncode != 0:
        sys.exit(f"cluster bench: {up.stderr.strip()}")
    pids = {name: int(read(f"{state}/pids/{name}").split()[0]) for name in COMPONENTS}
    return up.stdout.strip(), pids, lambda: subprocess.run([f"{KUBERNETES}/down"], env=environment, check=False,
                                                           stdout=subprocess.DEVNULL)


def kubectl(kubeconfig, *arguments):
    return subprocess.run(["kubectl", "--kubeconfig", kubeconfig, *arguments], check=True, stdout=subprocess.PIPE,
                          text=True).stdout


def token_kubeconfig(folder, admin):
    """A kubeconfig with a service account's token, as in a pod; a certificate would be verified at each request."""
    kubectl(admin, "create", "serviceaccount", "medley-operator", "-n", "kube-system")
    kubectl(admin, "create", "clusterrolebinding", "medley-operator", "--clusterrole=cluster-admin",
            "--serviceaccount=kube-system:medley-operator")
    token = kubectl(admin, "create", "token", "medley-operator", "-n", "kube-system", "--duration=24h").strip()
    path = os.path.join(folder, "operator-kubeconfig")
    shutil.copy(admin, path)
    kubectl(path, "config", "set-credentials", "operator", f"--token={token}")
    kubectl(path, "config", "set-context", "--current", "--user=operator")
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", help="use this existing control plane, which nothing else uses")
    parser.add_argument("--keep-logs", help="keep the logs in this folder")
    options, rest = parser.parse_known_args()
    if not options.kubeconfig and IN_NAMESPACE not in os.environ:
        enter_network_namespace()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that "finally" stops what was started
    folder = tempfile.mkdtemp(prefix="medley-cluster-bench-")
    logs = options.keep_logs or folder
    os.makedirs(logs, exist_ok=True)
    processes, end = [], lambda: None

    def start(name, *command):
        with open(os.path.join(logs, f"{name}.log"), "wb") as log:
            # pylint: disable-next=consider-using-with
            processes.append(subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "TMPDIR": folder}))
        return processes[-1]

    try:
        if options.kubeconfig:
            kubeconfig, pids = options.kubeconfig, {}
        else:
            kubeconfig, pids, end = control_plane(folder)
            rest = ["--pod-ip", POD_IP, *rest]
        kubectl(kubeconfig, "apply", "-f", f"{ROOT}/deploy/crds")
        kubectl(kubeconfig, "wait", "--for=condition=Established", "--timeout=30s", "-f", f"{ROOT}/deploy/crds")
        prices, ports = os.path.join(folder, "prices.yaml"), os.path.join(folder, "ports.json")
        with open(prices, "w", encoding="utf-8") as file:
            file.write("entries: []\n")
        scheduler = start("scheduler", f"{BIN}/medley-scheduler", "--grpc-listen", "127.0.0.1:0", "--rest-listen",
                          "127.0.0.1:0", "--port-file", ports, "--poll-seconds", "0.05", "--prices", prices)
        port = wait_for("the scheduling service", lambda: os.path.exists(ports) and json.loads(read(ports)))["grpc"]
        operator = start("operator", f"{BIN}/medley-operator", "--kubeconfig", token_kubeconfig(folder, kubeconfig),
                         "--scheduler", f"127.0.0.1:{PLANNER_PORT}", "--plan-calls", "100", "--worker-port", "7079",
                         # One process is the coordinator of all jobs, so it cannot have the certificates of each.
                         "--no-job-tls", "--warm-up-seconds", "0")
        pids.update({"operator": operator.pid, "planner": scheduler.pid})
        command = [f"{BIN}/cluster_bench", "--kubeconfig", kubeconfig, "--prices", prices, "--worker-port", "7079",
                   "--planner", f"127.0.0.1:{port}", "--planner-port", str(PLANNER_PORT)]
        for name, pid in pids.items():
            command += ["--pid", f"{name}={pid}"]
        done = subprocess.run(command + rest, stdout=subprocess.PIPE, text=True, check=False)
        sys.stdout.write(done.stdout)
        return done.returncode
    finally:
        for process in reversed(processes):
            process.send_signal(signal.SIGTERM)
        for process in processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
        end()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
