"""Injects sidecars as a service mesh does: a mutating webhook adds containers to every pod of the labelled namespaces.

Each pod gets an ordinary sidecar, first in the list of containers, which never ends by itself, and a native one (an init
container with restartPolicy Always). The API server runs on this machine and calls the webhook at a loopback address.
"""
import base64
import collections
import http.server
import json
import os
import ssl
import subprocess
import threading

NAMESPACE_LABEL = "mesh.test/injection"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
ROLE = "medley.dev/role"


def container(name):
    """A container that sleeps until it gets SIGTERM; as a mesh's, it asks for resources and has a user of its own."""
    return {"name": name, "image": "medley.local/pause:1", "imagePullPolicy": "IfNotPresent",
            "resources": {"requests": {"cpu": "10m", "memory": "8Mi"}, "limits": {"memory": "32Mi"}},
            "securityContext": {"runAsUser": 1337, "runAsNonRoot": True, "allowPrivilegeEscalation": False,
                                "capabilities": {"drop": ["ALL"]}}}


def patches(pod):
    """The JSON patch that adds both sidecars in front of what the pod has."""
    native = {**container("mesh-native"), "restartPolicy": "Always"}
    first = {"op": "add", "path": "/spec/containers/0", "value": container("mesh-proxy")}
    if pod["spec"].get("initContainers"):
        return [first, {"op": "add", "path": "/spec/initContainers/0", "value": native}]
    return [first, {"op": "add", "path": "/spec/initContainers", "value": [native]}]


class Mesh:
    """Serves the webhook while it is entered. `injected` counts the pods by role."""

    def __init__(self, kube, folder):
        self.kube, self.folder, self.injected = kube, folder, collections.Counter()

    def __enter__(self):
        os.makedirs(self.folder, exist_ok=True)
        certificate, key = f"{self.folder}/mesh.crt", f"{self.folder}/mesh.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-days", "2", "-subj", "/CN=mesh", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out",
                        certificate], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        with open(certificate, "rb") as f:
            self._register(base64.b64encode(f.read()).decode())
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def _register(self, bundle):
        url = f"https://127.0.0.1:{self.server.server_address[1]}/inject"
        self.kube.call("POST", CONFIGURATIONS, {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "mesh"},
            "webhooks": [{"name": "inject.mesh.test", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                          "failurePolicy": "Fail", "timeoutSeconds": 10, "clientConfig": {"url": url, "caBundle": bundle},
                          "namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: "enabled"}},
                          "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                                     "resources": ["pods"]}]}]})

    def _handler(self):
        injected = self.injected

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
                pod = request["object"]
                if not request.get("dryRun"):
                    injected[pod["metadata"].get("labels", {}).get(ROLE, "")] += 1
                patch = base64.b64encode(json.dumps(patches(pod)).encode()).decode()
                answer = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                                     "response": {"uid": request["uid"], "allowed": True, "patchType": "JSONPatch",
                                                  "patch": patch}}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass
        return Handler
