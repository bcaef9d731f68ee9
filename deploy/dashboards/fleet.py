"""All jobs, all pools, and the money."""
from panels import Dashboard, datasource, variable

JOBS = 'namespace=~"$namespace"'
POOL = 'pool=~"$pool"'
RUNNING = f'medley_job_phase{{{JOBS}, phase=~"Running|Rescaling"}}'
JOB_LINK = "/d/medley-job?${__url_time_range}&${datasource:queryparam}&var-namespace=${__data.fields.namespace}&var-job=${__data.fields.job}"


def make():
    d = Dashboard("medley-fleet", "Medley / Fleet and money",
                  "What runs, what it costs, and whether it is fast enough: all jobs and pools of Medley.",
                  [datasource(),
                   variable("namespace", "Namespace", "Namespace of the jobs", "label_values(medley_job_phase, namespace)"),
                   variable("pool", "Pool", "ResourcePools", "label_values(medley_pool_units, pool)")])
    d.row("Now")
    d.stat("Jobs that train", "Jobs in phase Running or Rescaling.", f"count({RUNNING}) or vector(0)", "none")
    d.stat("Jobs that wait", "Jobs in phase Pending, Queued, Profiling, Starting or Restarting.",
           f'count(medley_job_phase{{{JOBS}, phase=~"Pending|Queued|Profiling|Starting|Restarting"}}) or vector(0)', "none",
           thresholds=[(None, "green"), (1, "yellow")])
    d.stat("Below their goal", "Running jobs whose throughput is under 95 % of spec.objective.minThroughput.",
           f"count(medley_job_throughput_samples_per_second{{{JOBS}}} < 0.95 * medley_job_goal_samples_per_second "
           f'and on (namespace, job) medley_job_phase{{{JOBS}, phase="Running"}}) or vector(0)', "none",
           thresholds=[(None, "green"), (1, "red")])
    d.stat("Present price", "Price per hour of the units of all plans in force.",
           f"sum(medley_job_usd_per_hour{{{JOBS}, {POOL}}}) or vector(0)", "currencyUSD", decimals=2)
    d.stat("Spent in this time range", "Growth of the cost of all jobs within the dashboard's time range.",
           f"sum(increase(medley_job_cost_usd_total{{{JOBS}}}[$__range])) or vector(0)", "currencyUSD", decimals=2,
           sparkline=False)
    d.stat("Saved by moving", "What the first plans of the existing jobs would have cost for the same samples, minus what was "
           "paid. A negative value means that moves cost more than they saved.",
           f"sum(medley_job_saved_usd{{{JOBS}}}) or vector(0)", "currencyUSD", decimals=2,
           thresholds=[(None, "red"), (0, "green")])
    d.row("Money")
    d.lines("Price per hour by pool", "Units held in each pool times their price.",
            [(f"sum by (pool) (medley_job_usd_per_hour{{{JOBS}, {POOL}}})", "{{pool}}")], "currencyUSD", stack=True,
            low=0, step=True)
    d.lines("Price per hour by job", "The ten most expensive jobs.",
            [(f"topk(10, sum by (namespace, job) (medley_job_usd_per_hour{{{JOBS}, {POOL}}}))", "{{namespace}}/{{job}}")],
            "currencyUSD", stack=True, low=0, step=True)
    d.lines("Price of a unit", "The price that plans use: the ResourcePool's own price, or the price of its offering in the catalog.",
            [(f"max by (pool) (medley_pool_usd_per_unit_hour{{{POOL}}})", "{{pool}}")], "currencyUSD", low=0, step=True)
    d.lines("Cost of a million samples", "Price per hour over measured throughput, of each job.",
            [(f"sum by (namespace, job) (medley_job_usd_per_hour{{{JOBS}}}) / 3600 / "
              f"max by (namespace, job) (medley_job_throughput_samples_per_second{{{JOBS}}} > 0) * 1e6", "{{namespace}}/{{job}}")],
            "currencyUSD", low=0)
    d.row("Capacity")
    d.lines("Units in use", "Units that pods of Medley hold, by pool.",
            [(f'max by (pool) (medley_pool_units{{{POOL}, state="used"}})', "{{pool}}")], "none", stack=True, low=0, step=True)
    d.lines("Share of the capacity in use", "Used units over the units that nodes can hold. Above 1 while nodes are being removed.",
            [(f'max by (pool) (medley_pool_units{{{POOL}, state="used"}}) / '
              f'(max by (pool) (medley_pool_units{{{POOL}, state="capacity"}}) > 0)', "{{pool}}")], "percentunit", low=0)
    d.table("Pools", "Limit of the ResourcePool; units that nodes can hold, that Medley uses, and that another pod could take; price "
            "of a unit.",
            [(f'max by (pool) (medley_pool_units{{{POOL}, state="limit"}})', "Limit", "none"),
             (f'max by (pool) (medley_pool_units{{{POOL}, state="capacity"}})', "Capacity", "none"),
             (f'max by (pool) (medley_pool_units{{{POOL}, state="used"}})', "Used", "none"),
             (f'max by (pool) (medley_pool_units{{{POOL}, state="free"}})', "Free", "none"),
             (f"max by (pool) (medley_pool_usd_per_unit_hour{{{POOL}}})", "USD/h", "currencyUSD")],
            height=7, sort="Used")
    d.row("Jobs")
    d.table("Jobs", "One line for each job. Click on a name to open the job. Attained is throughput over goal.",
            [(f"max by (namespace, job, phase) (medley_job_phase{{{JOBS}}})", None, "none"),
             (f"max by (namespace, job) (medley_job_throughput_samples_per_second{{{JOBS}}})", "Samples/s", "short"),
             (f"max by (namespace, job) (medley_job_throughput_samples_per_second{{{JOBS}}}) / "
              f"max by (namespace, job) (medley_job_goal_samples_per_second{{{JOBS}}})", "Attained", "percentunit"),
             (f"sum by (namespace, job) (medley_job_usd_per_hour{{{JOBS}}})", "USD/h", "currencyUSD"),
             (f"max by (namespace, job) (medley_job_cost_usd_total{{{JOBS}}})", "Spent", "currencyUSD"),
             (f"max by (namespace, job) (medley_job_progress_ratio{{{JOBS}}})", "Progress", "percentunit"),
             (f"max by (namespace, job) (medley_job_remaining_seconds{{{JOBS}}})", "Remaining", "s")],
            height=10, links={"job": JOB_LINK}, sort="USD/h")
    d.lines("Throughput", "Samples per second of each job.",
            [(f"medley_job_throughput_samples_per_second{{{JOBS}}}", "{{namespace}}/{{job}}")], "short", low=0)
    d.lines("Jobs by phase", "TrainingJobs of all namespaces that the leading operator manages.",
            [("sum by (phase) (medley_operator_jobs) > 0", "{{phase}}")], "none", stack=True, low=0, step=True)
    d.row("Moves")
    d.lines("Other plans considered", "Decisions after a change of a price, the capacity or a goal. With Saves and Forced the job moves, with "
            "the others it stays.",
            [("sum by (decision) (increase(medley_operator_replans_total[$__rate_interval]))", "{{decision}}")], "none",
            stack=True, low=0)
    d.lines("Pauses of training", "Mean pause of generation switches and recoveries.",
            [("sum by (kind) (rate(medley_job_pause_seconds_sum[$__rate_interval])) / "
              "(sum by (kind) (rate(medley_job_pause_seconds_count[$__rate_interval])) > 0)", "{{kind}}")], "s", low=0)
    d.row("Prices")
    d.lines("Age of prices", "Since each source last confirmed a price.",
            [("max by (source) (medley_price_age_seconds)", "{{source}}")], "s", width=8, low=0)
    d.lines("How far prices can be relied upon", "Entries of the catalog: static (a person wrote it), live, cached (older than its time "
            "to live), fallback (older still, with a surcharge), default (on-demand in place of spot).",
            [("max by (quality) (medley_price_entries)", "{{quality}}")], "none", width=8, stack=True, low=0, step=True)
    d.lines("Questions to sources", "By the answer: ok, unchanged, partial, or the error.",
            [("sum by (source, result) (rate(medley_price_fetch_total[$__rate_interval]))", "{{source}} {{result}}")],
            "reqps", width=8, low=0)
    return d
