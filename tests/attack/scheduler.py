"""Attacks on the scheduling service, by clients that know its address and some that have its token.

Every function in ON_THEIR_OWN starts a service of its own and returns a row: attack, outcome, ok, peak_mib (the largest
resident memory of the service), fds_before and fds_after.
"""
import contextlib
import http.client
import json
import math
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time

from measure import Row

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(os.environ.get("MEDLEY_BIN_DIR", os.path.join(SOURCE, "build", "bin")), "medley-scheduler")
FLOOD = os.path.join(os.path.dirname(PROGRAM), "grpc_flood")
FRAMES = os.path.join(os.path.dirname(PROGRAM), "http2_flood")
MOST_MIB = 256
PATIENCE = 120
TOKEN = "attack-token-0123456789"
SOAK = "MEDLEY_SOAK" in os.environ  # ./dev soak: attacks that only repeat themselves last longer
PRICES = """entries:
- {resourceType: cpu, class: CPU, limit: 480, pricePerUnitHour: 0.04}
- {resourceType: gpu, class: GPU, limit: 32, pricePerUnitHour: 2.42}
"""


class Service:
    """A running medley-scheduler in a folder of its own."""

    def __init__(self, *options, tls=False):
        self.tls = tls
        self.folder = tempfile.mkdtemp(prefix="medley-attack-")
        self.log_path = os.path.join(self.folder, "log")
        ports = os.path.join(self.folder, "ports")
        with open(os.path.join(self.folder, "prices.yaml"), "w", encoding="ascii") as file:
            file.write(PRICES)
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "--grpc-listen", "127.0.0.1:0", "--rest-listen", "127.0.0.1:0", "--port-file", ports,
                 "--prices", os.path.join(self.folder, "prices.yaml"), *options], stdout=log, stderr=log)
        wait_for("the service starts", lambda: os.path.exists(ports) or self.process.poll() is not None)
        with open(ports, encoding="ascii") as file:
            ports = json.load(file)
        self.port, self.grpc = ports["rest"], ports["grpc"]
        wait_for("it has prices", lambda: self.ask("GET", "/readyz")[0] == 200)

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, method, path, body=None, headers=None, timeout=PATIENCE):
        """(code, body, headers); code 0 if the connection broke."""
        if self.tls:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout,
                                                     context=ssl._create_unverified_context())  # pylint: disable=W0212
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace"), dict(answer.headers)
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error), {}
        finally:
            connection.close()

    def raw(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def memory_mib(self, field):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(field + ":")) / 1024

    def fds(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def metric(self, name, headers=None):
        for line in self.ask("GET", "/metrics", headers=headers)[1].splitlines():
            if line.startswith(name + " "):
                return float(line.split()[-1])
        return 0.0

    def log_lines(self):
        with open(self.log_path, "rb") as file:
            return file.read().count(b"\n")


def wait_for(what, condition, patience=PATIENCE):
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {patience} s: {what}")
        time.sleep(0.02)


def at_once(count, work):
    """Calls work(i) in `count` threads and returns the results."""
    results = [None] * count

    def run(i):
        results[i] = work(i)
    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * PATIENCE)
    return results


@contextlib.contextmanager
def attacked(attack, row, *options, tls=False):
    """Runs a service, and completes the row when the attack is over."""
    service = Service(*options, tls=tls)
    try:
        row.update(attack=attack, outcome="", ok=False, peak_mib=0.0, fds_before=service.fds(), fds_after=-1)
        yield service
        alive = service.process.poll() is None
        if not alive:
            row["outcome"] += f"; the service ended with {service.process.returncode}"
            row["ok"] = False
            return
        with contextlib.suppress(AssertionError):
            wait_for("its connections are closed", lambda: service.fds() <= row["fds_before"], 30)
        row["fds_after"] = service.fds()
        row["peak_mib"] = round(service.memory_mib("VmHWM"), 1)
        row["ok"] = bool(row["ok"] and row["peak_mib"] <= MOST_MIB and row["fds_after"] <= row["fds_before"] + 1
                         and service.ask("GET", "/healthz")[0] == 200)
    except (AssertionError, OSError) as error:
        row["outcome"] += f"; {error}"
        row["ok"] = False
    finally:
        service.close()


