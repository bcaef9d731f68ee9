#!/usr/bin/env python3
"""Checks the arrows of docs/design/architecture.md from #include lines, and where heavy headers may appear.

Every source folder has a row and may include itself and the folders that the row names; nothing else of the tree. The rows
are what the code does: an arrow that no file uses is a problem too, and so is a circle. check_maps.py draws the page's map
from them. The build checks the same arrows at link time (one target a folder).
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# folder -> folders that it may include. Each name means that folder alone, with its fakes in testing/, and not what lies
# below it.
ARROWS = {
    "common/base": [],
    # Readers of text, HTTP: they know nothing of what passes through them.
    "common/document": ["common/base"],
    # Expressions over JSON: no schema, no Kubernetes.
    "common/cel": ["common/base"],
    # Signatures and XML of AWS's APIs: no network.
    "common/aws": ["common/base"],
    "common/http_client": ["common/base"],
    "common/object_store": ["common/aws", "common/base", "common/http_client"],
    "common/job_result": ["common/base", "common/document"],
    # What paid seconds were for: pure.
    "common/goodput": [],
    "common/http_server": ["common/base"],
    "common/tf_record": ["common/base"],
    "common/http2_front": ["common/base"],
    "common/certificates": ["common/base"],
    "common/model": ["common/base", "common/document", "proto"],
    # What a plan means; pure.
    "common/program": ["common/base", "common/model"],
    "kube": ["common/base"],
    "kube/cache": ["common/base", "kube"],
    "kube/leader": ["common/base", "kube"],
    "kube/queue": ["common/base", "kube"],
    "kube/schema": ["common/base", "common/cel", "kube"],
    "kube/client": ["common/base", "common/document", "common/http_client", "kube"],
    "common/rpc": ["common/base", "common/http2_front"],
    "common/metrics": ["common/base"],
    # A Kubernetes API server and a node on one machine; must not know Medley's types.
    "localcluster": ["common/base", "kube"],
    "localcluster/apiserver": ["common/base", "common/document", "common/http_client", "common/http_server", "kube", "kube/schema",
                               "localcluster"],
    "localcluster/node": ["common/base", "kube", "kube/cache", "kube/queue", "localcluster"],
    "operator/app": ["common/base", "common/http_server", "common/metrics", "common/model", "common/rpc", "kube",
                     "kube/cache", "kube/client", "kube/leader", "operator/api", "operator/capacity", "operator/controllers",
                     "operator/planning", "operator/profiling", "operator/recommend", "operator/records", "operator/runtime",
                     "operator/telemetry"],
    "operator/capacity": ["common/base", "kube", "operator/api", "operator/builders", "operator/records",
                          "operator/runtime"],
    "operator/controllers": ["common/base", "common/model", "kube", "kube/cache", "operator/api", "operator/builders",
                             "operator/capacity", "operator/lifecycle", "operator/planning", "operator/profiling",
                             "operator/records", "operator/runtime", "operator/telemetry"],
    "operator/planning": ["common/base", "common/certificates", "common/model", "common/rpc", "proto", "kube",
                          "operator/api", "operator/records"],
    "operator/recommend": ["common/base", "common/model", "kube", "kube/cache", "operator/api", "operator/records",
                           "operator/runtime"],
    "operator/runtime": ["common/base", "kube", "kube/cache", "kube/leader", "kube/queue"],
    "operator/telemetry": ["common/base", "common/http_server", "common/metrics", "kube", "kube/queue",
                           "operator/runtime"],
    "scheduler-service/app": ["common/base", "common/certificates", "common/rpc", "scheduler-service/catalog",
                              "scheduler-service/feeds", "scheduler-service/handlers", "scheduler-service/planner",
                              "scheduler-service/process", "scheduler-service/remote_planner", "scheduler-service/serve_grpc",
                              "scheduler-service/serve_rest", "scheduler-service/web"],
    "scheduler-service/catalog": ["common/base", "common/document", "common/metrics", "common/model", "proto"],
    "scheduler-service/handlers": ["common/base", "common/metrics", "common/model", "common/program", "proto",
                                   "scheduler-service/catalog", "scheduler-service/online", "scheduler-service/planner",
                                   "scheduler-service/planning", "scheduler-service/prepare", "scheduler-service/profile",
                                   "scheduler-service/simulate", "scheduler-service/cost"],
    "scheduler-service/online": ["common/base", "common/model", "scheduler-service/cost", "scheduler-service/planner",
                                 "scheduler-service/policy_net"],
    "scheduler-service/process": ["common/base"],
    "scheduler-service/serve_grpc": ["common/base", "common/rpc", "proto", "scheduler-service/handlers"],
    "scheduler-service/serve_planner": ["common/base", "common/model", "common/rpc", "proto", "scheduler-service/handlers",
                                        "scheduler-service/planning", "scheduler-service/serve_grpc",
                                        "scheduler-service/cost", "scheduler-service/options"],
    "scheduler-service/serve_rest": ["common/base", "common/document", "common/http_server", "common/metrics",
                                     "common/model", "scheduler-service/handlers"],
    "scheduler-service/web": ["common/base", "common/document", "scheduler-service/serve_rest"],
    # The planner does no I/O: no rpc, no metrics, no catalog.
    # What a schedule does to a pipeline is what common/program says.
    "scheduler-service/cost": ["common/base", "common/model", "common/program"],
    "scheduler-service/provision": ["common/base", "common/model", "scheduler-service/cost"],
    "scheduler-service/policy_net": ["common/base"],
    # Tables of what planners take, which every planner and the lists of planners read.
    "scheduler-service/options": ["common/base", "common/model"],
    "scheduler-service/planner": ["common/base", "common/model", "common/program", "scheduler-service/cost",
                                  "scheduler-service/provision", "scheduler-service/policy_net",
                                  "scheduler-service/graph", "scheduler-service/hierarchy", "scheduler-service/options",
                                  "scheduler-service/pipeline", "scheduler-service/planning"],
    "scheduler-service/devices": ["common/base", "common/model", "scheduler-service/simulate"],
    # The interface of planners. Each family knows only this and what its questions are about.
    "scheduler-service/planning": ["common/base", "common/model", "scheduler-service/cost", "scheduler-service/options",
                                   "scheduler-service/provision", "scheduler-service/simulate",
                                   "scheduler-service/devices"],
    "scheduler-service/graph": ["common/base", "common/model", "scheduler-service/planning", "scheduler-service/simulate",
                                "scheduler-service/devices"],
    "scheduler-service/hierarchy": ["common/base", "common/model", "scheduler-service/planning",
                                    "scheduler-service/devices"],
    "scheduler-service/pipeline": ["common/base", "common/model", "scheduler-service/planning",
                                   "scheduler-service/devices"],
    # Planners of other processes: the network, but not the front ends.
    "scheduler-service/remote_planner": ["common/base", "common/document", "common/model", "common/rpc", "proto",
                                         "scheduler-service/planner", "scheduler-service/planning",
                                         "scheduler-service/provision", "scheduler-service/devices", "scheduler-service/cost"],
    # Time and memory of a program: pure.
    "scheduler-service/simulate": ["common/base", "common/model", "common/program"],
    "scheduler-service/feeds": ["common/aws", "common/base", "common/document", "common/http_client", "common/model",
                                "scheduler-service/catalog"],
    # Datasheets, analytic profiles, calibration: also pure.
    "scheduler-service/profile": ["common/base", "common/model"],
    # Prices and profiles of a request, for the service and the command line.
    "scheduler-service/prepare": ["common/model", "scheduler-service/catalog", "scheduler-service/profile"],
    # Papers: they use planning, and nothing outside of the wing uses them (WINGS).
    "reproductions/app": ["common/base", "common/model", "common/rpc", "proto", "scheduler-service/planner",
                          "scheduler-service/process", "scheduler-service/serve_planner", "reproductions/heterog",
                          "reproductions/heterps", "reproductions/tapp", "reproductions/thesis"],
    "reproductions/heterog": ["common/base", "scheduler-service/graph", "scheduler-service/pipeline",
                              "scheduler-service/planning", "scheduler-service/devices", "reproductions/torch_net",
                              "scheduler-service/cost"],
    "reproductions/heterog/bench": ["common/base", "reproductions/heterog", "reproductions/heterog/bench/graph"],
    "reproductions/heterog/bench/graph": ["common/base", "common/document", "common/model", "proto",
                                          "scheduler-service/graph", "scheduler-service/pipeline",
                                          "scheduler-service/planning", "scheduler-service/profile",
                                          "scheduler-service/simulate",
                                          "scheduler-service/devices", "reproductions/heterog"],
    "reproductions/heterog/tests": ["common/base", "scheduler-service/planning", "reproductions/heterog"],
    "reproductions/heterps": ["common/base", "scheduler-service/cost", "scheduler-service/options",
                              "scheduler-service/planner", "scheduler-service/provision"],
    "reproductions/heterps/bench": ["common/base", "common/model", "proto", "scheduler-service/planner",
                                    "scheduler-service/planning", "scheduler-service/profile", "worker/model",
                                    "reproductions/heterps", "scheduler-service/cost"],
    "reproductions/heterps/tests": ["common/base", "reproductions/heterps", "scheduler-service/provision",
                                    "scheduler-service/cost"],
    "reproductions/tapp": ["common/base", "scheduler-service/pipeline", "scheduler-service/planning",
                           "scheduler-service/devices", "reproductions/torch_net"],
    "reproductions/tapp/bench": ["common/base", "common/model", "proto", "scheduler-service/pipeline",
                                 "scheduler-service/planning", "scheduler-service/profile", "scheduler-service/simulate",
                                 "scheduler-service/devices", "reproductions/tapp"],
    "reproductions/tapp/tests": ["common/base", "scheduler-service/pipeline", "reproductions/tapp", "common/model",
                                 "scheduler-service/planning"],
    "reproductions/thesis": ["scheduler-service/hierarchy", "scheduler-service/options", "scheduler-service/planning"],
    "reproductions/thesis/bench": ["common/base", "scheduler-service/hierarchy", "scheduler-service/devices",
                                   "scheduler-service/planning"],
    "reproductions/thesis/tests": ["common/base", "scheduler-service/devices", "reproductions/thesis", "common/model",
                                   "scheduler-service/planning"],
    "reproductions/torch_net": ["common/base"],
    "worker/agent": ["common/base", "common/document", "common/http_server", "common/model", "common/tf_record", "proto",
                     "worker/trainer"],
    "worker/app": ["common/base", "common/certificates", "common/http_server", "common/model", "common/rpc",
                   "worker/aten", "worker/checkpoint", "worker/claim", "worker/collective", "worker/coordinator/server", "worker/device",
                   "worker/export", "worker/exported", "worker/file_server", "worker/model", "worker/object_files", "worker/params",
                   "worker/places",
                   "worker/predict", "worker/profiler", "worker/ps", "worker/sandbox", "worker/agent", "worker/torchscript",
                   "worker/trainer"],
    "worker/coordinator/core": ["common/base", "common/goodput", "common/model", "common/program", "proto", "worker/scores"],
    "worker/coordinator/server": ["common/base", "common/http_server", "common/job_result", "common/metrics", "common/model", "common/rpc",
                                  "common/tf_record", "proto", "worker/checkpoint", "worker/claim", "worker/coordinator/core"],
    # Object stores for the processes of a job, which know nothing of them.
    "worker/places": ["common/aws", "common/base", "common/model", "common/object_store"],
    # Object stores as the files of a job's folder.
    "worker/object_files": ["common/base", "common/object_store", "worker/checkpoint"],
    "worker/file_server": ["common/base", "common/http_server"],
    "worker/profiler": ["common/base", "common/model", "common/program", "proto", "worker/data", "worker/device", "worker/export",
                        "worker/model", "worker/params", "worker/pipeline"],
    "worker/cold": ["common/base"],
    "worker/ps": ["common/base", "common/rpc", "proto", "worker/cold", "worker/params", "worker/pipeline"],
    "worker/trainer": ["common/base", "common/model", "common/program", "common/rpc", "proto", "worker/checkpoint",
                       "worker/claim", "worker/collective", "worker/data", "worker/device", "worker/export",
                       "worker/model", "worker/params", "worker/pipeline", "worker/ps"],
    "worker/params": ["common/base", "common/model"],
    # Archives of exported models, from anybody: they know nothing of jobs.
    "worker/exported": ["common/base"],
    "worker/sandbox": ["common/base"],
    "worker/torchscript": ["common/base", "worker/exported"],
    "worker/cut": ["common/base", "worker/exported"],
    "worker/model": ["common/base", "common/model", "worker/cut", "worker/data", "worker/exported", "worker/params",
                     "worker/pipeline", "worker/scores", "worker/torchscript"],
    # About GPUs, and groups of processes; not of tensors.
    "worker/device": ["common/base", "worker/collective"],
    "worker/aten/cuda": ["worker/aten"],
    "worker/aten": ["common/base", "common/model", "common/program", "worker/cut", "worker/data", "worker/device", "worker/exported", "worker/model", "worker/params",
                    "worker/pipeline"],
    "worker/scores": ["common/model"],
    "worker/columns": ["common/base"],
    # A library that programs load: the interface, and nothing else of Medley.
    "worker/arrow": ["worker/columns"],
    "worker/data": ["common/base", "common/model", "worker/columns"],
    "worker/collective": ["common/base", "common/model"],
    "worker/pipeline": ["common/base", "common/program", "worker/data", "worker/params", "worker/scores"],
    "worker/checkpoint": ["common/base", "common/document", "common/model"],
    "worker/claim": ["common/base", "worker/checkpoint"],
    # Linked by `medley`, which has no LibTorch: of worker/model only the graph.
    "worker/export": ["common/base", "common/document", "common/model", "worker/checkpoint", "worker/cut", "worker/data",
                      "worker/exported", "worker/model", "worker/params", "worker/torchscript"],
    "worker/predict": ["common/base", "worker/data", "worker/export", "worker/model", "worker/scores"],
    "cli": ["common/base", "common/document", "common/model", "common/object_store", "common/program", "common/rpc", "proto", "kube/client",
            "localcluster/node", "operator/api", "operator/records", "scheduler-service/catalog",
            "scheduler-service/planner", "scheduler-service/prepare", "scheduler-service/profile",
            "scheduler-service/simulate", "worker/cut", "worker/data", "worker/export", "worker/exported", "worker/model",
            "worker/places", "worker/predict", "worker/torchscript", "cli/cluster", "cli/dashboard", "cli/data", "cli/download",
            "cli/model", "cli/run", "cli/traces"],
    "cli/cluster": ["common/base", "common/goodput", "common/model", "kube", "kube/client", "operator/api", "operator/records", "cli"],
    "cli/dashboard": ["common/base", "common/http_server", "operator/api", "cli", "cli/cluster"],
    "cli/data": ["common/base", "common/model", "worker/data", "cli"],
    "cli/download": ["common/base", "common/document", "kube", "operator/api", "operator/builders", "cli/cluster", "cli/run"],
    "cli/model": ["common/base", "common/model", "scheduler-service/profile", "worker/cut", "cli"],
    "cli/run": ["common/base", "common/document", "common/model", "common/object_store", "kube", "kube/client", "kube/schema", "localcluster/apiserver",
                "localcluster/node", "operator/api", "operator/records", "scheduler-service/planner",
                "worker/checkpoint", "worker/claim", "worker/object_files", "cli", "cli/cluster", "cli/dashboard"],
    "operator/api": ["common/base", "common/document", "common/goodput", "common/model", "kube", "kube/schema"],
    # What the cluster stores about a job, read by the operator and by `medley`: pure.
    "operator/records": ["common/base", "common/certificates", "common/goodput", "common/job_result", "common/model", "common/program", "kube", "operator/api", "proto"],
    "operator/builders": ["common/base", "common/certificates", "common/model", "kube", "operator/api", "operator/records"],
    "operator/profiling": ["common/base", "common/model", "kube", "operator/api", "operator/builders", "operator/records"],
    # The life of a job is a pure function: values of Kubernetes objects, but no client and no cache (see PURE).
    "operator/lifecycle": ["common/base", "common/goodput", "common/job_result", "common/model", "kube", "operator/api", "operator/builders",
                           "operator/records", "operator/spot"],
    "operator/spot": ["common/base"],
    "cli/traces": ["common/base", "operator/spot", "cli"],
}

# third-party prefix -> folders that may include it in any file; HEADER_FREE may not appear in headers at all.
HEAVY = {
    r"torch/|ATen/|c10/": ["worker/aten", "worker/torchscript", "reproductions/torch_net", "tests/unit/worker/model"],
    r"oneapi/": ["worker/model"],
    r"arrow/|parquet/": ["worker/arrow"],
    r"cuda|cublas|cudnn|nccl|c10/cuda|ATen/cuda": ["worker/device", "worker/aten/cuda"],
    r"Eigen/": ["scheduler-service/policy_net", "reproductions/heterps", "worker/model"],
    r"boost/": ["common/http_server", "operator/controllers",
                "tests/integration/scheduler"],
    r"curl/": ["common/http_client"],
    r"CLI/": ["operator/app", "scheduler-service/app", "worker/app", "cli", "reproductions/app",
              "reproductions/heterog/bench", "reproductions/heterps/bench", "reproductions/tapp/bench", "reproductions/thesis/bench", "tests/bench", "tests/unit/cli"],
    r"spdlog/": ["common/base"],
    r"yaml-cpp/": ["common/document"],
}
HEADER_FREE = r"grpcpp/|CLI/|spdlog/|prometheus/|torch/|Eigen/|curl/|yaml-cpp/|boost/"
# Types and calls of CUDA and NCCL, also those that other headers bring along. LibTorch's at::kCUDA is neither.
CUDA_NAME = re.compile(r"\b(cuda[A-Z]\w*|nccl[A-Z]\w*|c10::cuda|at::cuda|CU(stream|event)_st)\b")
CUDA_FOLDERS = ["worker/device", "worker/aten/cuda"]
# Headers of one folder's own sources, which keep a library's types together.
HEADER_EXCEPTIONS = {"reproductions/torch_net/torch.h", "worker/aten/torch.h", "worker/torchscript/torch.h", "common/http_server/connection.h", "common/http_server/tls_files.h"}
# Folders whose headers may name messages of the wire: what they decide about are messages (docs/adr/0010). Everywhere else
# messages stay in .cc files, behind forward declarations.
WIRE_HEADERS = ("common/model", "scheduler-service/handlers", "worker/coordinator/core", "worker/coordinator/server",
                "worker/trainer")
# Conversions from and to protobuf in folders whose other files must not include it.
WIRE_EXCEPTIONS = {"scheduler-service/planner/pareto_proto.h", "scheduler-service/planner/pareto_proto.cc",
                   "scheduler-service/planner/list_proto.h", "scheduler-service/planner/list_proto.cc"}

# folder -> what no file in it may include: I/O, threads, clocks and logs stay in the shell around it.
PURE = {
    "operator/lifecycle": r"kube/(client|cache|queue|leader)|common/base/(log|mutex|rng)\.h|(thread|mutex|atomic|future|"
                          r"condition_variable|random|iostream|fstream)$",
}

INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.M)
TOP = ("common", "kube", "localcluster", "operator", "scheduler-service", "worker", "cli", "reproductions")
# Folders that the default target does not build, so that nothing outside of them, tests included, may include them.
WINGS = ("reproductions",)
# Commands use the tables and options beside main.cc, which registers the commands.
CIRCLES = ("cli",)


def owner(folder):
    """The folder whose row counts: fakes for tests belong to what they stand for."""
    return folder.removesuffix("/testing")


def circles(arrows):
    """Folders that reach themselves, each as one problem. Two folders of one top in CIRCLES may."""
    problems = []
    for start in arrows:
        paths, seen = [[start]], set()
        while paths:
            path = paths.pop()
            for target in arrows.get(path[-1], ()):
                if target == start and start == min(path) and not all(p.split("/")[0] in CIRCLES for p in path):
                    problems.append(f"{' -> '.join([*path, start])}: folders must not form a circle")
                if target not in seen and target != start:
                    seen.add(target)
                    paths.append([*path, target])
    return problems


def table_problems(arrows, used):
    """`used`: {folder: folders that its files include}. What the rows say and no file does, or the other way round."""
    problems = [f"{folder}: no row in ARROWS of tests/lint/check_layers.py" for folder in used if folder not in arrows]
    problems += [f"ARROWS: {folder} has no sources" for folder in arrows if folder not in used]
    problems += [f"ARROWS: no file of {folder} includes {target}: delete the arrow"
                 for folder in arrows if folder in used for target in arrows[folder] if target not in used[folder]]
    return problems + circles(arrows)


def under(path, prefixes):
    return any((path + "/").startswith(p.rstrip("/") + "/") for p in prefixes)


def main():
    problems = []
    used = {}
    files = 0
    for base, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in (".git", "build") and not f.startswith("build-")]
        for name in names:
            if not name.endswith((".h", ".cc")):
                continue
            path = os.path.relpath(os.path.join(base, name), ROOT)
            folder = os.path.dirname(path)
            rule = owner(folder)
            if path.startswith(TOP):
                used.setdefault(rule, set())
            files += 1
            text = open(os.path.join(ROOT, path), encoding="utf-8").read()
            if not under(folder, CUDA_FOLDERS):
                for match in CUDA_NAME.finditer(text):
                    problems.append(f"{path}: {match.group(0)} is of CUDA, which only {', '.join(CUDA_FOLDERS)} may use")
            for include in INCLUDE.findall(text):
                if name.endswith(".h") and re.match(HEADER_FREE, include) and path not in HEADER_EXCEPTIONS:
                    problems.append(f"{path}: header includes {include}; keep it in the .cc")
                for pattern, allowed in HEAVY.items():
                    if re.match(pattern, include) and not under(folder, allowed):
                        problems.append(f"{path}: {include} is allowed only in {', '.join(allowed)}")
                if under(include, WINGS) and not under(path, WINGS):
                    problems.append(f"{path}: {include} is of {include.split('/')[0]}, which only itself may include")
                if folder in PURE and re.match(PURE[folder], include):
                    problems.append(f"{path}: {folder} is pure and must not include {include}")
                if not path.startswith(TOP):
                    continue  # tests may include any folder
                allowed = ARROWS.get(rule, ())
                if include.startswith("medley/"):
                    if name.endswith(".h") and include.endswith(".grpc.pb.h"):
                        problems.append(f"{path}: header includes {include}; services stay in the .cc (docs/adr/0010)")
                    if name.endswith(".h") and folder not in WIRE_HEADERS and path not in WIRE_EXCEPTIONS:
                        problems.append(f"{path}: header includes {include}; keep it in the .cc (docs/adr/0010)")
                    if path not in WIRE_EXCEPTIONS:
                        used[rule].add("proto")
                        if "proto" not in allowed:
                            problems.append(f"{path}: {rule} must not include the wire form ({include})")
                    continue
                if not include.startswith(TOP):
                    continue
                target = owner(os.path.dirname(include))
                if target == rule:
                    continue
                used[rule].add(target)
                if target not in allowed:
                    problems.append(f"{path}: {rule} must not include {include}")
    problems += table_problems(ARROWS, used)
    for problem in problems:
        print(problem)
    print(f"check_layers: {files} files, {len(problems)} problems")
    return 1 if problems or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
