"""All routes and errors of the REST service, and their description in the OpenAPI document."""
import json
import os
import subprocess
import sys
import unittest

import jsonschema

from harness import HERE, PATIENCE, PRICES, Scheduler, SchemaCase, example, request, running, wait_for

JSON = {"Content-Type": "application/json"}


class RoutesTest(SchemaCase):
    @classmethod
    def setUpClass(cls):
        cls.scheduler = Scheduler()
        cls.document = request(cls.scheduler, "GET", "/openapi.json").json()

    @classmethod
    def tearDownClass(cls):
        assert cls.scheduler.close() == 0

    def refused(self, code, name, field, method, path, body=None, headers=None):
        answer = self.ask(method, path, body, headers, code)
        error = answer.json()
        self.assertEqual((error["code"], error["field"]), (name, field), error)
        self.assertTrue(error["message"])
        return answer

    def test_every_objective_goes_with_every_bound(self):
        """On devices and without: the answer keeps the bound, or names it with figures."""
        layers = [{"name": f"fc{i}", "kind": "FULLY_CONNECTED", "outputBytes": 400, "weightBytes": 4e4, "profiles": [
            {"resourceType": pool, "computeSeconds": seconds, "computeParallel": 1, "commParallel": 1}
            for pool, seconds in (("fast", 0.01), ("slow", 0.04))]} for i in range(3)]
        question = {"model": {"name": "dense", "layers": layers},
                    "training": {"profileBatchSize": 64, "samplesPerEpoch": 64e5, "stateFactor": 3},
                    "resources": [{"name": "fast", "class": "GPU", "pricePerUnitHour": 3, "limit": 4},
                                  {"name": "slow", "class": "CPU", "pricePerUnitHour": 1, "limit": 4}]}
        cluster = {"devices": [{"id": f"{pool}-{i}", "pool": pool} for pool in ("fast", "slow") for i in range(3)],
                   "links": [{"from": "*", "to": "*", "latencySeconds": 1e-5, "bytesPerSecond": 1e10}]}
        bounds = {"minThroughput": (1000, 1e9), "maxCostPerHour": (5, 0.5), "deadlineSeconds": (7200, 1),
                  "budgetUsd": (4, 0.01), "minUnits": (1, 50), "maxUnits": (2, None)}
        for on_devices in (True, False):
            for objective in ("UNSPECIFIED", "COST_PER_HOUR", "TIME") + (("STEP_TIME",) if on_devices else ()):
                for bound, (loose, tight) in bounds.items():
                    asked = {**question, "objective": "OBJECTIVE_" + objective,
                             **({"cluster": cluster, "planner": {"name": "hierarchy"}} if on_devices else {})}
                    with self.subTest(objective=objective, bound=bound, on_devices=on_devices):
                        made = self.ask("POST", "/v1/plan", {**asked, "constraints": {bound: loose}}).json()
                        self.assertTrue(made["feasible"], made["reasons"])
                        figures = made["stepTime"] if on_devices else made["plan"]
                        hourly = figures["usdPerHour" if on_devices else "costPerHour"]
                        usd = figures["usd" if on_devices else "costUsd"]
                        end = figures["secondsToEnd" if on_devices else "executionSeconds"]
                        units = len(made["executionPlan"]["devices"]) if on_devices else \
                            sum(stage["units"] for stage in made["plan"]["stages"])
                        self.assertAlmostEqual(usd, hourly * end / 3600, delta=1e-6 * usd)
                        kept = {"minThroughput": figures["throughput"] >= 1000, "maxCostPerHour": hourly <= 5 + 1e-6,
                                "deadlineSeconds": end <= 7200 * (1 + 1e-6), "budgetUsd": usd <= 4 * (1 + 1e-6),
                                "minUnits": units >= 1, "maxUnits": units <= 2}
                        self.assertTrue(kept[bound], figures)
                        if tight is None:
                            continue
                        none = self.ask("POST", "/v1/plan", {**asked, "constraints": {bound: tight}}).json()
                        self.assertFalse(none["feasible"])
                        self.assertIn(bound.removesuffix("Seconds").removesuffix("Usd"),
                                      [reason["constraint"] for reason in none["reasons"]])
                        self.assertRegex(none["reasons"][0]["message"], "[0-9].*: (lower|raise|allow) ?(it to)? ?[0-9.]+")

    def test_the_description_is_valid(self):
        with open(os.path.join(HERE, "openapi-3.1.schema.json"), encoding="utf-8") as file:
            schema = json.load(file)
        jsonschema.Draft202012Validator(schema).validate(self.document)
        # Every schema is valid, and every reference resolves.
        for name, component in self.document["components"]["schemas"].items():
            jsonschema.Draft202012Validator.check_schema(component)
            self.assertTrue(component.get("description"), f"{name} says what it is")

        def references(value):
            if isinstance(value, dict):
                if "$ref" in value:
                    yield value["$ref"]
                value = list(value.values())
            if isinstance(value, list):
                for item in value:
                    yield from references(item)
        for reference in set(references(self.document)):
            target = self.document
            for part in reference.removeprefix("#/").split("/"):
                target = target[part]

    def test_every_route_is_described_and_answers(self):
        asked = set()
        plan = example()

        def ask(method, path, body=None):
            asked.add(path.split("?")[0])
            return self.ask(method, path, body).json()
        made = ask("POST", "/v1/plan", plan)
        self.assertTrue(made["feasible"])
        self.assertEqual(ask("POST", "/v1/normalize", plan)["model"]["name"], plan["model"]["name"])
        schedule = [s["resourceType"] for s in made["plan"]["stages"] for _ in range(s["lastLayer"] - s["firstLayer"] + 1)]
        provisioned = ask("POST", "/v1/provision", {"request": plan, "schedule": schedule})
        self.assertTrue(provisioned["feasible"])
        units = [stage["units"] for stage in provisioned["plan"]["stages"]]
        evaluated = ask("POST", "/v1/evaluate", {"request": plan, "schedule": schedule, "units": units})
        self.assertEqual(evaluated["plan"], provisioned["plan"])
        # With the cuts of the plan, its own stages and units come back.
        stages = made["plan"]["stages"]
        cuts = [s["firstLayer"] for before, s in zip(stages, stages[1:]) if before["resourceType"] == s["resourceType"]]
        units = [stage["units"] for stage in stages]
        named = {"request": plan, "schedule": schedule, "cuts": cuts}
        self.assertEqual(ask("POST", "/v1/evaluate", {**named, "units": units})["plan"], made["plan"])
        self.assertEqual(len(ask("POST", "/v1/provision", named)["plan"]["stages"]), len(stages))
        profile = {"model": plan["model"], "profileBatchSize": plan["training"]["profileBatchSize"]}
        simulated = ask("POST", "/v1/simulate", {"plan": made["executionPlan"], "profile": profile, "timeline": True})
        self.assertAlmostEqual(simulated["throughput"] * simulated["secondsPerStep"], simulated["samples"])
        self.assertIn(made["plan"]["stages"][0]["resourceType"], {d["pool"] for d in simulated["devices"]})
        self.assertTrue(json.loads(simulated["trace"])["traceEvents"])
        self.assertTrue(simulated["svg"].startswith("<svg "))
        self.assertEqual(made["executionPlan"]["estimate"]["simulatedThroughput"], 0)
        with_it = ask("POST", "/v1/plan", {**plan, "simulate": True})["executionPlan"]["estimate"]
        self.assertAlmostEqual(with_it["simulatedThroughput"] / simulated["throughput"], 1, delta=0.01)
        self.assertEqual(with_it["throughput"], made["executionPlan"]["estimate"]["throughput"])
        self.assertEqual({d["memoryLimitBytes"] for d in simulated["devices"]}, {0})
        by_request = ask("POST", "/v1/simulate", {"plan": made["executionPlan"], "request": plan})
        self.assertEqual(by_request["secondsPerStep"], simulated["secondsPerStep"])
        self.assertEqual((by_request["outOfMemory"], by_request["trace"]), ("", ""))
        limits = {r["name"]: r.get("memoryBytes", 0) for r in plan["resources"]}
        for device in by_request["devices"]:
            if not device["id"].startswith("server/"):
                self.assertEqual(device["memoryLimitBytes"], limits[device["pool"]])
        small = {**plan, "serverMemoryBytes": 1000}
        self.assertRegex(ask("POST", "/v1/simulate", {"plan": made["executionPlan"], "request": small})["outOfMemory"],
                         "device server/0 has 1000 B of memory, the plan needs .*tables of embedding")
        for wrong, sentence in (({"plan": made["executionPlan"], "profile": profile, "request": plan}, "profile: must"),
                                ({"plan": made["executionPlan"], "request": {**plan, "training": {}}}, "request.training"),
                                ({"plan": made["executionPlan"], "profile": {}}, "profile.profileBatchSize: must"),
                                ({"plan": {}, "profile": profile}, "plan"),
                                ({"plan": made["executionPlan"], "profile": profile, "steps": 101}, "steps: 101")):
            self.assertIn(sentence, self.ask("POST", "/v1/simulate", wrong, code=400).json()["message"])
        listed = {p["name"]: {g["objective"]: g for g in p["goals"]} for p in ask("GET", "/v1/planners")["planners"]}
        self.assertEqual(len(listed), len(ask("GET", "/v1/planners")["planners"]), "a name is listed once")
        self.assertEqual(sorted(listed["exact"]), ["OBJECTIVE_STEP_TIME", "OBJECTIVE_UNSPECIFIED"])
        self.assertEqual([g["mostDevices"] for g in listed["exact"].values()], [0, 8])
        self.assertEqual(list(listed["graph"]), ["OBJECTIVE_STEP_TIME"])
        rounds = [o for o in listed["rl-lstm"]["OBJECTIVE_UNSPECIFIED"]["options"] if o["name"] == "rounds"][0]
        self.assertEqual((rounds["type"], rounds["least"], rounds["most"]), ("integer", 1, 1000000))
        self.assertEqual(len(ask("GET", "/v1/catalog")["catalog"]["entries"]), 2)
        hardware = [h["name"] for h in ask("GET", "/v1/hardware")["hardware"]]
        self.assertIn("v100", hardware)
        bare = {"layers": [{"name": "fc", "kind": "FULLY_CONNECTED", "inputBytes": 400, "outputBytes": 400,
                            "weightBytes": 40000, "attributes": {"width": "100", "units": "100"}}]}
        profile = ask("POST", "/v1/profile", {"model": bare, "hardware": ["v100", "cpu"]})["profile"]
        self.assertEqual([p["resourceType"] for p in profile["model"]["layers"][0]["profiles"]], ["v100", "cpu"])
        stages = [{**{k: stage[k] for k in ("firstLayer", "lastLayer", "resourceType", "units")},
                   "computeSeconds": stage["computeSeconds"] * 1.1, "commSeconds": stage["commSeconds"] * 1.1}
                  for stage in made["plan"]["stages"]]
        observed = ask("POST", "/v1/observations", {
            "request": plan, "stages": stages, "throughput": made["plan"]["throughput"] / 1.1,
            "batchSize": plan["training"]["profileBatchSize"], "jobUid": "j", "generation": 1})
        self.assertGreaterEqual(observed["prediction"]["observations"], 1)
        front = ask("POST", "/v1/pareto", {"request": plan, "maxPoints": 8})["plans"]
        self.assertGreater(len(front), 1)
        self.assertEqual(sorted(p["throughput"] for p in front), [p["throughput"] for p in front])
        self.assertEqual(len(ask("GET", "/v1/prices")["series"]), 2)
        series = ask("GET", "/v1/prices?type=v100&since=2020-01-01T00%3A00%3A00Z")["series"]
        self.assertEqual(len(series), 1)
        self.assertGreaterEqual(len(series[0]["points"]), 1)
        for path in ("/healthz", "/readyz", "/metrics", "/openapi.json"):
            asked.add(path)
            self.ask("GET", path)
        self.assertEqual(asked, set(self.document["paths"]))

    def test_every_operation_describes_its_errors_and_has_examples_that_hold(self):
        always = {"400", "401", "421", "429", "431"}
        with_body = always | {"403", "411", "413", "415", "503", "504"}

        def follow(value):
            return self.document["components"]["responses"][value["$ref"].rsplit("/", 1)[1]] if "$ref" in value else value

        def validate(schema, value):
            jsonschema.Draft202012Validator({**schema, "components": self.document["components"]}).validate(value)
        sent = 0
        for path, methods in self.document["paths"].items():
            for method, operation in methods.items():
                codes = set(operation["responses"])
                self.assertLessEqual(with_body if method == "post" else always, codes, path)
                for code, response in operation["responses"].items():
                    for kind, content in follow(response)["content"].items():
                        if code != "200" and kind == "application/json":
                            validate(content["schema"], content["example"])
                if not path.startswith("/v1/"):
                    continue
                validate(operation["responses"]["200"]["content"]["application/json"]["schema"],
                         operation["responses"]["200"]["content"]["application/json"]["example"])
                query = "&".join(f"{p['name']}={p['example'].replace(':', '%3A')}" for p in operation["parameters"] if "example" in p)
                body = None
                if method == "post":
                    self.assertEqual(set(operation["requestBody"]["content"]), {"application/json", "application/yaml"})
                    content = operation["requestBody"]["content"]["application/json"]
                    body = content["example"]
                    validate(content["schema"], body)
                self.ask(method.upper(), path + ("?" + query if query else ""), body)
                sent += 1
        self.assertEqual(sent, len([p for p in self.document["paths"] if p.startswith("/v1/")]))

    def test_every_refusal_is_described(self):
        """Each kind of 4xx is provoked at a route with a body and at one without."""
        def code(method, path, headers, body=None):
            answer = request(self.scheduler, method, path, body, headers)
            self.check(method, path, answer)
            return answer.code
        for method, path in (("GET", "/v1/planners"), ("GET", "/v1/prices"), ("GET", "/metrics"), ("GET", "/openapi.json"), ("POST", "/v1/pareto")):
            body = "{}" if method == "POST" else None
            self.assertEqual(code(method, path, {"Host": "evil.example"}, body), 421)
        self.assertEqual(code("GET", "/v1/planners?x=1", {}), 400)
        self.assertEqual(code("POST", "/v1/pareto", {"Origin": "https://evil.example"}, "{}"), 403)
        self.assertEqual(code("POST", "/v1/pareto", {"Content-Type": "text/plain"}, "{}"), 415)
        self.assertEqual(code("POST", "/v1/pareto", {}, "{}"), 400)

    def test_yaml_is_the_same_request(self):
        text = json.dumps(example())  # JSON is YAML
        as_json = self.ask("POST", "/v1/plan", text).json()
        for kind in ("application/yaml", "application/x-yaml; charset=utf-8"):
            as_yaml = self.ask("POST", "/v1/plan", text, {"Content-Type": kind}).json()
            self.assertEqual(as_yaml["plan"], as_json["plan"])
        self.refused(400, "INVALID_ARGUMENT", "", "POST", "/v1/plan", "model: {}", JSON)

    def test_profiles_of_other_hardware(self):
        plan = example()
        plan["resources"] = [{"name": "cpu", "class": "CPU", "limit": 480, "pricePerUnitHour": 0.04, "hardware": "cpu"},
                             {"name": "h100", "class": "GPU", "limit": 8, "pricePerUnitHour": 4, "hardware": "h100"}]
        for layer in plan["model"]["layers"]:
            layer.pop("profiles")
            layer.setdefault("attributes", {})
            layer["kind"] = "LOSS"  # its work is estimated from its bytes
            layer["inputBytes"] = layer["inputBytes"] or 4
            layer["outputBytes"] = layer["outputBytes"] or 4
        answer = self.ask("POST", "/v1/plan", plan).json()
        self.assertTrue(answer["feasible"] or answer["reasons"])
        plan["resources"][1]["hardware"] = "abacus"
        self.refused(400, "INVALID_ARGUMENT", "resources[1].hardware", "POST", "/v1/plan", plan)

    def test_errors_name_the_field(self):
        def changed(change):
            plan = example()
            change(plan)
            return plan
        cases = [
            ("model.layers[2].nmae", lambda p: p["model"]["layers"][2].update(nmae="x")),
            ("model.layers", lambda p: p["model"].update(layers=[])),
            ("model.layers[0].profiles[1].commParallel", lambda p: p["model"]["layers"][0]["profiles"][1].update(commParallel=2)),
            ("planner.name", lambda p: p.update(planner={"name": "oracle"})),
            ("constraints.minThroughput", lambda p: p.update(constraints={"minThroughput": "fast"})),
            ("planner.policy.name", lambda p: p.update(planner={"name": "exact", "policy": {"name": "none"}})),
            ("planner.options.round", lambda p: p.update(planner={"name": "rl-lstm", "options": {"round": 3}})),
            ("planner.options.rounds", lambda p: p.update(planner={"name": "rl-lstm", "options": {"rounds": 0}})),
            ("planner.genetic", lambda p: p.update(planner={"name": "exact", "genetic": {"population": 3}})),
        ]
        for field, change in cases:
            with self.subTest(field=field):
                self.refused(400, "INVALID_ARGUMENT", field, "POST", "/v1/plan", changed(change))
        inner = {"request": changed(cases[2][1]), "schedule": []}
        self.refused(400, "INVALID_ARGUMENT", "request.model.layers[0].profiles[1].commParallel", "POST", "/v1/provision", inner)
        self.refused(400, "INVALID_ARGUMENT", "schedule", "POST", "/v1/provision", {"request": example(), "schedule": ["cpu"]})
        self.refused(400, "INVALID_ARGUMENT", "hardware[0]", "POST", "/v1/profile",
                     {"model": {"layers": [{"name": "a"}]}, "hardware": ["abacus"]})
        self.refused(400, "INVALID_ARGUMENT", "", "POST", "/v1/plan", "{")
        self.refused(400, "INVALID_ARGUMENT", "", "POST", "/v1/plan", "")
        self.refused(400, "INVALID_ARGUMENT", "nothing", "GET", "/v1/planners?nothing=1")

    def test_paths_methods_and_types(self):
        self.refused(404, "NOT_FOUND", "", "GET", "/v1/nothing")
        self.refused(404, "NOT_FOUND", "", "GET", "/..%2f..%2fetc/passwd")
        for method, path, allow in (("GET", "/v1/plan", "POST"), ("DELETE", "/v1/plan", "POST"),
                                    ("POST", "/v1/planners", "GET"), ("PUT", "/metrics", "GET"), ("POST", "/", "GET")):
            answer = request(self.scheduler, method, path)
            self.assertEqual((answer.code, answer.headers["Allow"]), (405, allow), path)
            self.assertEqual(answer.json()["code"], "UNIMPLEMENTED")
        self.refused(415, "INVALID_ARGUMENT", "Content-Type", "POST", "/v1/plan", "{}", {"Content-Type": "text/plain"})
        self.refused(400, "INVALID_ARGUMENT", "Request-Timeout", "POST", "/v1/plan", "{}", {**JSON, "Request-Timeout": "soon"})

    def test_infeasible_is_not_an_error(self):
        answer = self.ask("POST", "/v1/plan", example("infeasible")).json()
        self.assertFalse(answer["feasible"])
        self.assertTrue(answer["reasons"][0]["constraint"])
        metrics = request(self.scheduler, "GET", "/metrics").text
        self.assertIn(f'medley_plans_infeasible_total{{constraint="{answer["reasons"][0]["constraint"]}"}}', metrics)
        self.assertIn('medley_planning_seconds_bucket{planner="exact"', metrics)

    def test_a_request_has_an_id(self):
        named = self.ask("GET", "/v1/planners", headers={"X-Request-Id": "mine-1"})
        self.assertEqual(named.headers["X-Request-Id"], "mine-1")
        other = self.ask("GET", "/v1/planners", headers={"X-Request-Id": "two words"})
        self.assertRegex(other.headers["X-Request-Id"], "^[0-9a-f]{16}$")
        self.ask("POST", "/v1/plan", example(serverType="nothing"), {**JSON, "X-Request-Id": "mine-2"}, code=400)
        wait_for("log line", lambda: "mine-2" in self.scheduler.log())

    def test_the_page_has_a_content_security_policy(self):
        for path in ("/", "/main.js", "/style.css", "/examples/index.json"):
            answer = request(self.scheduler, "GET", path)
            self.assertEqual(answer.code, 200)
            self.assertIn("default-src 'none'", answer.headers["Content-Security-Policy"])
            self.assertNotIn("unsafe", answer.headers["Content-Security-Policy"])
            self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")
        for name in request(self.scheduler, "GET", "/examples/index.json").json():
            self.ask("POST", "/v1/normalize", request(self.scheduler, "GET", f"/examples/{name}.json").text)