def plan_request(planner="exact", seconds=10, layers=4, price=2.0, **options):
    """A plan that can be made; `options` go into the planner."""
    profiles = [{"resourceType": name, "computeSeconds": 0.01 * factor, "computeParallel": 0.9, "syncSeconds": 0.001,
                 "commParallel": 0.9} for name, factor in (("cpu", 5), ("gpu", 1))]
    return {"model": {"layers": [{"name": f"l{i}", "weightBytes": 1e6, "profiles": profiles} for i in range(layers)]},
            "training": {"profileBatchSize": 64, "samplesPerEpoch": 1e6},
            "constraints": {"minThroughput": 100},
            "resources": [{"name": "cpu", "class": "CPU", "limit": 100, "pricePerUnitHour": 0.1},
                          {"name": "gpu", "class": "GPU", "limit": 10, "pricePerUnitHour": price}],
            "serverType": "cpu", "planner": {"name": planner, "timeBudgetSeconds": seconds, **options}}


def expensive_request(seconds):
    return plan_request("rl-lstm", seconds, layers=16, options={"rounds": 1000000, "samplesPerRound": 64})


def bomb():
    """A few hundred bytes that are gigabytes when their aliases are expanded."""
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    for c in "bcdefghi":
        before = chr(ord(c) - 1)
        lines.append(f"{c}: &{c} [{','.join(['*' + before] * 9)}]")
    return "\n".join(lines) + "\n"


def alias_bombs():
    row = {}
    with attacked("20 concurrent YAML alias bombs, 5 times", row) as service:
        codes = []
        for _ in range(5):
            codes += at_once(20, lambda i: service.ask("POST", "/v1/plan", bomb(), {"Content-Type": "application/yaml"})[0])
        row["outcome"] = f"{len(bomb())} bytes each; codes {sorted(set(codes))}"
        row["ok"] = set(codes) <= {400, 429}
    return row


def large_documents():
    """Bodies near the limit whose values or messages need many times their size."""
    row = {}
    kinds = {
        "deep list": b"[" * (1 << 20),
        "deep object": b'{"a":' * (1 << 18),
        "wide list": b'{"model":{"layers":[' + b",".join([b"{}"] * 1_300_000) + b"]}}",
        "wide object": b"{" + b",".join(b'"%d":{}' % i for i in range(300_000)) + b"}",
        "many profiles": b'{"model":{"layers":[{"profiles":[' + b",".join([b"{}"] * 190_000) + b"]}]}}",
        "many layers": b'{"model":{"layers":[' + b",".join([b"{}"] * 30_000) + b"]}}",
        "long string": b'{"profileId":"' + b"x" * (4_000_000) + b'"}',
        "yaml list": b"model: {layers: [" + b",".join([b"{}"] * 1_300_000) + b"]}",
        "yaml anchors": b"".join(b"a%d: &a%d [x]\n" % (i, i) for i in range(100_000)),
    }
    names = list(kinds) * 4
    with attacked("36 concurrent documents of up to 4 MiB", row) as service:
        random.Random(20261122).shuffle(names)
        codes = at_once(len(names), lambda i: service.ask("POST", "/v1/plan", kinds[names[i]], {
            "Content-Type": "application/yaml" if names[i].startswith("yaml") else "application/json"})[0])
        wait_for("idle", lambda: service.metric("medley_rest_connections") <= 1)
        kept = service.memory_mib("VmRSS")
        row["outcome"] = f"codes {sorted(set(codes))}; {kept:.0f} MiB kept"
        row["ok"] = set(codes) <= {400, 429, 503, 0} and 400 in codes and kept < 128
    return row


def broken_uploads():
    row = {}
    with attacked("10,000 uploads that break off", row) as service:
        head = (b"POST /v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: 1000000\r\n\r\n{")
        lines, before = service.log_lines(), service.memory_mib("VmRSS")

        def upload(_):
            for _ in range(1250):
                with contextlib.suppress(OSError), service.raw() as connection:
                    connection.sendall(head)
        at_once(8, upload)
        name = 'medley_rest_connections_ended_total{reason="broken"}'

        def ended():
            return service.metric(name) + service.metric('medley_rest_connections_ended_total{reason="too many"}')
        with contextlib.suppress(AssertionError):
            wait_for("each is counted", lambda: ended() >= 9000, 60)
        counted, logged, grown = ended(), service.log_lines() - lines, service.memory_mib("VmRSS") - before
        row["outcome"] = f"{counted:.0f} counted, {logged} lines logged, {grown:.0f} MiB more"
        row["ok"] = 9000 <= counted <= 10000 and logged <= 10000 and grown < 64
    return row


