"""Limits of the service: too large, too slow, too long and too many requests."""
import json
import os
import sys
import time
import unittest

from harness import PATIENCE, Scheduler, example, in_background, raw, request, running, wait_for

JSON = {"Content-Type": "application/json"}


def rss_mib(scheduler):
    with open(f"/proc/{scheduler.process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:")) / 1024


def long_request(seconds=60):
    """A request that uses its whole time budget: units are computed for every schedule of 16 layers on 12 types."""
    plan = example(planner={"name": "brute-force", "timeBudgetSeconds": seconds})
    types = [f"t{i}" for i in range(12)]
    plan["resources"] = [{"name": t, "class": "GPU" if i else "CPU", "limit": 40, "pricePerUnitHour": 1 + 0.01 * i}
                         for i, t in enumerate(types)]
    plan["serverType"] = types[0]
    for layer in plan["model"]["layers"]:
        profile = layer["profiles"][0]
        layer["profiles"] = [{**profile, "resourceType": t, "computeSeconds": profile["computeSeconds"] * (1 + 0.1 * i)}
                             for i, t in enumerate(types)]
    return plan


def slow_planner(scheduler):
    """The name of a planner that uses its whole budget for long_request; brute-force rejects large requests."""
    names = [p["name"] for p in request(scheduler, "GET", "/v1/planners").json()["planners"]]
    return "rl-lstm" if "rl-lstm" in names else "brute-force"


def asking(scheduler, seconds=60, rounds=10**6):
    plan = long_request(seconds)
    plan["planner"] = {"name": slow_planner(scheduler), "timeBudgetSeconds": seconds,
                       "options": {"rounds": rounds, "samplesPerRound": 64} if slow_planner(scheduler) == "rl-lstm" else {}}
    return plan