class CacheTest(SchemaCase):
    """The same request gets the same bytes as long as prices do not change."""

    @classmethod
    def setUpClass(cls):
        cls.scheduler = Scheduler()
        cls.document = request(cls.scheduler, "GET", "/openapi.json").json()

    @classmethod
    def tearDownClass(cls):
        assert cls.scheduler.close() == 0

    def test_exact(self):
        plan = example()
        for resource in plan["resources"]:
            resource.pop("pricePerUnitHour", None)  # use the catalog's price
        hits = lambda: self.scheduler.metric('medley_scheduler_cache_total{result="hit"}')
        text = json.dumps(plan)
        first = self.ask("POST", "/v1/plan", text)
        before = hits()
        self.assertEqual(self.ask("POST", "/v1/plan", text).body, first.body)
        self.assertEqual(hits(), before + 1)
        # Other bytes with the same meaning are also answered from the cache.
        spaced = self.ask("POST", "/v1/plan", json.dumps(plan, indent=2))
        self.assertEqual(spaced.body, first.body)
        self.assertEqual(hits(), before + 2)
        # Another request.
        plan["constraints"]["minThroughput"] *= 0.5
        self.assertNotEqual(self.ask("POST", "/v1/plan", plan).json()["plan"], first.json()["plan"])
        # With other prices, the same bytes get another response.
        self.scheduler.set_prices(PRICES.replace("0.04", "0.08"))
        wait_for("revision 2", lambda: self.ask("GET", "/v1/catalog").json()["catalog"]["revision"] == "2")
        costlier = self.ask("POST", "/v1/plan", text).json()
        self.assertEqual(costlier["catalogRevision"], "2")
        self.assertGreater(costlier["plan"]["costUsd"], first.json()["plan"]["costUsd"])

    def test_incomplete_responses_are_not_cached(self):
        plan = example(planner={"name": "exact", "timeBudgetSeconds": 1e-6})
        misses = lambda: self.scheduler.metric('medley_scheduler_cache_total{result="miss"}')
        first = request(self.scheduler, "POST", "/v1/plan", plan)
        before = misses()
        second = request(self.scheduler, "POST", "/v1/plan", plan)
        self.assertIn(first.code, (200, 504))
        self.assertIn(second.code, (200, 504))
        self.assertGreater(misses(), before)