def slow_bodies():
    row = {}
    with attacked("200 slow bodies", row, "--receive-seconds", "3") as service:
        lines = service.log_lines()
        connections = []
        for _ in range(200):
            connection = service.raw()
            connection.sendall(b"POST /v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                               b"Content-Length: 9999\r\n\r\n{")
            connections.append(connection)
        code = service.ask("POST", "/v1/plan", json.dumps(plan_request()))[0]
        name = 'medley_rest_connections_ended_total{reason="slow"}'
        with contextlib.suppress(AssertionError):
            wait_for("all are ended", lambda: service.metric(name) >= 200, 60)
        row["outcome"] = (f"a request beside them: {code}; {service.metric(name):.0f} ended, "
                          f"{service.log_lines() - lines} lines logged")
        row["ok"] = code == 200 and service.metric(name) == 200 and service.log_lines() - lines < 50
        for connection in connections:
            connection.close()
    return row


def endless_headers():
    row = {}
    with tempfile.TemporaryDirectory() as folder, attacked("64 connections with endless headers, without a token", row,
                                                           "--token-file", token_file(folder)) as service:
        def send(_):
            sent = 0
            with contextlib.suppress(OSError), service.raw() as connection:
                connection.sendall(b"GET /v1/planners HTTP/1.1\r\n")
                for _ in range(128):
                    connection.sendall(b"x: " + b"y" * 65536 + b"\r\n")
                    sent += 65536
            return sent
        sent = at_once(64, send)
        code = service.ask("GET", "/v1/planners", headers={"Authorization": f"Bearer {TOKEN}"})[0]
        unknown = service.ask("GET", "/v1/planners")[0]
        row["outcome"] = f"at most {max(sent) >> 10} KiB sent; with the token {code}, without {unknown}"
        row["ok"] = max(sent) < 128 * 65536 and (code, unknown) == (200, 401)
    return row


def token_file(folder):
    path = os.path.join(folder, "token")
    with open(path, "w", encoding="ascii") as file:
        file.write(TOKEN + "\n")
    return path


def silent_connections():
    row = {}
    with attacked("600 silent connections", row) as service:
        connections = [service.raw() for _ in range(600)]
        code = service.ask("GET", "/healthz")[0]
        row["outcome"] = f"a request beside them: {code}"
        row["ok"] = code == 200
        for connection in connections:
            connection.close()
    return row


def expensive_plans():
    row = {}
    with attacked("24 plans with a budget of 10 h, and cheap plans beside them", row, "--grace-seconds", "0") as service:
        sockets = []
        for i in range(24):
            body = json.dumps(expensive_request(36000 + i)).encode()
            connection = service.raw()
            connection.sendall(b"POST /v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                               b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            sockets.append(connection)
        name = 'medley_scheduler_class_in_flight{class="expensive"}'
        wait_for("expensive plans run", lambda: service.metric(name) == 2)
        slowest, codes = 0.0, set()
        for i in range(20):
            begin = time.monotonic()
            codes.add(service.ask("POST", "/v1/plan", json.dumps({**plan_request(), "profileId": str(i)}))[0])
            slowest = max(slowest, time.monotonic() - begin)
        running = service.metric(name)
        for connection in sockets:
            connection.close()
        begin = time.monotonic()
        wait_for("the clients have left", lambda: service.metric("medley_scheduler_requests_in_flight") == 0)
        row["outcome"] = (f"cheap plans: {sorted(codes)}, slowest {slowest * 1000:.0f} ms, while {running:.0f} expensive ones run; "
                          f"all places free {time.monotonic() - begin:.1f} s after the clients left")
        row["ok"] = codes == {200} and running == 2
    return row


def large_cheap_requests():
    """Requests that are as large as cheap ones may be, and texts that take seconds to read; tiny plans beside them."""
    row = {}
    with attacked("4 clients with 2.8 MB of YAML and 24 with the largest cheap plans, and tiny plans beside them",
                  row) as service:
        end = time.monotonic() + (12 if SOAK else 6)
        yaml = b"profileId: " + b"x" * 100 + b"\nmodel:\n  layers:\n" + b"".join(
            b"  - {name: l%06d, weightBytes: 1000000, profiles: [{resourceType: cpu, computeSeconds: 0.01}]}\n" % i
            for i in range(33_000))
        large = json.dumps({**plan_request(layers=2000), "profileId": "large"}).encode()
        seconds, codes, others = [], [], []

        def attack(i):
            n = 0
            while time.monotonic() < end:
                n += 1
                if i < 4:
                    others.append(service.ask("POST", "/v1/plan", yaml + b"#%d" % n, {"Content-Type": "application/yaml"})[0])
                elif i < 28:
                    others.append(service.ask("POST", "/v1/plan", large.replace(b"large", b"%d-%d" % (i, n)))[0])
                else:
                    begin = time.monotonic()
                    codes.append(service.ask("POST", "/v1/plan", json.dumps({**plan_request(), "profileId": f"{i}-{n}"}))[0])
                    seconds.append(time.monotonic() - begin)
                    time.sleep(0.05)
        at_once(30, attack)
        seconds.sort()
        late = seconds[len(seconds) * 99 // 100] if seconds else math.inf
        row["outcome"] = (f"{len(yaml) / 1e6:.1f} MB of YAML; {len(codes)} tiny plans {sorted(set(codes))}, 99 % within "
                          f"{late * 1000:.0f} ms, slowest {seconds[-1] * 1000:.0f} ms; the others {sorted(set(others))}")
        row["ok"] = set(codes) == {200} and late < 0.2
    return row


def rebinding():
    row = {}
    with attacked("a web page under a name of its own (DNS rebinding)", row) as service:
        foreign = service.ask("GET", "/v1/planners", headers={"Host": "evil.example"})[0]
        origin = service.ask("POST", "/v1/plan", json.dumps(plan_request()), {"Origin": "https://evil.example"})[0]
        form = service.ask("POST", "/v1/plan", json.dumps(plan_request()), {"Content-Type": "text/plain"})[0]
        own = service.ask("GET", "/v1/planners", headers={"Host": f"localhost:{service.port}"})[0]
        row["outcome"] = f"foreign Host {foreign}, foreign Origin {origin}, text/plain {form}, own name {own}"
        row["ok"] = (foreign, origin, form, own) == (421, 403, 415, 200)
    return row


def numbers(value):
    """All numbers of a JSON value, and whether it has text such as Infinity in place of one."""
    if isinstance(value, dict):
        return [n for child in value.values() for n in numbers(child)]
    if isinstance(value, list):
        return [n for child in value for n in numbers(child)]
    if isinstance(value, str):
        return [math.inf] if value in ("Infinity", "-Infinity", "NaN") else []
    return [value] if isinstance(value, float) else []


def paths(value, here=()):
    """The paths of all numbers."""
    if isinstance(value, dict):
        return [p for key, child in value.items() for p in paths(child, here + (key,))]
    if isinstance(value, list):
        return [p for i, child in enumerate(value) for p in paths(child, here + (i,))]
    return [here] if isinstance(value, (int, float)) and not isinstance(value, bool) else []


def grpc_messages():
    """512 large messages at once, without the token and with it."""
    row = {}
    with tempfile.TemporaryDirectory() as folder, attacked("1,024 gRPC messages of 16 MiB, half of them with the token",
                                                           row, "--token-file", token_file(folder)) as service:
        outcomes = []
        for token in ("wrong", TOKEN):
            done = subprocess.run([FLOOD, f"127.0.0.1:{service.grpc}", "/medley.scheduler.v1.SchedulerService/Plan", "16",
                                   "32", "16"], capture_output=True, text=True, check=True, timeout=2 * PATIENCE,
                                  env={**os.environ, "GRPC_FLOOD_TOKEN": token})
            outcomes.append(json.loads(done.stdout))
        row["outcome"] = "; ".join(", ".join(f"{count} {code}" for code, count in ended.items()) for ended in outcomes)
        row["ok"] = all("OK" not in ended for ended in outcomes) and "UNAUTHENTICATED" in outcomes[0]
    return row


def honest_grpc_call(service):
    """Whether one call with the token is answered at once, and the seconds of a process that makes it."""
    begin = time.monotonic()
    done = subprocess.run([FLOOD, f"127.0.0.1:{service.grpc}", "/medley.scheduler.v1.SchedulerService/ListPlanners", "1", "1",
                           "0"], capture_output=True, text=True, check=True, timeout=PATIENCE,
                          env={**os.environ, "GRPC_FLOOD_TOKEN": TOKEN})
    return "OK" in json.loads(done.stdout), time.monotonic() - begin


def frame_floods():
    """Floods of HTTP/2 frames without a token, one after the other, and one of each kind through TLS."""
    for seconds, attacks, tls in (
            (10 if SOAK else 3, ["reset"], False),
            (2 if SOAK else 1, ["reset-data", "reset-fields", "reset-unknown", "made-reset", "empty", "open", "ping", "settings",
                                "priority", "empty-data", "continuation", "silent", "preface"], False),
            (2 if SOAK else 1, ["reset", "open", "ping", "preface"], True)):
        row = {}
        with tempfile.TemporaryDirectory() as folder:
            options = ["--token-file", token_file(folder)]
            if tls:
                certificate, key = (os.path.join(folder, name) for name in ("tls.crt", "tls.key"))
                subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                                "-days", "1", "-subj", "/CN=localhost", "-keyout", key, "-out", certificate],
                               capture_output=True, check=True)
                options += ["--tls-cert", certificate, "--tls-key", key]
            with attacked(f"HTTP/2 frames without a token{', through TLS' if tls else ''}: {', '.join(attacks)}", row,
                          *options, tls=tls) as service:
                calls = []
                for attack in attacks:
                    connections = "300" if attack in ("silent", "preface") else "24"
                    with subprocess.Popen([FRAMES, f"127.0.0.1:{service.grpc}", attack, connections, str(seconds),
                                           *(["tls"] if tls else [])], stdout=subprocess.DEVNULL) as flood:
                        time.sleep(0.3)
                        while not tls and flood.poll() is None:
                            calls.append(honest_grpc_call(service))
                        if flood.wait(PATIENCE) != 0:
                            raise AssertionError(f"the flood {attack} failed")
                    if not tls:
                        calls.append(honest_grpc_call(service))
                kept = service.memory_mib("VmRSS")
                slowest = max((took for _, took in calls), default=0)
                refused = sum(not ok for ok, _ in calls)
                row["outcome"] = (f"{refused} of {len(calls)} honest calls refused, the slowest took {slowest:.2f} s; "
                                  f"{kept:.0f} MiB kept")
                row["ok"] = refused == 0
        yield Row(**row)


def huge_numbers():
    row = {}
    with attacked("1e308 and others in every number of a request", row) as service:
        code, text, _ = service.ask("POST", "/v1/plan", json.dumps(plan_request(price=1e308)))
        rng = random.Random(20261122)
        values = (1e308, 1e300, 1e155, 1e30, 1e-308, 5e-324, 0, -1, -1e308, 2**31 - 1, 2**63 - 1, 1e6)
        bad, answered = [], 0
        for path in paths(plan_request(layers=2)):
            for value in values:
                request = plan_request(layers=2, seconds=1)
                for changed in (path, rng.choice(paths(request)) if rng.random() < 0.5 else path):
                    place = request
                    for key in changed[:-1]:
                        place = place[key]
                    place[changed[-1]] = value
                status, answer, _ = service.ask("POST", "/v1/plan", json.dumps(request))
                if status == 200:
                    answered += 1
                    if not all(math.isfinite(n) for n in numbers(json.loads(answer))):
                        bad.append((path, value))
                elif status not in (400, 429, 504):
                    bad.append((path, value, status))
        row["outcome"] = f"as a price: {code}; {answered} plans, {len(bad)} wrong answers {bad[:2] if bad else ''}"
        row["ok"] = code == 400 and "pricePerUnitHour" in text and not bad
    return row


def plans_too_large():
    """Small requests whose plans would need gigabytes when they are simulated."""
    row = {}
    layers = [{"name": f"l{i}", "weightBytes": 1, "profiles": [{"resourceType": "p", "computeSeconds": 1}]} for i in range(1000)]
    profile = {"model": {"layers": layers}, "profileBatchSize": 8}

    def stage(first, end, pools, units):
        return {"operations": [{"first": first, "end": end}],
                "groups": [{"pool": pool, "units": units, "share": 1 / len(pools)} for pool in pools],
                "syncs": [{"operations": [{"first": first, "end": end}], "sync": {"kind": "SYNC_KIND_ALLREDUCE"}}]}
    most = 2**31 - 1
    plans = [
        {"stages": [stage(0, 1000, ["p"], most)], "schedule": {"microBatches": 1}},
        {"stages": [stage(0, 1000, ["p"], 99_999)], "schedule": {"microBatches": 1, "bucketBytes": 1}},
        {"stages": [stage(0, 500, ["p"], 1), stage(500, 1000, ["p"], 1)], "schedule": {"microBatches": most}},
        {"stages": [stage(0, 500, ["p"], 1), stage(500, 1000, ["p"], 1)], "schedule": {"microBatches": 65_536}},
        {"stages": [stage(0, 1000, [f"p{i}" for i in range(20_000)], 1)], "schedule": {"microBatches": 1}},
        {"stages": [stage(i, i + 1, ["p"], 50) for i in range(1000)], "schedule": {"microBatches": 60_000}},
    ]
    bodies = [json.dumps({"plan": p, "profile": profile, "timeline": True, "steps": 100, "rankOrder": rank})
              for p in plans for rank in (False, True)]
    asked = plan_request()
    asked["training"]["microBatches"] = most
    bodies = [("/v1/simulate", body) for body in bodies] + [("/v1/plan", json.dumps({**asked, "simulate": True}))]
    with attacked(f"{len(bodies)} plans that would need gigabytes when simulated, 4 times", row) as service:
        codes = at_once(4 * len(bodies), lambda i: service.ask("POST", *bodies[i % len(bodies)])[0])
        row["outcome"] = f"codes {sorted(set(codes))}"
        row["ok"] = set(codes) <= {200, 400, 429} and 400 in codes
    return row


def mixture():
    """All of the above at the same time."""
    row = {}
    seconds = 15 if SOAK else 5
    with attacked(f"all at the same time for {seconds} s", row, "--receive-seconds", "2", "--grace-seconds", "0") as service:
        end = time.monotonic() + seconds
        wide = b'{"model":{"layers":[' + b",".join([b"{}"] * 30_000) + b"]}}"
        cheap = []

        def attack(i):
            n = 0
            while time.monotonic() < end:
                n += 1
                kind = i % 6
                if kind == 0:
                    service.ask("POST", "/v1/plan", bomb(), {"Content-Type": "application/yaml"})
                elif kind == 1:
                    service.ask("POST", "/v1/plan", wide)
                elif kind == 2:
                    with contextlib.suppress(OSError), service.raw() as connection:
                        connection.sendall(b"POST /v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                           b"Content-Length: 4000000\r\n\r\n" + b" " * 500_000)
                elif kind == 3:
                    service.ask("POST", "/v1/plan", json.dumps(expensive_request(36000 + n)), timeout=1)
                elif kind == 4:
                    with contextlib.suppress(OSError), service.raw() as connection:
                        connection.sendall(b"GET / HTTP/1.1\r\n" + b"x: " + b"y" * 60000)
                        time.sleep(0.2)
                else:
                    cheap.append(service.ask("POST", "/v1/plan", json.dumps({**plan_request(), "profileId": f"{i}-{n}"}))[0])
        at_once(30, attack)
        served = cheap.count(200) / max(len(cheap), 1)
        row["outcome"] = f"{len(cheap)} cheap plans beside them, {100 * served:.0f} % answered, codes {sorted(set(cheap))}"
        row["ok"] = served > 0.5
    return row


def without_a_cluster(attack):
    """Makes an attack one that tests/attack/run can start."""
    def run(_cluster, _folder):
        yield Row(**attack())
    run.__name__ = attack.__name__
    return run


ON_THEIR_OWN = (alias_bombs, large_documents, broken_uploads, slow_bodies, endless_headers, silent_connections,
                expensive_plans, rebinding, grpc_messages, huge_numbers, plans_too_large, mixture)


def frames(_cluster, _folder):
    yield from frame_floods()


ATTACKS = [without_a_cluster(attack) for attack in ON_THEIR_OWN] + [frames]
