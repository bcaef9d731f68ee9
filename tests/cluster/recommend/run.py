#!/usr/bin/env python3
"""Recommendations with the real controllers of Kubeflow Trainer and JobSet.

  run.py [--jobs 20] [--out FOLDER] [--build-only]

Both run as they are released, with their webhooks, against a real API server (tests/cluster/kubernetes/up). Checked for each
TrainJob: the operator resumes it, Trainer's JobSet has the chosen number of pods and node selector, and so has the Job of that. The time
from the creation of a TrainJob to the patch with the answer is printed; 99 of 100 must take at most a second.

Exit status: 0 if all holds, 1 if not. MEDLEY_CLUSTER_CACHE and MEDLEY_CLUSTER_STATE: as tests/cluster/kubernetes/up.
"""
import argparse
import base64
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
CACHE = os.environ.get("MEDLEY_CLUSTER_CACHE") or os.path.expanduser("~/.cache/medley-cluster")
CONTROLLERS = {  # name -> module, version, package
    "jobset-manager": ("sigs.k8s.io/jobset", "v0.10.1", "."),
    "trainer-manager": ("github.com/kubeflow/trainer/v2", "v2.1.0", "./cmd/trainer-controller-manager"),
}
MOST_SECONDS = 1.0  # from a TrainJob's creation to its answer
PATIENCE = 180  # seconds for what a busy machine may delay
UNITS = 64  # of the pools


def say(text):
    print(f"recommend: {text}", file=sys.stderr, flush=True)


def module_folder(module, version):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "go.mod"), "w", encoding="utf-8") as file:
            file.write("module download\ngo 1.24\n")
        found = subprocess.run(["go", "mod", "download", "-json", f"{module}@{version}"], cwd=folder, check=True, capture_output=True,
                              text=True)
    return json.loads(found.stdout)["Dir"]


def build():
    """name -> (program, folder of its module)"""
    built = {}
    for name, (module, version, package) in CONTROLLERS.items():
        folder = module_folder(module, version)
        program = os.path.join(CACHE, "bin", f"{name}-{version}")
        if not os.path.exists(program):
            say(f"building {name} {version}")
            os.makedirs(os.path.dirname(program), exist_ok=True)
            subprocess.run(["go", "build", "-o", program + ".new", package], cwd=folder, check=True,
                           env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"})
            os.rename(program + ".new", program)
        built[name] = (program, folder)
    return built


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class World:
    """A control plane, the controllers, and the operator. Ends all of them, by their pids."""

    def __init__(self, out):
        self.out, self.processes = out, []
        os.makedirs(out, exist_ok=True)
        os.environ.setdefault("MEDLEY_CLUSTER_STATE", os.path.join(out, "cluster"))
        up = subprocess.run([os.path.join(ROOT, "tests/cluster/kubernetes/up")], check=True, capture_output=True, text=True)
        self.kubeconfig = up.stdout.strip().splitlines()[-1]
        found = os.path.join(CACHE, "bin/kubectl")
        self.kubectl_program = found if os.path.exists(found) else "kubectl"
        self.certificate()

    def kubectl(self, *arguments, text=None):
        ran = subprocess.run([self.kubectl_program, "--kubeconfig", self.kubeconfig, *arguments], input=text, capture_output=True,
                             text=True, check=False)
        if ran.returncode:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {ran.stderr.strip()}")
        return ran.stdout

    def apply(self, documents):
        self.kubectl("apply", "--server-side", "-f", "-", text="\n---\n".join(json.dumps(each) for each in documents))

    def list(self, kind):
        return json.loads(self.kubectl("get", kind, "-n", "default", "-o", "json"))["items"]

    def certificate(self):
        self.certs = os.path.join(self.out, "k8s-webhook-server/serving-certs")  # where controllers look below TMPDIR
        os.makedirs(self.certs, exist_ok=True)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{self.certs}/tls.key", "-out",
                        f"{self.certs}/tls.crt"], check=True, capture_output=True)

    def webhooks(self, path, port):
        """The released configurations, with an address of this machine in the place of a Service."""
        with open(f"{self.certs}/tls.crt", "rb") as file:
            ca = base64.b64encode(file.read()).decode()
        with open(path, encoding="utf-8") as file:
            documents = [each for each in yaml.safe_load_all(file) if each]
        for document in documents:
            document["metadata"]["name"] = f"{os.path.basename(self.out)}-{port}-{document['metadata']['name']}"
            # The webhook of pods places them where JobSet is asked to, which nobody does here.
            document["webhooks"] = [hook for hook in document["webhooks"] if "pod" not in hook["name"].split(".")[0]]
            for hook in document["webhooks"]:
                hook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{hook['clientConfig']['service']['path']}", "caBundle": ca}
        return documents

    def start(self, name, *arguments):
        log = open(os.path.join(self.out, f"{name}.log"), "wb")
        process = subprocess.Popen(arguments, stdout=log, stderr=log, start_new_session=True,
                                   env={**os.environ, "KUBECONFIG": self.kubeconfig, "TMPDIR": self.out, "GOMAXPROCS": "2"})
        self.processes.append((name, process))

    def check_processes(self):
        for name, process in self.processes:
            if process.poll() is not None:
                raise RuntimeError(f"{name} has ended with status {process.returncode}: see {self.out}/{name}.log")

    def end(self):
        for _, process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for _, process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
        subprocess.run([os.path.join(ROOT, "tests/cluster/kubernetes/down")], check=False, capture_output=True)

    def eventually(self, what, holds):
        end = time.monotonic() + PATIENCE
        while True:
            self.check_processes()
            try:
                found = holds()
            except RuntimeError as error:  # what does not exist yet
                found, what_else = None, str(error)
            else:
                what_else = ""
            if found:
                return found
            if time.monotonic() > end:
                raise RuntimeError(f"after {PATIENCE} s: {what} {what_else}")
            time.sleep(0.1)


