"""TLS and tokens, and that the service is not exposed by mistake."""
import http.client
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import unittest
import warnings

from harness import PATIENCE, PROGRAM, Scheduler, example, make_certificates, raw, request, running, trusting, wait_for

TOKEN = "0123456789abcdef-token"


class SecurityTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="medley-security-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(path + ".new", path)
        return path

    def refuses(self, *options):
        for flag in ("--rest-listen", "--grpc-listen"):
            options = options if flag in options else (*options, flag, "127.0.0.1:0")
        done = subprocess.run([PROGRAM, *options],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        return done.stderr

    def test_token(self):
        tokens = self.file("tokens", f"{TOKEN}\n\nanother-token-of-ours\n")
        with running("--token-file", tokens) as scheduler:
            for path in ("/healthz", "/readyz", "/", "/main.js"):
                self.assertEqual(request(scheduler, "GET", path).code, 200, path)
            for path in ("/v1/planners", "/metrics", "/openapi.json", "/v1/nothing"):
                answer = request(scheduler, "GET", path)
                self.assertEqual((answer.code, answer.headers["WWW-Authenticate"]), (401, "Bearer"), path)
                self.assertEqual(answer.json()["code"], "UNAUTHENTICATED")
            self.assertEqual(request(scheduler, "POST", "/v1/plan", example()).code, 401)
            for shown, code in ((f"Bearer {TOKEN}", 200), ("bearer another-token-of-ours", 200), (TOKEN, 401), ("Bearer ", 401),
                                (f"Bearer {TOKEN}x", 401), (f"Bearer {TOKEN[:-1]}", 401), (f"Basic {TOKEN}", 401)):
                self.assertEqual(request(scheduler, "GET", "/v1/planners", headers={"Authorization": shown}).code, code, shown)
            self.assertNotIn(TOKEN, scheduler.log())
        with running("--token-file", tokens, "--open-paths", "/healthz,/metrics") as scheduler:
            self.assertEqual(request(scheduler, "GET", "/metrics").code, 200)
            self.assertEqual(request(scheduler, "GET", "/readyz").code, 401)

    def test_other_names_are_refused_without_a_token(self):
        def code(scheduler, method, host, **headers):
            body = "{}" if method == "POST" else None
            path = "/v1/plan" if method == "POST" else "/v1/planners"
            answer = request(scheduler, method, path, body, {"Host": host, **headers})
            return answer.code
        with running("--rest-host", "medley.example") as scheduler:
            for host in ("localhost", "127.0.0.1", f"127.0.0.1:{scheduler.rest}", "[::1]:80", "medley.example", "medley.example:8080"):
                self.assertEqual(code(scheduler, "GET", host), 200, host)
            for host in ("evil.example", "evil.example:7071", "", "127.0.0.1.evil.example", "localhost.evil.example"):
                self.assertEqual(code(scheduler, "GET", host), 421, host)
                self.assertEqual(code(scheduler, "POST", host), 421, host)
            self.assertEqual(code(scheduler, "POST", "localhost", Origin="https://evil.example"), 403)
            self.assertEqual(code(scheduler, "POST", "localhost", Origin="null"), 403)
            self.assertEqual(code(scheduler, "POST", "localhost", Origin="http://localhost"), 400)  # not a plan request
        with running("--token-file", self.file("tokens", TOKEN)) as scheduler:
            self.assertEqual(code(scheduler, "GET", "medley.example", Authorization=f"Bearer {TOKEN}"), 200)

    def test_a_body_without_a_token_is_not_read(self):
        with running("--token-file", self.file("tokens", TOKEN)) as scheduler, raw(scheduler) as connection:
            connection.sendall(b"POST /v1/plan HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                               b"Content-Length: 100000\r\n\r\n")
            self.assertIn(b"401", connection.recv(4096))  # while the body has not been sent

    def test_bad_token_files(self):
        self.assertIn("contains no token", self.refuses("--token-file", self.file("empty", "\n")))
        self.assertIn("16 visible", self.refuses("--token-file", self.file("short", "secret\n")))
        self.assertIn("No such file", self.refuses("--token-file", os.path.join(self.folder, "nothing")))

    def test_tls(self):
        ca, certificate, key = make_certificates(self.folder)
        with running("--tls-cert", certificate, "--tls-key", key) as scheduler:
            answer = request(scheduler, "POST", "/v1/plan", example(), context=trusting(ca))
            self.assertEqual(answer.code, 200)
            with self.assertRaises(ssl.SSLCertVerificationError):
                request(scheduler, "GET", "/healthz", context=ssl.create_default_context())
            with self.assertRaises(Exception):  # plain text instead of TLS
                request(scheduler, "GET", "/healthz")
            old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            old.check_hostname = False
            old.verify_mode = ssl.CERT_NONE
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                old.maximum_version = ssl.TLSVersion.TLSv1_1
            with self.assertRaises(ssl.SSLError):
                request(scheduler, "GET", "/healthz", context=old)
            # A new certificate from another CA is loaded without a restart; a key that does not match leaves it in use.
            other_ca, other, other_key = make_certificates(self.folder, "other")
            shutil.copy(other_key, key + ".new")
            shutil.copy(other, certificate + ".new")
            os.rename(key + ".new", key)
            os.rename(certificate + ".new", certificate)

            def served():
                try:
                    return request(scheduler, "GET", "/healthz", context=trusting(other_ca)).code == 200
                except ssl.SSLError:
                    return False
            wait_for("the new certificate", served)
            self.file(os.path.basename(key), "not a key")
            wait_for("the bad key is seen", lambda: served() and "keeping the last one" in scheduler.log())
            self.assertTrue(served())

    def test_signs_and_renews_its_own_certificate(self):
        ca, _, _ = make_certificates(self.folder)
        with running("--tls-ca-cert", ca, "--tls-ca-key", ca.replace(".pem", ".key"), "--tls-name", "127.0.0.1",
                     "--tls-name", "localhost", "--tls-lifetime-seconds", "6") as scheduler:
            def certificates():
                return [ssl.get_server_certificate(("127.0.0.1", port)) for port in (scheduler.rest, scheduler.grpc)]
            first = certificates()
            kept = http.client.HTTPSConnection("127.0.0.1", scheduler.rest, timeout=PATIENCE, context=trusting(ca))
            kept.request("GET", "/healthz")
            kept.getresponse().read()
            connection = kept.sock
            for renewal in range(2):
                wait_for(f"renewal {renewal + 1} of both ports", lambda: all(
                    old != new for old, new in zip(first, certificates())))
                first = certificates()
                # New connections trust the new certificate, and those made before go on.
                self.assertEqual(request(scheduler, "GET", "/healthz", context=trusting(ca)).code, 200)
                kept.request("GET", "/healthz")
                kept.getresponse().read()
                self.assertIs(kept.sock, connection)
        self.assertIn("must be given together", self.refuses("--tls-ca-cert", ca))
        self.assertIn("exclude each other", self.refuses(
            "--tls-ca-cert", ca, "--tls-ca-key", ca, "--tls-name", "a", "--tls-cert", ca, "--tls-key", ca))
        self.assertIn("--tls-ca-key", self.refuses("--tls-ca-cert", ca, "--tls-ca-key", ca, "--tls-name", "a"))

    def test_client_certificates(self):
        ca, certificate, key = make_certificates(self.folder)
        client_ca, client, client_key = make_certificates(self.folder, "client")
        with running("--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", client_ca) as scheduler:
            self.assertEqual(request(scheduler, "GET", "/healthz", context=trusting(ca, client, client_key)).code, 200)
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                request(scheduler, "GET", "/healthz", context=trusting(ca))
            stranger = make_certificates(self.folder, "stranger")
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                request(scheduler, "GET", "/healthz", context=trusting(ca, *stranger[1:]))

    def test_bad_certificates(self):
        _, certificate, _ = make_certificates(self.folder)
        _, _, other_key = make_certificates(self.folder, "other")
        self.assertIn("must be given together", self.refuses("--tls-cert", certificate))
        self.assertIn("certificate", self.refuses("--tls-cert", certificate, "--tls-key", other_key))
        self.assertIn("PEM", self.refuses("--tls-cert", self.file("x", "x"), "--tls-key", other_key))

    def test_non_loopback_addresses_need_tls_and_token(self):
        for flag in ("--rest-listen", "--grpc-listen"):
            said = self.refuses(flag, "0.0.0.0:0")
            self.assertIn(f"{flag}: 0.0.0.0 is not a loopback address", said)
        tokens = self.file("tokens", TOKEN)
        self.assertIn("is not a loopback address", self.refuses("--rest-listen", ":0", "--token-file", tokens))
        _, certificate, key = make_certificates(self.folder)
        said = self.refuses("--rest-listen", ":0", "--tls-cert", certificate, "--tls-key", key)
        self.assertIn("is not a loopback address", said)
        with running("--insecure", host="0.0.0.0") as scheduler:
            self.assertEqual(request(scheduler, "GET", "/healthz").code, 200)
        with running("--tls-cert", certificate, "--tls-key", key, "--token-file", tokens, host="0.0.0.0") as scheduler:
            scheduler.host = "127.0.0.1"
            context = trusting(os.path.join(self.folder, "server-ca.pem"))
            self.assertEqual(request(scheduler, "GET", "/healthz", context=context).code, 200)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