class SizeTest(unittest.TestCase):
    def test_a_large_body_is_rejected_unread(self):
        with running() as scheduler:
            self.assertEqual(request(scheduler, "POST", "/v1/plan", b" " * (4 << 20)).code, 400)  # just not JSON
            before = rss_mib(scheduler)
            for _ in range(3):
                with raw(scheduler) as connection:
                    size = 100 << 20
                    connection.sendall(f"POST /v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                       f"Content-Length: {size}\r\n\r\n".encode())
                    sent = 0
                    try:
                        while sent < size:
                            sent += connection.send(b" " * (1 << 20))
                    except OSError:
                        pass  # the service has closed it
                    self.assertLess(sent, size)
                    try:
                        self.assertIn(b"413", connection.recv(4096))
                    except ConnectionResetError:
                        pass  # the response was lost, because the service did not read the whole body
            self.assertLess(rss_mib(scheduler) - before, 48)
            # A client that waits for the response before it sends the body receives it.
            with raw(scheduler) as connection:
                connection.sendall(b"POST /v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                   b"Content-Length: 104857600\r\n\r\n")
                self.assertIn(b"413", connection.recv(4096))
            self.assertEqual(request(scheduler, "GET", "/healthz").code, 200)

    def test_chunked_bodies_are_rejected(self):
        with running() as scheduler, raw(scheduler) as connection:
            connection.sendall(b"POST /v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                               b"Transfer-Encoding: chunked\r\n\r\n7fffff00\r\n")
            self.assertIn(b"411", connection.recv(4096))

    def test_endless_headers_close_the_connection(self):
        with running("--max-body-kib", "64") as scheduler, raw(scheduler) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n")
            end = time.monotonic() + PATIENCE
            with self.assertRaises(OSError):
                while time.monotonic() < end:
                    connection.sendall(b"x: " + b"y" * 65536 + b"\r\n")
            wait_for("counted", lambda: scheduler.metric('medley_rest_connections_ended_total{reason="size"}') == 1)
            self.assertLess(rss_mib(scheduler), 1024)


class BrokenUploadTest(unittest.TestCase):
    def test_broken_uploads_leave_nothing_behind(self):
        with running() as scheduler:
            def descriptors():
                return len(os.listdir(f"/proc/{scheduler.process.pid}/fd"))

            def broken():
                return scheduler.metric('medley_rest_connections_ended_total{reason="broken"}')
            wait_for("its first lines", lambda: "prices published" in scheduler.log() and '"serving"' in scheduler.log())
            before, lines = descriptors(), scheduler.log().count("\n")
            for _ in range(500):
                with raw(scheduler) as connection:
                    connection.sendall(b"POST /v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                       b"Content-Length: 5000\r\n\r\n{")
            wait_for("each is counted", lambda: broken() == 500)
            wait_for("closed", lambda: descriptors() <= before + 1)  # the connection that asks for the metrics
            self.assertEqual(scheduler.log().count("\n"), lines)


class TimeTest(unittest.TestCase):
    def test_a_slow_client_is_disconnected(self):
        with running("--receive-seconds", "1") as scheduler, raw(scheduler) as connection:
            connection.sendall(b"POST /v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n{")
            end = time.monotonic() + PATIENCE
            with self.assertRaises(OSError):
                while time.monotonic() < end:
                    connection.sendall(b" ")
                    time.sleep(0.05)
            self.assertGreaterEqual(scheduler.metric('medley_rest_connections_ended_total{reason="slow"}'), 1)

    def test_a_silent_client_is_disconnected(self):
        with running("--receive-seconds", "1") as scheduler, raw(scheduler) as connection:
            connection.sendall(b"GET /healthz HT")
            self.assertEqual(connection.recv(100), b"")
            self.assertEqual(request(scheduler, "GET", "/healthz").code, 200)

    def test_too_many_connections(self):
        with running("--max-connections", "8") as scheduler:
            held = [raw(scheduler) for _ in range(40)]
            wait_for("some were ended", lambda: scheduler.metric('medley_rest_connections_ended_total{reason="too many"}') >= 30)
            self.assertEqual(request(scheduler, "GET", "/healthz").code, 200)
            for connection in held:
                connection.close()

    def test_the_callers_deadline_ends_planning(self):
        with running("--max-planning-seconds", "3000") as scheduler:
            # Longer than `request` waits for the answer.
            answer = request(scheduler, "POST", "/v1/plan", asking(scheduler, 3000), {**JSON, "Request-Timeout": "0.5"})
            self.assertIn(answer.code, (200, 504), answer.text)
            wait_for("idle", lambda: scheduler.metric("medley_scheduler_requests_in_flight") == 0)

    def test_the_service_limits_the_planning_time(self):
        with running("--max-planning-seconds", "0.5") as scheduler:
            answer = request(scheduler, "POST", "/v1/plan", asking(scheduler, 3000))
            self.assertIn(answer.code, (200, 504), answer.text)


class OverloadTest(unittest.TestCase):
    def test_excess_requests_are_rejected_and_reads_continue(self):
        with running("--max-concurrent", "1", "--max-waiting", "1", "--max-wait-seconds", "0.2", "--grace-seconds", "0") as scheduler:
            long = asking(scheduler)
            in_background(lambda: request(scheduler, "POST", "/v1/plan", long))
            wait_for("it runs", lambda: scheduler.metric("medley_scheduler_requests_in_flight") == 1)
            # This request waits for 0.2 s; for others even the queue is full.
            answer = request(scheduler, "POST", "/v1/plan", asking(scheduler, seconds=61))
            self.assertEqual((answer.code, answer.headers["Retry-After"]), (429, "1"), answer.text)
            self.assertEqual(answer.json()["code"], "RESOURCE_EXHAUSTED")
            codes = []
            crowd = [in_background(lambda i=i: codes.append(
                request(scheduler, "POST", "/v1/plan", asking(scheduler, seconds=62 + i)).code)) for i in range(8)]
            for thread in crowd:
                thread.join(PATIENCE)
            self.assertEqual(codes, [429] * 8)
            self.assertEqual(request(scheduler, "GET", "/healthz").code, 200)
            self.assertEqual(request(scheduler, "GET", "/v1/planners").code, 200)

    def test_expensive_requests_leave_places_to_cheap_ones(self):
        with running("--max-concurrent", "2", "--max-waiting", "2", "--grace-seconds", "0") as scheduler:
            for i in range(24):
                plan = asking(scheduler, seconds=36000 + i)
                in_background(lambda: request(scheduler, "POST", "/v1/plan", plan))
            wait_for("expensive ones run", lambda: scheduler.metric('medley_scheduler_class_in_flight{class="expensive"}') == 1)
            for i in range(5):
                answer = request(scheduler, "POST", "/v1/plan", example(profileId=str(i)))
                self.assertEqual(answer.code, 200, answer.text)
            self.assertEqual(scheduler.metric('medley_scheduler_class_in_flight{class="expensive"}'), 1)

    def test_a_client_that_leaves_frees_its_place(self):
        with running("--max-planning-seconds", "3000", "--grace-seconds", "0") as scheduler:
            body = json.dumps(asking(scheduler, 3000)).encode()
            with raw(scheduler) as connection:
                connection.sendall(b"POST /v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                   b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                wait_for("it runs", lambda: scheduler.metric("medley_scheduler_requests_in_flight") == 1)
            wait_for("its place is free", lambda: scheduler.metric("medley_scheduler_requests_in_flight") == 0)

    def test_cached_responses_need_no_permit(self):
        with running("--max-concurrent", "1", "--max-waiting", "1", "--max-wait-seconds", "0.1", "--grace-seconds", "0") as scheduler:
            text = json.dumps(example())
            first = request(scheduler, "POST", "/v1/plan", text)
            self.assertEqual(first.code, 200)
            long = asking(scheduler)
            in_background(lambda: request(scheduler, "POST", "/v1/plan", long))
            wait_for("it runs", lambda: scheduler.metric("medley_scheduler_requests_in_flight") == 1)
            self.assertEqual(request(scheduler, "POST", "/v1/plan", text).body, first.body)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