def config_file(world, name, document):
    path = os.path.join(world.out, f"{name}.yaml")
    with open(path, "w", encoding="utf-8") as file:
        yaml.safe_dump(document, file)
    return path


def start_controllers(world, built):
    program, folder = built["jobset-manager"]
    port = free_port()
    world.apply(read_all(os.path.join(folder, "config/components/crd/bases")))
    world.start("jobset-manager", program, "--metrics-bind-address=0", "--health-probe-bind-address=0", "--leader-elect=false",
                "--config=" + config_file(world, "jobset", {
                    "apiVersion": "config.jobset.x-k8s.io/v1alpha1", "kind": "Configuration",
                    "internalCertManagement": {"enable": False}, "webhook": {"port": port, "host": "127.0.0.1"}}))
    wait_for_port(world, port)
    world.apply(world.webhooks(os.path.join(folder, "config/components/webhook/manifests.yaml"), port))

    program, folder = built["trainer-manager"]
    port = free_port()
    world.apply(read_all(os.path.join(folder, "manifests/base/crds")))
    kinds = ("jobsets", "trainjobs", "trainingruntimes", "clustertrainingruntimes")
    world.eventually("the kinds are not served", lambda: [world.kubectl("get", kind, "-A") for kind in kinds])
    world.start("trainer-manager", program, "--config=" + config_file(world, "trainer", {
        "apiVersion": "config.trainer.kubeflow.org/v1alpha1", "kind": "Configuration",
        "certManagement": {"enable": False}, "webhook": {"port": port, "host": "127.0.0.1"},
        "metrics": {"bindAddress": "0"}, "health": {"healthProbeBindAddress": "0"},
        "leaderElection": {"leaderElect": False}}))
    wait_for_port(world, port)
    world.apply(world.webhooks(os.path.join(folder, "manifests/base/webhook/manifests.yaml"), port))


def wait_for_port(world, port):
    def listens():
        with socket.socket() as caller:
            return caller.connect_ex(("127.0.0.1", port)) == 0
    world.eventually(f"nothing listens on port {port}", listens)


def read_all(folder):
    documents = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".yaml") and "kustom" not in name:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                documents += [each for each in yaml.safe_load_all(file) if each]
    return documents


