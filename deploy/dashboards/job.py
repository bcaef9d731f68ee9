"""The dashboard of one job: is it fast enough, what does it cost, which stage is slow?"""
from panels import Dashboard, datasource, variable

JOB = 'namespace="$namespace", job="$job"'


def make():
    d = Dashboard("medley-job", "Medley / Job",
                  "One TrainingJob: throughput against goal and prediction, money, stages, moves and recoveries.",
                  [datasource(),
                   variable("namespace", "Namespace", "Of the job", "label_values(medley_job_phase, namespace)", many=False),
                   variable("job", "Job", "Name of the TrainingJob",
                            'label_values(medley_job_phase{namespace="$namespace"}, job)', many=False)],
                  refresh="10s", time_from="now-1h")
    d.row("Now")
    d.stat("Phase", "Phase of the job, as kubectl get mtj shows it.", (f"medley_job_phase{{{JOB}}}", "{{phase}}"), "none",
           text=True)
    d.gauge("Progress", "Share of the samples that have been trained.", f"medley_job_progress_ratio{{{JOB}}}", "percentunit", 0, 1,
            [(None, "blue")])
    d.gauge("Goal attained", "Measured throughput over spec.objective.minThroughput.",
            f"medley_job_throughput_samples_per_second{{{JOB}}} / medley_job_goal_samples_per_second{{{JOB}}}",
            "percentunit", 0, 1.5, [(None, "red"), (0.95, "green")])
    d.stat("Remaining", "Time until the last sample, at the present throughput.", f"medley_job_remaining_seconds{{{JOB}}}", "s",
           decimals=0)
    d.stat("Spent", "What all pods of the job have cost, since the start.", f"medley_job_cost_usd_total{{{JOB}}}", "currencyUSD",
           decimals=4)
    d.stat("Saved by moving", "Compared with the first plan for the same samples. A negative value means that moves cost more than they saved.",
           f"medley_job_saved_usd{{{JOB}}}", "currencyUSD", decimals=4, thresholds=[(None, "red"), (0, "green")])
    d.table("Plan", "Layers of each stage, units and pools of the plan that was last accepted.",
            [(f"medley_job_plan_info{{{JOB}}}", None, "none")], width=24, height=4,
            hide=("namespace", "job", "instance", "pod", "container", "endpoint", "service", "prometheus"))
    d.row("Speed")
    d.lines("Throughput", "Measured throughput. Dashed: the goal and the prediction of the plan.",
            [(f"medley_job_throughput_samples_per_second{{{JOB}}}", "measured"),
             (f"medley_job_goal_samples_per_second{{{JOB}}}", "goal"),
             (f"medley_job_predicted_samples_per_second{{{JOB}}}", "predicted")], "short", low=0,
            dashed=[("goal", "red"), ("predicted", "yellow")])
    d.lines("Measured over predicted", "1 means that the prediction of the plan was right.",
            [(f"medley_job_throughput_samples_per_second{{{JOB}}} / medley_job_predicted_samples_per_second{{{JOB}}}", "throughput")],
            "percentunit", low=0)
    d.lines("Loss", "Mean loss of the last steps.", [(f"medley_job_loss{{{JOB}}}", "loss")], "none")
    d.lines("Samples", "Trained samples, and all samples of the job.",
            [(f"medley_job_samples_total{{{JOB}}}", "trained"), (f"medley_job_target_samples{{{JOB}}}", "all")], "short", low=0,
            dashed=[("all", "blue")])
    d.row("Learning curve")
    d.lines("Training and validation loss", "Of each evaluation: the log loss on the test data, and the mean training loss since the "
            "evaluation before. A validation loss that rises while the training loss falls tells of overfitting.",
            [(f"medley_job_evaluation_training_loss{{{JOB}}}", "training"),
             (f'medley_job_score{{{JOB}, score=~"logLoss|cross_entropy|mse|mae"}}', "validation {{score}}")], "none", width=8, step=True, fill=0)
    d.lines("Validation metrics", "Quality on the test data at each evaluation.",
            [(f'medley_job_score{{{JOB}, score!~"logLoss|cross_entropy|mse|mae|test_samples"}}', "{{score}}")], "none", width=8, step=True, fill=0)
    d.lines("Evaluated epochs", "Passes over the training data that were complete at the last evaluation: the epoch of a point beside.",
            [(f"medley_job_evaluation_epochs{{{JOB}}}", "epochs")], "none", width=8, low=0, step=True, fill=0)
    d.row("Money")
    d.lines("Price per hour", "Price of the plan's units by pool. Dashed: spec.objective.maxUsdPerHour.",
            [(f"medley_job_usd_per_hour{{{JOB}}}", "{{pool}}"), (f"medley_job_max_usd_per_hour{{{JOB}}}", "limit")], "currencyUSD",
            width=8, low=0, step=True, dashed=[("limit", "red")])
    d.lines("Spent", "Cost since the start. Dashed: spec.objective.budgetUsd.",
            [(f"medley_job_cost_usd_total{{{JOB}}}", "spent"), (f"medley_job_budget_usd{{{JOB}}}", "budget")], "currencyUSD", width=8,
            low=0, dashed=[("budget", "red")])
    d.lines("Cost of a million samples", "At the present price, by the predicted and by the measured throughput.",
            [(f"sum(medley_job_usd_per_hour{{{JOB}}}) / 3600 / sum(medley_job_predicted_samples_per_second{{{JOB}}}) * 1e6", "predicted"),
             (f"sum(medley_job_usd_per_hour{{{JOB}}}) / 3600 / (sum(medley_job_throughput_samples_per_second{{{JOB}}}) > 0) * 1e6",
              "measured")], "currencyUSD", width=8, low=0, dashed=[("predicted", "yellow")])
    d.lines("What the money was for", "Each paid unit-second belongs to one category; together they are what the job has cost. "
            "medley explain --bill prints the same.", [(f"medley_job_bill_usd{{{JOB}}}", "{{category}}")], "currencyUSD", width=16, low=0,
            stack=True)
    d.lines("Goodput", "Share of the cost that useful training has. MedleyJobGoodputLow fires below a half.",
            [(f"medley_job_goodput_ratio{{{JOB}}}", "goodput")], "percentunit", width=8, low=0)
    d.row("Stages")
    d.lines("Computation per step", "Computation time of each stage. The slowest stage limits all others.",
            [(f"medley_job_stage_compute_seconds{{{JOB}}}", "stage {{stage}} on {{pool}}")], "s", width=8, low=0)
    d.lines("Waiting per step", "Time for which each stage waits for activations, gradients, parameter rows and reduction.",
            [(f"medley_job_stage_communication_seconds{{{JOB}}}", "stage {{stage}} on {{pool}}")], "s", width=8, low=0)
    d.lines("Stages: predicted against measured", "Throughput that the measured computation of a stage allows, over its predicted "
            "throughput. Below 1 the machines are slower than when they were measured.",
            [(f"medley_job_stage_throughput_samples_per_second{{{JOB}}} / "
              f"medley_job_stage_predicted_samples_per_second{{{JOB}}}", "stage {{stage}} on {{pool}}")], "percentunit", width=8, low=0)
    d.lines("Units", "Units of each stage and of the parameter servers.",
            [(f'medley_job_units{{{JOB}, role="trainer"}}', "stage {{stage}} on {{pool}}"),
             (f'medley_job_units{{{JOB}, role="server"}}', "servers on {{pool}}")], "none", stack=True, low=0, step=True)
    d.lines("Generations", "The generation in force and that of the accepted plan. They differ while the job moves.",
            [(f"medley_job_generation{{{JOB}}}", "in force"), (f"medley_job_plan_generation{{{JOB}}}", "plan")], "none", step=True, fill=0)
    d.row("Synchronisation")
    d.lines("Synchronisation over computation", "Of replicas that average in some steps only (training.sync). The mode Flexible keeps it "
            "near its target.", [(f"medley_job_synchronisation_ratio{{{JOB}}}", "ratio")], "percentunit", width=8, low=0)
    d.lines("Steps that agree", "Share of the steps after which replicas average their parameters, in force.",
            [(f"medley_job_agreement_fraction{{{JOB}}}", "fraction")], "percentunit", width=8, low=0, step=True)
    d.lines("Staleness and slow trainers", "Steps by which a gradient is late at most (asynchronous schedules), and slow trainers that stand by.",
            [(f"medley_job_staleness_steps{{{JOB}}}", "steps late"), (f"medley_job_left_out_members{{{JOB}}}", "standing by")], "none",
            width=8, low=0, step=True, fill=0)
    d.row("Rows of embedding tables")
    pulled = "medley_job_embedding_pulled_rows_total"
    d.lines("Rows found", "Of the rows that pulls find, the share in memory, read from the disk ahead of the pull, and read while it waited. "
            "Only with training.embeddings.memoryBudget.",
            [(f"sum by (found) (rate({pulled}{{{JOB}}}[$__rate_interval])) / ignoring (found) group_left sum(rate({pulled}{{{JOB}}}[$__rate_interval]))", "{{found}}")],
            "percentunit", width=8, low=0)
    d.lines("Rows that move", "Rows that move to memory and to the disk.",
            [(f"rate(medley_job_embedding_moved_rows_total{{{JOB}}}[$__rate_interval])", "to {{to}}"),
             (f"rate(medley_job_embedding_disk_wait_seconds_total{{{JOB}}}[$__rate_interval])", "seconds of waiting")], "none", width=8, low=0)
    d.lines("Bytes of rows", "Rows in memory, and files of rows on the disks.",
            [(f"medley_job_embedding_row_bytes{{{JOB}}}", "{{place}}")], "bytes", width=8, low=0)
    d.row("Rows on GPUs")
    used = "medley_job_embedding_device_rows_total"
    d.lines("Rows found on the GPU", "Of the rows that steps used, the share that was in the GPU's memory: all of whole tables, and of a cache "
            "those that are used often.",
            [(f'sum(rate({used}{{{JOB}, found="device"}}[$__rate_interval])) / sum(rate({used}{{{JOB}}}[$__rate_interval]))', "on the GPU")],
            "percentunit", width=12, low=0)
    d.lines("Bytes of rows copied", "Bytes of rows, their optimizer state or their gradients that are copied to GPUs and back.",
            [(f"rate(medley_job_embedding_device_bytes_total{{{JOB}}}[$__rate_interval])", "to the {{to}}")], "Bps", width=12, low=0)
    d.row("Restarts and recoveries")
    d.stat("Restarts", "Restarts of the whole job from its last checkpoint.", f"medley_job_restarts_total{{{JOB}}}", "none",
           thresholds=[(None, "green"), (1, "yellow"), (4, "red")])
    d.stat("Moves", "Planned generation switches since the operator started.",
           f'medley_job_pause_seconds_count{{{JOB}, kind="rescale"}}', "none")
    d.stat("Recoveries", "Generation switches after a loss, since the operator started.",
           f'medley_job_pause_seconds_count{{{JOB}, kind="recovery"}}', "none", thresholds=[(None, "green"), (1, "yellow")])
    d.stat("Training paused", "Sum of the pauses for all moves and recoveries, since the operator started.",
           f"sum(medley_job_pause_seconds_sum{{{JOB}}})", "s", decimals=2)
    d.stat("Steps trained again", "Steps that were trained again after recoveries.", f"medley_job_lost_steps_total{{{JOB}}}", "none",
           thresholds=[(None, "green"), (1, "yellow")])
    d.stat("Steps since the checkpoint", "Steps that would be trained again if all trainers were lost.",
           f"medley_job_committed_step{{{JOB}}} - medley_job_checkpoint_step{{{JOB}}}", "none")
    d.stat("Bad rows", "Rows of the data that were skipped as unreadable.", f"medley_job_bad_rows{{{JOB}}}", "none",
           thresholds=[(None, "green"), (1, "yellow")])
    d.stat("Missing members", "Slots of the plan without a pod.", f"medley_job_missing_members{{{JOB}}}", "none",
           thresholds=[(None, "green"), (1, "red")])
    d.stat("Since the last progress", "Time since a new sample was last trained.",
           f"time() - medley_job_last_progress_timestamp_seconds{{{JOB}}}", "s", decimals=0,
           thresholds=[(None, "green"), (60, "yellow"), (600, "red")])
    d.table("Conditions", "Status and reason of each condition; kubectl describe mtj shows the messages.",
            [(f"max by (condition, status, reason) (medley_job_condition{{{JOB}}})", None, "none")], width=12, height=8)
    d.bars("Results on the test data", "Quality on the test data, after the evaluation.", [(f"medley_job_score{{{JOB}}}", "{{score}}")], "none")
    return d