class CommandLineTest(unittest.TestCase):
    """`medley plan` and the service prepare the same request alike: prices first, then analytic profiles."""

    def plans_alike(self, plan, prices):
        with running(prices=prices) as scheduler:
            wait_for("prices", lambda: request(scheduler, "GET", "/v1/catalog").json()["catalog"].get("entries"))
            served = request(scheduler, "POST", "/v1/plan", plan)
            self.assertEqual(served.code, 200, served.text)
            question = os.path.join(scheduler.folder, "question.json")
            with open(question, "w", encoding="utf-8") as file:
                json.dump(plan, file)
            medley = os.path.join(os.environ["MEDLEY_BIN_DIR"], "medley")
            made = subprocess.run([medley, "plan", question, "--prices", os.path.join(scheduler.folder, "prices.yaml"),
                                   "-o", "json"], capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        ours, theirs = json.loads(made.stdout), served.json()
        for part in ("feasible", "plan", "resources"):
            self.assertEqual(ours[part], theirs[part], part)
        self.assertTrue(ours["feasible"])
        return ours

    def test_resources_and_datasheets_of_the_catalog(self):
        plan = example()
        del plan["resources"]
        for layer in plan["model"]["layers"]:
            layer.pop("profiles", None)
        plan.pop("constraints", None)
        plan["serverType"] = "cpu"
        answer = self.plans_alike(plan, """entries:
- {resourceType: cpu, class: CPU, limit: 480, pricePerUnitHour: 0.04, hardware: cpu}
- {resourceType: v100, class: GPU, limit: 32, pricePerUnitHour: 2.42, hardware: v100}
""")
        self.assertEqual({r["name"] for r in answer["resources"]}, {"cpu", "v100"})

    def test_an_offering_without_a_zone(self):
        plan = example()
        for resource in plan["resources"]:
            if resource["name"] == "v100":
                resource.pop("pricePerUnitHour", None)
                resource["offering"] = {"provider": "aws", "region": "us-east-1", "instanceType": "p3.2xlarge",
                                        "capacityType": "spot"}
        zone = "{offering: {provider: aws, region: us-east-1, zone: us-east-1%s, instanceType: p3.2xlarge, " \
               "capacityType: spot}, pricePerInstanceHour: %s%s}"
        answer = self.plans_alike(plan, "entries: [%s]" % ", ".join(
            [zone % ("a", 2.6, ""), zone % ("b", 2.42, ""), zone % ("c", 1, ", available: false")]))
        v100 = [r for r in answer["resources"] if r["name"] == "v100"][0]
        self.assertEqual(v100["pricePerUnitHour"], 2.42)
        self.assertEqual(v100["offering"]["zone"], "us-east-1b")


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