def pool(name, usd):
    return {"apiVersion": "medley.dev/v1alpha1", "kind": "ResourcePool", "metadata": {"name": name},
            "spec": {"class": "GPU", "limit": UNITS, "scaling": "Autoscaled", "unit": {"resources": {"nvidia.com/gpu": "1"}},
                     "nodeSelector": {"example.com/gpu": name}, "price": {"usdPerUnitHour": usd},
                     "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}}


def container(name):
    return {"name": name, "image": "training:1", "command": ["torchrun", "train.py"]}


RUNTIME = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime",
           "metadata": {"name": "torch-distributed", "labels": {"trainer.kubeflow.org/framework": "torch"}},
           "spec": {"mlPolicy": {"numNodes": 1, "torch": {"numProcPerNode": "auto"}},
                    "template": {"spec": {"replicatedJobs": [
                        {"name": "node", "template": {
                            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                            "spec": {"template": {"spec": {"containers": [container("node")]}}}}}]}}}}


def asking(kind, name, spec, **annotations):
    return {"apiVersion": kind[0], "kind": kind[1],
            "metadata": {"name": name, "namespace": "default", "labels": {"medley.dev/recommend": "true"},
                         "annotations": {"medley.dev/" + key.replace("_", "-"): value for key, value in annotations.items()}},
            "spec": {**spec, "suspend": True}}


TRAIN_JOB, JOB_SET = ("trainer.kubeflow.org/v1alpha1", "TrainJob"), ("jobset.x-k8s.io/v1alpha2", "JobSet")
JOB = ("batch/v1", "Job")
OWN = {"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"example.com/team": "a"}}}


def train_job(name, own=False, **more):
    goals = {"throughput": json.dumps({"spot": {"1": 100, "2": 190, "4": 360}, "reserved": 110}), "samples": "1e6",
             "deadline": "1h", **more}
    spec = {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"image": "training:1"}}
    if own:
        spec["podTemplateOverrides"] = [OWN]
    return asking(TRAIN_JOB, name, spec, **goals)


def condition(item, kind):
    for each in item.get("status", {}).get("conditions", []):
        if each["type"] == kind:
            return each
    return None


def check_train_jobs(world, count):
    say(f"{count} suspended TrainJobs")
    names = [f"llm-{i}" for i in range(count)]
    watched = subprocess.Popen([world.kubectl_program, "--kubeconfig", world.kubeconfig, "get", "trainjobs", "-n", "default", "-o",
                                "json", "--watch", "--output-watch-events"], stdout=subprocess.PIPE, text=True)
    created, answered = {}, {}

    def follow():  # beside the creations, so that events are timed when they come
        reader = Documents(watched.stdout)
        while len(answered) < count:
            item, now = reader.next()["object"], time.monotonic()
            name = item["metadata"]["name"]
            created.setdefault(name, now)
            if "medley.dev/recommended" in item["metadata"].get("annotations", {}):
                answered.setdefault(name, now)

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    try:
        for name in names:
            world.apply([train_job(name, own=name == names[0])])
        follower.join(PATIENCE)
    finally:
        watched.terminate()
        watched.wait()
    seconds = sorted(answered[name] - created[name] for name in answered)
    if len(seconds) < count:
        raise RuntimeError(f"{count - len(seconds)} TrainJobs have no answer")

    def whole():
        sets = {item["metadata"]["name"]: item for item in world.list("jobsets")}
        jobs = {item["metadata"]["name"]: item for item in world.list("jobs")}
        for item in world.list("trainjobs"):
            name = item["metadata"]["name"]
            answer = json.loads(item["metadata"]["annotations"]["medley.dev/recommended"])
            job = jobs.get(f"{name}-node-0")
            if item["spec"].get("suspend") or name not in sets or sets[name]["spec"].get("suspend") or job is None:
                return None
            spec = job["spec"]
            selector = spec["template"]["spec"].get("nodeSelector", {})
            if spec["parallelism"] != answer["nodes"] or selector.get("example.com/gpu") != answer["pool"]:
                raise RuntimeError(f"{name}: {answer}, but its Job has {spec['parallelism']} pods and {selector}")
            if name == names[0] and selector.get("example.com/team") != "a":
                raise RuntimeError(f"{name}: the user's own override is lost: {selector}")
        return True
    world.eventually("Trainer and JobSet have not made the Jobs", whole)
    return seconds


class Documents:
    """JSON documents that follow each other in a stream."""

    def __init__(self, stream):
        self.stream, self.text, self.decoder = stream, "", json.JSONDecoder()

    def next(self):
        while True:
            self.text = self.text.lstrip()
            try:
                document, end = self.decoder.raw_decode(self.text)
            except ValueError:
                line = self.stream.readline()
                if not line:
                    raise RuntimeError("the watch has ended") from None
                self.text += line
                continue
            self.text = self.text[end:]
            return document


def check_others(world):
    say("an Indexed Job, a JobSet, and a TrainJob that no pool suits")
    pods = {"spec": {"restartPolicy": "Never", "containers": [container("main")]}}
    world.apply([
        asking(JOB, "indexed", {"completionMode": "Indexed", "parallelism": 1, "completions": 1, "template": pods},
               throughput='{"reserved": 100}', min_throughput="300", units="1,2,4"),
        asking(JOB_SET, "set", {"replicatedJobs": [
            {"name": "driver", "replicas": 1, "template": {"spec": {"template": pods}}},
            {"name": "workers", "replicas": 1, "template": {"spec": {"parallelism": 3, "completions": 3, "template": pods}}}]},
               throughput='{"reserved": 100}', target="workers"),
        train_job("never", min_throughput="1e9")])
    job = world.eventually("the Job is not resumed", lambda: next(
        (item for item in world.list("jobs") if item["metadata"]["name"] == "indexed" and not item["spec"]["suspend"]), None))
    if job["spec"]["parallelism"] != 4 or job["spec"]["completions"] != 4:
        raise RuntimeError(f"the Job has {job['spec']['parallelism']} pods")
    workers = world.eventually("JobSet has not made the workers", lambda: next(
        (item for item in world.list("jobs") if item["metadata"]["name"] == "set-workers-0" and not item["spec"]["suspend"]), None))
    if workers["spec"]["template"]["spec"].get("nodeSelector", {}).get("example.com/gpu") != "reserved":
        raise RuntimeError(f"the workers have the node selector {workers['spec']['template']['spec'].get('nodeSelector')}")
    never = world.eventually("the infeasible TrainJob has no condition", lambda: next(
        (item for item in world.list("trainjobs") if item["metadata"]["name"] == "never" and condition(item, "MedleyRecommended")),
        None))
    why = condition(never, "MedleyRecommended")
    if why["status"] != "False" or "min-throughput" not in why["message"] or not never["spec"]["suspend"]:
        raise RuntimeError(f"the infeasible TrainJob has {why}")
    say(f"it says: {why['message']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--out", default=os.path.join(ROOT, "build/recommend"))
    parser.add_argument("--build-only", action="store_true")
    arguments = parser.parse_args()
    built = build()
    if arguments.build_only:
        return 0
    world = World(os.path.realpath(arguments.out))
    try:
        world.apply(read_all(os.path.join(ROOT, "deploy/crds")))
        world.apply([pool("spot", "1.0"), pool("reserved", "2.5")])
        start_controllers(world, built)
        world.eventually("the runtime is refused", lambda: world.apply([RUNTIME]) or True)
        world.start("medley-operator", os.path.join(ROOT, "build/bin/medley-operator"), f"--kubeconfig={world.kubeconfig}",
                    "--no-leader-elect", "--http-port=0", "--recommend")
        world.eventually("the pools have no price", lambda: all(
            item.get("status", {}).get("units", {}).get("free") == UNITS
            for item in json.loads(world.kubectl("get", "resourcepools", "-o", "json"))["items"]))
        seconds = check_train_jobs(world, arguments.jobs)
        check_others(world)
    except RuntimeError as error:
        say(f"FAILED: {error} (logs: {world.out})")
        return 1
    finally:
        world.end()
    last = seconds[min(len(seconds) - 1, int(0.99 * len(seconds)))]
    print(f"{len(seconds)} TrainJobs: from creation to answer median {seconds[len(seconds) // 2]:.3f} s, "
          f"p99 {last:.3f} s (<= {MOST_SECONDS:g} s), load {os.getloadavg()[0]:.1f}")
    return 0 if last <= MOST_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
