"""The dashboard of operator and scheduling service: do they keep up, and what do they need?"""
from panels import Dashboard, datasource, variable

# Excludes controllers of other operators, which use the same metric names.
CONTROLLER = 'controller=~"trainingjob|resourcepool"'
OURS = "and on (namespace, pod, instance) medley_leader"
PARTS = 'component=~"operator|scheduler"'
BUILD = f"on (namespace, pod, instance) group_left (component) medley_build_info{{{PARTS}}}"


def quantile(q, metric, by, matchers=""):
    return f"histogram_quantile({q}, sum by ({by}, le) (rate({metric}_bucket{{{matchers}}}[$__rate_interval])))"


def make():
    d = Dashboard("medley-control-plane", "Medley / Control plane",
                  "The operator and the scheduling service: errors, latencies, queues, prices, processes.",
                  [datasource(),
                   variable("method", "Method", "Method of requests to the scheduling service",
                            "label_values(medley_scheduler_requests_total, method)")])
    d.row("Now")
    d.stat("Leaders", "Number of leading operators. It should be 1.", "sum(medley_leader) or vector(0)", "none",
           thresholds=[(None, "red"), (1, "green"), (2, "red")])
    d.stat("Standbys", "Operators that are ready to take over.", "count(medley_leader == 0) or vector(0)", "none")
    d.stat("Scheduling service", "Whether the leader receives prices from the service.",
           "min(medley_operator_scheduler_connected and medley_leader == 1)", "none",
           thresholds=[(None, "red"), (1, "green")],
           mappings=[{"type": "value", "options": {"0": {"text": "unavailable", "index": 0}, "1": {"text": "connected", "index": 1}}}])
    d.stat("Failed reconciliations", "Share of failed reconciliations in the last minutes.",
           f"sum(rate(controller_runtime_reconcile_errors_total{{{CONTROLLER}}}[$__rate_interval])) / "
           f"sum(rate(controller_runtime_reconcile_total{{{CONTROLLER}}}[$__rate_interval]))", "percentunit", decimals=1,
           thresholds=[(None, "green"), (0.02, "yellow"), (0.1, "red")])
    d.stat("Catalog", "Revision of the price catalog in the service. The operator follows within a moment.",
           "max(medley_catalog_revision)", "none")
    d.stat("Objects in caches", "Objects in the caches of the leading operator: jobs, pools, pods, nodes, quotas, ConfigMaps.",
           "sum(medley_operator_cache_objects and on (namespace, pod, instance) medley_leader == 1)", "short")
    d.row("Operator")
    d.lines("Reconciliations", "Reconciliations by controller and result.",
            [(f"sum by (controller, result) (rate(controller_runtime_reconcile_total{{{CONTROLLER}}}[$__rate_interval]))",
              "{{controller}} {{result}}")], "ops", width=8, low=0)
    d.lines("Duration of reconciliations", "99th and 50th percentile.",
            [(quantile(0.99, "controller_runtime_reconcile_time_seconds", "controller", CONTROLLER), "{{controller}} p99"),
             (quantile(0.5, "controller_runtime_reconcile_time_seconds", "controller", CONTROLLER), "{{controller}} p50")],
            "s", width=8, low=0)
    d.lines("Busy workers", "Workers in use. Dashed: all workers.",
            [(f"sum by (controller) (controller_runtime_active_workers{{{CONTROLLER}}})", "{{controller}}"),
             (f"sum(controller_runtime_max_concurrent_reconciles{{{CONTROLLER}}})", "all")], "none", width=8, low=0,
            dashed=[("all", "blue")])
    d.lines("Waiting keys", "Depth of the queues.",
            [(f"sum by (controller) (workqueue_depth{{{CONTROLLER}}})", "{{controller}}")], "none", width=8, low=0)
    d.lines("Waiting time of keys", "99th percentile.",
            [(quantile(0.99, "workqueue_queue_duration_seconds", "controller", CONTROLLER), "{{controller}}")], "s", width=8, low=0)
    d.lines("Retries", "Keys that were added again after a failure.",
            [(f"sum by (controller) (rate(workqueue_retries_total{{{CONTROLLER}}}[$__rate_interval]))", "{{controller}}")], "ops",
            width=8, low=0)
    d.row("Calls of the Kubernetes API by the operator")
    d.lines("Calls", "Calls by method and code. The code <error> means that there was no answer.",
            [(f"sum by (method, code) (rate(rest_client_requests_total[$__rate_interval]) {OURS})", "{{method}} {{code}}")], "reqps",
            width=8, low=0)
    d.lines("Duration of calls", "99th percentile, with retries and without watches.",
            [(f"histogram_quantile(0.99, sum by (verb, le) (rate(rest_client_request_duration_seconds_bucket[$__rate_interval]) {OURS}))",
              "{{verb}}")], "s", width=8, low=0)
    d.lines("Writes", "Writes of job statuses, and created pods.",
            [("sum(rate(medley_operator_status_writes_total[$__rate_interval]))", "statuses"),
             ("sum(rate(medley_operator_pods_created_total[$__rate_interval]))", "pods")], "wps", width=8, low=0)
    d.row("Plans")
    d.lines("Planning requests", "Requests of the operator by result: accepted, infeasible, refused, unavailable.",
            [("sum by (result) (rate(medley_operator_plans_total[$__rate_interval]))", "{{result}}")], "reqps", width=8, low=0)
    d.lines("Time spent planning", "90th percentile for each planner.",
            [(quantile(0.9, "medley_planning_seconds", "planner"), "{{planner}}")], "s", width=8, low=0)
    d.lines("Constraints without a plan", "Constraints that made requests infeasible.",
            [("sum by (constraint) (increase(medley_plans_infeasible_total[$__rate_interval]))", "{{constraint}}")], "none", width=8,
            low=0)
    d.lines("Proven distance from the optimum", "Median gap of the plans, for each planner that proves a gap.",
            [(quantile(0.5, "medley_plan_gap_ratio", "planner"), "{{planner}}")], "percentunit", width=8, low=0)
    d.lines("Measured over predicted throughput", "For the model that was observed last, before and after the correction by measurements.",
            [("max by (corrected) (medley_operator_prediction_ratio)", "corrected: {{corrected}}")], "percentunit", width=8, low=0)
    d.lines("Measurements sent to the service", "Measurements by result.",
            [("sum by (result) (rate(medley_operator_observations_total[$__rate_interval]))", "{{result}}")], "reqps", width=8, low=0)
    d.row("Scheduling service")
    d.lines("Requests", "Requests by method and code.",
            [('sum by (method, code) (rate(medley_scheduler_requests_total{method=~"$method"}[$__rate_interval]))',
              "{{method}} {{code}}")], "reqps", width=8, low=0)
    d.lines("Time to answer", "99th percentile.",
            [(quantile(0.99, "medley_scheduler_request_seconds", "method", 'method=~"$method"'), "{{method}}")], "s", width=8, low=0)
    d.lines("Load", "Requests in progress, and waiting requests.",
            [("sum(medley_scheduler_requests_in_flight)", "in flight"), ("sum(medley_scheduler_requests_waiting)", "waiting")],
            "none", width=8, low=0)
    d.lines("Cached answers", "Share of the requests that were answered from the cache.",
            [('sum(rate(medley_scheduler_cache_total{result="hit"}[$__rate_interval])) / '
              "(sum(rate(medley_scheduler_cache_total[$__rate_interval])) > 0)", "hits")], "percentunit", width=8, low=0, high=1)
    d.lines("Connections", "Open connections to the REST port.", [("sum(medley_rest_connections)", "open")], "none", width=8, low=0)
    d.lines("Prices", "Published revisions per hour, and answers that were refused or changed.",
            [("sum(rate(medley_price_publish_total[$__rate_interval])) * 3600", "published"),
             ("sum(rate(medley_price_rejected_total[$__rate_interval])) * 3600 or vector(0)", "rejected")], "none", width=8, low=0)
    d.row("Processes")
    d.lines("CPU", "Cores that each process uses.",
            [(f"rate(process_cpu_seconds_total[$__rate_interval]) * {BUILD}", "{{component}} {{pod}}{{instance}}")], "none", width=8,
            low=0)
    d.lines("Memory", "Resident memory.", [(f"process_resident_memory_bytes * {BUILD}", "{{component}} {{pod}}{{instance}}")], "bytes",
            width=8, low=0)
    d.lines("Open files", "Open files over the largest allowed number.",
            [(f"process_open_fds / process_max_fds * {BUILD}", "{{component}} {{pod}}{{instance}}")], "percentunit", width=8, low=0)
    d.table("Versions", "Versions of the running components. More than one version of a component means that an upgrade is in progress.",
            [("count by (component, version) (medley_build_info)", "Processes", "none")], width=12, height=6)
    d.lines("Threads", "Threads of each process.", [(f"process_threads * {BUILD}", "{{component}} {{pod}}{{instance}}")], "none", height=6,
            low=0)
    return d
