"""Processes for the live test: `medley run --keep` with a real kubectl, further programs, and a real Prometheus."""
import base64
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

SOURCE = os.environ["MEDLEY_SOURCE_DIR"]
BIN = os.environ["MEDLEY_BIN_DIR"]
PATIENCE = float(os.environ.get("MEDLEY_PATIENCE_SECONDS", "900"))  # an upper bound, for busy machines
PROMETHEUS = "/usr/bin/prometheus"
PROMTOOL = "/usr/bin/promtool"
LOOPBACK = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def wait_for(what, condition, end=None):
    """Calls `condition` until it returns a true value, and returns that."""
    end = time.monotonic() + PATIENCE if end is None else end
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.2)
    raise AssertionError(f"not within {PATIENCE:.0f} s: {what}")


def get(url, timeout=60):
    with LOOPBACK.open(url, timeout=timeout) as answer:
        return answer.read().decode("utf-8")


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def write(path, text):
    """Writes the file atomically, because other processes read it at any time."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + ".new", path)
    return path


def unused_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Processes:
    """The processes that a test starts; all are ended at its end, also after a failure."""

    def __init__(self, folder):
        self.folder, self.running = folder, {}

    def start(self, name, program, *arguments):
        with open(self.log_path(name), "w", encoding="utf-8") as log:
            self.running[name] = subprocess.Popen([program, *arguments], stdout=log, stderr=log, cwd=self.folder,
                                                  stdin=subprocess.DEVNULL)
        return self.running[name]

    def log_path(self, name):
        return os.path.join(self.folder, name + ".log")

    def log(self, name):
        return read(self.log_path(name))

    def alive(self, name):
        status = self.running[name].poll()
        if status is not None:
            raise AssertionError(f"{name} ended with {status}: {self.log(name)[-3000:]}")
        return True

    def close(self):
        for process in reversed(list(self.running.values())):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.send_signal(signal.SIGINT)
        for process in self.running.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


# All jobs of these tests are in the namespace `default`; pools have no namespace.
MEDLEY_GROUP, CORE = "/apis/medley.dev/v1alpha1", "/api/v1/namespaces/default"
PATHS = {"trainingjobs": f"{MEDLEY_GROUP}/namespaces/default/trainingjobs", "resourcepools": f"{MEDLEY_GROUP}/resourcepools",
         **{kind: f"{CORE}/{kind}" for kind in ("configmaps", "events", "pods", "secrets")}}


class Cluster:
    """`medley run --keep` and the processes that it starts. `manifests`: pools and one short job."""

    def __init__(self, files, manifest):
        self.folder = tempfile.mkdtemp(prefix="medley-observability-test-")
        self.processes = Processes(self.folder)
        self.run = os.path.join(self.folder, "run")
        self.kubeconfig = os.path.join(self.run, "kubeconfig")
        for name, text in files.items():
            write(os.path.join(self.folder, name), text)
        self.processes.start("medley", os.path.join(BIN, "medley"), "run", os.path.join(self.folder, manifest),
                             "--plain", "--keep", "--folder", self.run, "--export", os.path.join(self.folder, "model"),
                             "--timeout", str(PATIENCE))

    def close(self):
        self.processes.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def operator(self):
        """127.0.0.1:PORT of its metrics."""
        found = wait_for("the operator's port", lambda: self.processes.alive("medley") and re.search(
            r"http port (\d+)", read(os.path.join(self.run, "operator.log"))))
        return f"127.0.0.1:{found.group(1)}"

    def scheduler(self):
        ports = json.loads(read(os.path.join(self.run, "scheduler.ports")))
        return f"127.0.0.1:{ports['rest']}"

    def kubectl(self, *arguments, text=None):
        done = subprocess.run(["kubectl", "--kubeconfig", self.kubeconfig, *arguments], capture_output=True, text=True,
                              check=False, input=text, timeout=PATIENCE)
        if done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def get(self, kind, name="", labels=""):
        """The object, or the list of objects. What is polled is read so, because a kubectl takes 0.1 s of processor time."""
        config = json.loads(read(self.kubeconfig))
        server = config["clusters"][0]["cluster"]
        tls = ssl.create_default_context(cadata=base64.b64decode(server["certificate-authority-data"]).decode())
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls))
        url = server["server"] + PATHS[kind] + (f"/{name}" if name else "")
        if labels:
            url += "?" + urllib.parse.urlencode({"labelSelector": labels})
        request = urllib.request.Request(url, headers={"Authorization": "Bearer " + config["users"][0]["user"]["token"]})
        try:
            with opener.open(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{url}: {error.code}: {error.read().decode()}") from error

    def apply(self, *objects):
        self.kubectl("apply", "--validate=false", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def job(self, name):
        return self.get("trainingjobs", name)

    def phase(self, name):
        return self.job(name).get("status", {}).get("phase", "")

    def pods(self, job, role):
        found = self.get("pods", labels=f"medley.dev/job-name={job},medley.dev/role={role}")["items"]
        return [pod for pod in found if pod.get("status", {}).get("phase") == "Running"]

    def process_of(self, pod):
        """The process id of a pod's container: the process whose environment has the pod's name."""
        name = pod["metadata"]["name"]
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    environment = file.read().split(b"\0")
            except OSError:
                continue
            if f"MEDLEY_MEMBER={name}".encode() in environment and \
                    f"MEDLEY_JOB_UID={pod['metadata']['ownerReferences'][0]['uid']}".encode() in environment:
                return int(entry)
        return None

    def children(self, program):
        """The processes that `medley run` started directly."""
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                stat = read(f"/proc/{entry}/stat")
                if stat and stat.rsplit(")", 1)[1].split()[1] == str(self.processes.running["medley"].pid) and \
                        program.startswith(stat.split("(", 1)[1].rsplit(")", 1)[0]):
                    found.append(int(entry))
        return found


class Prometheus:
    """Debian's Prometheus on a free port. Targets can be added while it runs. `scrapes`: further scrape configurations."""

    def __init__(self, processes, folder, rules, scrapes=()):
        self.processes, self.folder, self.port = processes, folder, None
        self.targets = os.path.join(folder, "targets.json")
        self.entries = []
        write(self.targets, "[]")
        write(os.path.join(folder, "rules.yml"), rules)
        write(os.path.join(folder, "prometheus.yml"), f"""
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: [rules.yml]
scrape_configs:
- job_name: medley
  honor_labels: true  # the labels namespace and job name a TrainingJob
  file_sd_configs: [{{files: [{self.targets}], refresh_interval: 1s}}]
""" + "".join(f"- {json.dumps(scrape)}\n" for scrape in scrapes))
        self.start()
        wait_for("prometheus", self.ready)

    def start(self):
        self.port = unused_port()
        self.processes.start("prometheus", PROMETHEUS, "--config.file=" + os.path.join(self.folder, "prometheus.yml"),
                             "--storage.tsdb.path=" + os.path.join(self.folder, "tsdb"), "--log.level=warn",
                             f"--web.listen-address=127.0.0.1:{self.port}")

    def ready(self):
        try:
            self.processes.alive("prometheus")
        except AssertionError as ended:
            if "address already in use" not in str(ended):
                raise
            self.start()  # another process took the port before Prometheus did
        try:
            return "Ready" in get(f"http://127.0.0.1:{self.port}/-/ready", 5)
        except OSError:
            return False

    def scrape(self, address, part):
        self.entries.append({"targets": [address], "labels": {"part": part}})
        write(self.targets, json.dumps(self.entries))

    def forget(self, address):
        self.entries = [entry for entry in self.entries if entry["targets"] != [address]]
        write(self.targets, json.dumps(self.entries))

    def api(self, path, **parameters):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            answer = json.loads(get(url))
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error
        return answer["data"]

    def now(self, query):
        return self.api("query", query=query)["result"]

    def over(self, query, start, end):
        """The finite samples of all series between two times."""
        step = max(1, int((end - start) / 5000))
        series = self.api("query_range", query=query, start=start, end=end, step=step)["result"]
        return [value for one in series for _, value in one["values"] if value != "NaN"]


def families(page):
    """Parses a page of metrics into {name: (type, help, {labels of its samples})}."""
    found, kinds, helps = {}, {}, {}
    for line in page.splitlines():
        if line.startswith("# HELP "):
            _, _, name, words = (line + " ").split(" ", 3)
            helps[name] = words.strip()
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            kinds[name] = kind
            found[name] = (kind, helps.get(name, ""), set())
        elif line:
            name = re.match(r"[a-zA-Z_:][a-zA-Z0-9_:]*", line).group(0)
            base = next((b for b in (name, re.sub(r"_(bucket|sum|count)$", "", name)) if b in kinds), None)
            if base is None:
                raise AssertionError(f"a sample without TYPE: {line}")
            labels = re.match(r"[^{ ]*(?:\{(.*)\})? \S+$", line).group(1) or ""
            found[base][2].update(label for label in re.findall(r'([a-zA-Z_]+)="(?:[^"\\]|\\.)*"', labels) if label != "le")
    return found
