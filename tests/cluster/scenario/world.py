"""Prepares what the steps need: images, a cluster with nodes of three kinds, volumes, and an installed Medley."""
import json
import os
import shutil
import subprocess

from kube import CORE, Failure, Kube

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.realpath(f"{HERE}/../../..")
KUBERNETES = f"{ROOT}/tests/cluster/kubernetes"
CACHE = os.environ.get("MEDLEY_CLUSTER_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "medley-cluster")
STATE = os.environ.get("MEDLEY_CLUSTER_STATE") or f"{os.environ.get('TMPDIR') or '/tmp'}/medley-cluster-{os.getuid()}"
SYSTEM = "medley-system"
NODES = "old,new-spot,new-spot,new-reserved"  # the resource type of each node; Medley's own pods run on the first
WORKERS_UID = 65532
BUSY = 6  # load average per core above which the test is not started

VOLUME = """
apiVersion: v1
kind: PersistentVolume
metadata: {{name: {namespace}-{claim}}}
spec:
  capacity: {{storage: 1Gi}}
  accessModes: [{mode}]
  storageClassName: ""
  hostPath: {{path: {path}}}
  claimRef: {{namespace: {namespace}, name: {claim}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {claim}, namespace: {namespace}}}
spec: {{accessModes: [{mode}], storageClassName: "", resources: {{requests: {{storage: 1Gi}}}}}}
---
"""


def refused():
    """Why this machine does not allow real nodes; empty if it does. Tries things in namespaces that end with the trial."""
    if os.getuid() != 0:
        return "real nodes need root"
    for name in ("unshare", "mount", "ip"):
        if shutil.which(name) is None:
            return ""  # not installed: `missing` says so
    if not os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        for controller in ("cpu", "memory", "pids"):
            if not os.path.isdir(f"/sys/fs/cgroup/{controller}"):
                return f"the cgroup controller {controller} is not mounted in /sys/fs/cgroup"
    hierarchy = "/sys/fs/cgroup" if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else "/sys/fs/cgroup/memory"
    trial = f"{hierarchy}/medley-trial-{os.getpid()}"
    try:
        os.mkdir(trial)
        os.rmdir(trial)
    except OSError as error:
        return f"cgroups cannot be created: {error}"
    trials = {
        "PID, mount, network, UTS and IPC namespaces": "true",
        "network interfaces (bridge and veth)": "ip link add trial0 type bridge && "
                                                "ip link add trial1 type veth peer name trial2",
        "overlay mounts": "mount -t tmpfs tmpfs /mnt && mkdir /mnt/a /mnt/b /mnt/c && "
                          "mount -t overlay -o lowerdir=/usr,upperdir=/mnt/a,workdir=/mnt/b overlay /mnt/c"}
    if shutil.which("iptables"):
        trials["iptables' NAT table"] = "iptables --table nat --list"
    for what, command in trials.items():
        done = subprocess.run(["unshare", "--pid", "--fork", "--mount", "--net", "--uts", "--ipc", "sh", "-c", command],
                              capture_output=True, text=True, check=False, timeout=60)
        if done.returncode != 0:
            return f"{what} cannot be created: {done.stderr.strip()[-300:]}"
    return ""


def missing():
    """What is not installed or not built; empty if nothing is."""
    for name in ("containerd", "runc", "iptables", "ip", "nsenter"):
        if shutil.which(name) is None:
            return f"the program {name} is not installed. To install it: ./dev cluster build"
    for name in ("kube-apiserver", "etcd", "kubelet", "kube-proxy", "coredns", "kubectl", "helm"):
        if not os.access(f"{CACHE}/bin/{name}", os.X_OK):
            return f"{CACHE}/bin/{name} is not built. To build it (10 to 20 minutes): ./dev cluster build"
    if not os.path.exists(f"{CACHE}/images/pause.tar"):
        return f"{CACHE}/images/pause.tar is not built. To build it: ./dev cluster build"
    return ""


def occupied(however_busy):
    """What else on this machine stands in the way; empty if nothing does."""
    # A bridge without ports is what a cluster that was killed left behind; `up` uses it again.
    ports = "/sys/class/net/mdl0/brif"
    if os.path.isdir(ports) and os.listdir(ports) and not os.path.exists(f"{STATE}/env"):
        return "another cluster with nodes runs (interface mdl0), and a machine can run one. To stop it: ./dev cluster down"
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > BUSY * cores and not however_busy:
        return f"the load of this machine is {load:.0f} on {cores} cores, too much for the test's deadlines"
    return ""


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout


def build_images(out):
    names = ("operator", "scheduler", "worker")
    run(f"{ROOT}/deploy/docker/images", "--repository", "medley.local", "--tag", "test", "--raw", "--out", out, *names)
    return [f"{out}/{name}.tar" for name in names]


def start_cluster():
    """Starts a cluster with one node for each of NODES."""
    run(f"{KUBERNETES}/up", "--nodes", str(NODES.count(",") + 1), "--types", NODES)
    return Kube(STATE, f"{CACHE}/bin")


def stop_cluster():
    run(f"{KUBERNETES}/down")


def make_volumes(kube, namespace="train"):
    """Creates the namespace with the claims `datasets` and `checkpoints`; returns the folder of checkpoints here, which all
    namespaces share."""
    data, checkpoints = f"{STATE}/volumes/datasets", f"{STATE}/volumes/checkpoints"
    shutil.copytree(f"{ROOT}/examples/data", data, dirs_exist_ok=True)
    os.makedirs(checkpoints, exist_ok=True)
    os.chown(checkpoints, WORKERS_UID, WORKERS_UID)
    kube.kubectl("create", "namespace", namespace)
    volumes = (("datasets", "ReadOnlyMany", data), ("checkpoints", "ReadWriteMany", checkpoints))
    kube.kubectl("apply", "-f", "-", stdin="".join(
        VOLUME.format(namespace=namespace, claim=claim, mode=mode, path=path) for claim, mode, path in volumes))
    return checkpoints


def entries(prices):
    """The entries of a price file, from {(instance type, capacity type): USD per instance-hour}."""
    return [{"offering": {"provider": "example", "region": "east" if kind == "reserved" else "west",
                          "instanceType": machine, "capacityType": kind}, "pricePerInstanceHour": usd}
            for (machine, kind), usd in prices.items()]


def set_prices(kube, prices):
    """Publishes prices. The scheduling service reads its file again when the kubelet has written it."""
    kube.patch(f"{CORE}/namespaces/{SYSTEM}/configmaps/medley-scheduler-prices",
               {"data": {"prices.yaml": json.dumps({"entries": entries(prices)})}})  # JSON is YAML


def helm(kube, command, *arguments):
    return run(f"{CACHE}/bin/helm", "--kubeconfig", kube.kubeconfig, "--namespace", SYSTEM, command, "medley", *arguments)


def chart(kube, command, prices, *arguments):
    """helm install or upgrade of this checkout's chart. Returns when everything is ready."""
    return helm(kube, command, f"{ROOT}/charts/medley", "--values", f"{HERE}/values.yaml", "--set-json",
                f"scheduler.prices.entries={json.dumps(entries(prices))}", "--wait", "--timeout", "5m", *arguments)


def install(kube, prices):
    """helm install, as its README says, and helm test, which runs inside the cluster."""
    chart(kube, "install", prices, "--create-namespace")
    phases = [line.split()[-1] for line in helm(kube, "test", "--timeout", "3m").splitlines() if line.startswith("Phase:")]
    if phases != ["Succeeded"]:
        raise Failure(f"helm test: the phases are {phases}, not ['Succeeded']")
    return "helm test succeeded"


def available(kube, name):
    """Whether all wanted pods of a Deployment are available."""
    deployment = kube.get(f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/{name}")
    status = deployment.get("status", {})
    wanted = deployment["spec"]["replicas"]
    return (status.get("observedGeneration") == deployment["metadata"]["generation"] and
            status.get("availableReplicas", 0) == wanted and status.get("updatedReplicas", 0) == wanted and
            status.get("replicas", 0) == wanted)
