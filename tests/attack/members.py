"""Attacks on the processes of a job, by someone who knows only their addresses."""
import glob
import json
import os
import socket
import subprocess
import tempfile
import time

from cluster_jobs import VICTIM, wait_for
from handshake import answers, make_certificate
from measure import Row, Watched

BIN = os.environ["MEDLEY_BIN_DIR"]
METRICS_PORT = 7201
# The chart's limits are higher: what a member needs follows from its model.
LIMIT_MIB = 512
# ./dev soak: attacks that only repeat themselves last longer.
CALLS, FLOOD_SECONDS = (32, 3) if "MEDLEY_SOAK" in os.environ else (8, 1)
CONNECTIONS = 128


def flood(address, method, credentials=()):
    """How many calls with 16 MiB each end. `credentials`: a folder with those of the job, and the job's UID."""
    done = subprocess.run([os.path.join(BIN, "grpc_flood"), address, method, str(CONNECTIONS), str(CALLS), "16", *credentials],
                          capture_output=True, text=True, check=True, timeout=300)
    return json.loads(done.stdout)


def stolen_credentials(cluster, pod):
    """What an attacker has who could read the certificates of a pod, but not its token."""
    [folder] = glob.glob(os.path.join(cluster.run, "node", "pods", f"default_{pod['metadata']['name']}_*", "volumes", "*",
                                      "ca.key"))
    return os.path.dirname(folder), pod["metadata"]["ownerReferences"][0]["uid"]


def text(ended):
    return ", ".join(f"{count} {code}" for code, count in sorted(ended.items()))


def refused(ended):
    """No call may succeed, and none may hang until its own deadline."""
    return bool(ended) and not ended.keys() & {"OK", "DEADLINE_EXCEEDED"}


def floods(cluster, _):
    """Many large messages at once to the parameter server and to the coordinator."""
    for role, service in (("server", "ParameterServerService/Push"), ("coordinator", "CoordinatorService/ApplyPlan"),
                          ("coordinator", "MemberService/PutRendezvous")):
        pod = wait_for(f"a {role}", lambda role=role: cluster.pods(VICTIM, role))[0]
        pid = wait_for("its process", lambda pod=pod: cluster.process_of(pod))
        for what, credentials in (("a certificate", ()), ("the token", stolen_credentials(cluster, pod))):
            with Watched(pid) as watched:
                ended = flood(f"{pod['status']['podIP']}:7070", "/medley.job.v1." + service, credentials)
            yield watched.row(f"{CONNECTIONS * CALLS:,} messages of 16 MiB without {what}: {service}", text(ended), refused(ended),
                              LIMIT_MIB)


def frames(cluster, _):
    """Rapid reset and its siblings, at the coordinator by someone who has a certificate of the job, but not its token."""
    for role, who in (("server", "certificate"), ("coordinator", "token")):
        pod = cluster.pods(VICTIM, role)[0]
        credentials = stolen_credentials(cluster, pod) if who == "token" else ()
        pid = wait_for("its process", lambda pod=pod: cluster.process_of(pod))
        for attack in ("reset", "open", "ping"):
            with Watched(pid) as watched:
                done = subprocess.run([os.path.join(BIN, "http2_flood"), f"{pod['status']['podIP']}:7070", attack, "8",
                                       str(FLOOD_SECONDS), *credentials], capture_output=True, text=True, check=True, timeout=60)
            sent = json.loads(done.stdout)
            # Without a certificate the server closes each connection, and the attacker opens another.
            yield watched.row(f"HTTP/2 frames without the {who} to the {role}: {attack}",
                              f"{sent['frames']} rounds on {sent['connections']} connections",
                              sent["connections"] > 0 or who == "certificate", LIMIT_MIB)


def handshakes(cluster, _):
    """Nobody speaks a word of HTTP/2 with a member without a certificate of the job's CA. Whoever has one does, which shows that
    the attack would notice a member that does not look.
    """
    for role in ("server", "coordinator"):
        pod = wait_for(f"a {role}", lambda role=role: cluster.pods(VICTIM, role))[0]
        address = (pod["status"]["podIP"], 7070)
        credentials, uid = stolen_credentials(cluster, pod)
        name = f"{uid}.jobs.medley.internal"
        with tempfile.TemporaryDirectory() as folder:
            authority = [os.path.join(credentials, each) for each in ("ca.crt", "ca.key")]
            own_ca = make_certificate(folder, name)
            tries = {"plain text": answers(address, tls=False), "no certificate": answers(address),
                     "one that it signed itself": answers(address, make_certificate(folder, name)),
                     "one of another CA": answers(address, make_certificate(folder, name, (own_ca, own_ca)))}
            control = answers(address, make_certificate(folder, name, authority))
        spoken = [what for what, answer in tries.items() if answer == "settings"]
        yield Row(f"HTTP/2 with the {role} without a certificate of the job",
                  ", ".join(f"{what}: {answer}" for what, answer in tries.items()) + f"; with the job's: {control}",
                  not spoken and control == "settings")


def get(address, port, path, timeout=60):
    """The status line of one GET, and the seconds that it took."""
    started = time.monotonic()
    with socket.create_connection((address, port), timeout=timeout) as one:
        one.sendall(f"GET {path} HTTP/1.1\r\nHost: {address}:{port}\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while b"\r\n" not in answer:
            piece = one.recv(4096)
            if not piece:
                break
            answer += piece
    return answer.split(b"\r\n", 1)[0].decode("latin-1"), time.monotonic() - started


def silent(cluster, _):
    """Connections that send nothing must not keep the coordinator's metrics from being read."""
    pod = cluster.pods(VICTIM, "coordinator")[0]
    pid = wait_for("its process", lambda: cluster.process_of(pod))
    address = pod["status"]["podIP"]
    for count in (25, 300):
        with Watched(pid) as watched:
            quiet = [socket.create_connection((address, METRICS_PORT), timeout=60) for _ in range(count)]
            try:
                status, seconds = get(address, METRICS_PORT, "/metrics")
            finally:
                for one in quiet:
                    one.close()
        yield watched.row(f"{count} silent connections to the coordinator's metrics",
                          f"the next client got {status!r} after {seconds:.1f} s", " 200 " in status and seconds < 10,
                          LIMIT_MIB)


ATTACKS = (handshakes, floods, frames, silent)
