"""Operator and scheduling service: do they keep up, and what do they need."""
from panels import Dashboard, datasource, variable

# Not the controllers of other operators, who use the same names.
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
                   variable("method", "Method", "Of requests to the scheduling service",
                            "label_values(medley_scheduler_requests_total, method)")])
    d.row("Now")
    d.stat("Leaders", "Operators that lead: 1 is right.", "sum(medley_leader) or vector(0)", "none",
           thresholds=[(None, "red"), (1, "green"), (2, "red")])
    d.stat("Standbys", "Operators that wait to take over.", "count(medley_leader == 0) or vector(0)", "none")
    d.stat("Scheduling service", "Whether the leader hears prices from it.",
           "min(medley_operator_scheduler_connected and medley_leader == 1)", "none",
           thresholds=[(None, "red"), (1, "green")],
           mappings=[{"type": "value", "options": {"0": {"text": "away", "index": 0}, "1": {"text": "there", "index": 1}}}])
    d.stat("Reconciliations that fail", "Share of the last minutes.",
           f"sum(rate(controller_runtime_reconcile_errors_total{{{CONTROLLER}}}[$__rate_interval])) / "
           f"sum(rate(controller_runtime_reconcile_total{{{CONTROLLER}}}[$__rate_interval]))", "percentunit", decimals=1,
           thresholds=[(None, "green"), (0.02, "yellow"), (0.1, "red")])
    d.stat("Catalog", "Revision of prices: as the service has it. The operator's is behind for a moment at most.",
           "max(medley_catalog_revision)", "none")
    d.stat("Objects in caches", "Of the leading operator: jobs, pools, pods, nodes, quotas, ConfigMaps.",
           "sum(medley_operator_cache_objects and on (namespace, pod, instance) medley_leader == 1)", "short")
    d.row("Operator")
    d.lines("Reconciliations", "By controller and result.",
            [(f"sum by (controller, result) (rate(controller_runtime_reconcile_total{{{CONTROLLER}}}[$__rate_interval]))",
              "{{controller}} {{result}}")], "ops", width=8, low=0)
    d.lines("Duration of reconciliations", "99 of 100, and half of them, are quicker.",
            [(quantile(0.99, "controller_runtime_reconcile_time_seconds", "controller", CONTROLLER), "{{controller}} p99"),
             (quantile(0.5, "controller_runtime_reconcile_time_seconds", "controller", CONTROLLER), "{{controller}} p50")],
            "s", width=8, low=0)
    d.lines("Busy workers", "Of those that there are (dashed).",
            [(f"sum by (controller) (controller_runtime_active_workers{{{CONTROLLER}}})", "{{controller}}"),
             (f"sum(controller_runtime_max_concurrent_reconciles{{{CONTROLLER}}})", "all")], "none", width=8, low=0,
            dashed=[("all", "blue")])
    d.lines("Keys that wait", "Depth of the queues.",
            [(f"sum by (controller) (workqueue_depth{{{CONTROLLER}}})", "{{controller}}")], "none", width=8, low=0)
    d.lines("How long keys wait", "99 of 100 wait less.",
            [(quantile(0.99, "workqueue_queue_duration_seconds", "controller", CONTROLLER), "{{controller}}")], "s", width=8, low=0)
    d.lines("Retries", "Keys put back after a failure.",
            [(f"sum by (controller) (rate(workqueue_retries_total{{{CONTROLLER}}}[$__rate_interval]))", "{{controller}}")], "ops",
            width=8, low=0)
    d.row("Kubernetes API, as the operator sees it")
    d.lines("Calls", "By method and code; <error>: no answer.",
            [(f"sum by (method, code) (rate(rest_client_requests_total[$__rate_interval]) {OURS})", "{{method}} {{code}}")], "reqps",
            width=8, low=0)
    d.lines("Duration of calls", "99 of 100 are quicker; with retries, without watches.",
            [(f"histogram_quantile(0.99, sum by (verb, le) (rate(rest_client_request_duration_seconds_bucket[$__rate_interval]) {OURS}))",
              "{{verb}}")], "s", width=8, low=0)
    d.lines("Writes", "Of statuses of jobs, and pods made.",
            [("sum(rate(medley_operator_status_writes_total[$__rate_interval]))", "statuses"),
             ("sum(rate(medley_operator_pods_created_total[$__rate_interval]))", "pods")], "wps", width=8, low=0)
    d.row("Plans")
    d.lines("Plans asked for", "By the operator: accepted, infeasible, refused, unavailable.",
            [("sum by (result) (rate(medley_operator_plans_total[$__rate_interval]))", "{{result}}")], "reqps", width=8, low=0)
    d.lines("Time spent planning", "Nine of ten plans of each planner are quicker.",
            [(quantile(0.9, "medley_planning_seconds", "planner"), "{{planner}}")], "s", width=8, low=0)
    d.lines("Constraints in the way", "Of questions that have no plan.",
            [("sum by (constraint) (increase(medley_plans_infeasible_total[$__rate_interval]))", "{{constraint}}")], "none", width=8,
            low=0)
    d.lines("Proven distance from the optimum", "Median gap of the plans of each planner that proves one.",
            [(quantile(0.5, "medley_plan_gap_ratio", "planner"), "{{planner}}")], "percentunit", width=8, low=0)
    d.lines("Measured over predicted throughput", "Of the model observed last, before and after correction by measurements.",
            [("max by (corrected) (medley_operator_prediction_ratio)", "corrected: {{corrected}}")], "percentunit", width=8, low=0)
    d.lines("Measurements told to the service", "By the answer.",
            [("sum by (result) (rate(medley_operator_observations_total[$__rate_interval]))", "{{result}}")], "reqps", width=8, low=0)
    d.row("Scheduling service")
    d.lines("Requests", "By method and code.",
            [('sum by (method, code) (rate(medley_scheduler_requests_total{method=~"$method"}[$__rate_interval]))',
              "{{method}} {{code}}")], "reqps", width=8, low=0)
    d.lines("Time to answer", "99 of 100 requests are answered sooner.",
            [(quantile(0.99, "medley_scheduler_request_seconds", "method", 'method=~"$method"'), "{{method}}")], "s", width=8, low=0)
    d.lines("Load", "Requests that are being answered, and that wait for their turn.",
            [("sum(medley_scheduler_requests_in_flight)", "in flight"), ("sum(medley_scheduler_requests_waiting)", "waiting")],
            "none", width=8, low=0)
    d.lines("Answers given before", "Share of the questions that were found among them.",
            [('sum(rate(medley_scheduler_cache_total{result="hit"}[$__rate_interval])) / '
              "(sum(rate(medley_scheduler_cache_total[$__rate_interval])) > 0)", "hits")], "percentunit", width=8, low=0, high=1)
    d.lines("Connections", "Open to the REST port.", [("sum(medley_rest_connections)", "open")], "none", width=8, low=0)
    d.lines("Prices", "Revisions published per hour, and answers that were not taken as they came.",
            [("sum(rate(medley_price_publish_total[$__rate_interval])) * 3600", "published"),
             ("sum(rate(medley_price_rejected_total[$__rate_interval])) * 3600 or vector(0)", "rejected")], "none", width=8, low=0)
    d.row("Processes")
    d.lines("CPU", "Cores that each process uses.",
            [(f"rate(process_cpu_seconds_total[$__rate_interval]) * {BUILD}", "{{component}} {{pod}}{{instance}}")], "none", width=8,
            low=0)
    d.lines("Memory", "Resident.", [(f"process_resident_memory_bytes * {BUILD}", "{{component}} {{pod}}{{instance}}")], "bytes",
            width=8, low=0)
    d.lines("Open files", "Share of what a process may open.",
            [(f"process_open_fds / process_max_fds * {BUILD}", "{{component}} {{pod}}{{instance}}")], "percentunit", width=8, low=0)
    d.table("Versions", "What runs where; more than one version of a component: an upgrade is under way.",
            [("count by (component, version) (medley_build_info)", "Processes", "none")], width=12, height=6)
    d.lines("Threads", "Of each process.", [(f"process_threads * {BUILD}", "{{component}} {{pod}}{{instance}}")], "none", height=6,
            low=0)
    return d
