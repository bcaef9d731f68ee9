"""One job: is it fast enough, what does it cost, what holds it up."""
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
    d.gauge("Progress", "Share of the samples that is trained.", f"medley_job_progress_ratio{{{JOB}}}", "percentunit", 0, 1,
            [(None, "blue")])
    d.gauge("Goal attained", "Measured throughput over spec.objective.minThroughput.",
            f"medley_job_throughput_samples_per_second{{{JOB}}} / medley_job_goal_samples_per_second{{{JOB}}}",
            "percentunit", 0, 1.5, [(None, "red"), (0.95, "green")])
    d.stat("Remaining", "Until the last sample, at the throughput of now.", f"medley_job_remaining_seconds{{{JOB}}}", "s",
           decimals=0)
    d.stat("Spent", "Units held times the prices paid, since the start.", f"medley_job_cost_usd_total{{{JOB}}}", "currencyUSD",
           decimals=4)
    d.stat("Saved by moving", "Against the first plan for the same samples; negative: moving cost more.",
           f"medley_job_saved_usd{{{JOB}}}", "currencyUSD", decimals=4, thresholds=[(None, "red"), (0, "green")])
    d.table("Plan", "Layers of each stage, units and pools of the plan that was accepted last.",
            [(f"medley_job_plan_info{{{JOB}}}", None, "none")], width=24, height=4,
            hide=("namespace", "job", "instance", "pod", "container", "endpoint", "service", "prometheus"))
    d.row("Speed")
    d.lines("Throughput", "Measured; dashed: the goal, and what the plan was chosen for.",
            [(f"medley_job_throughput_samples_per_second{{{JOB}}}", "measured"),
             (f"medley_job_goal_samples_per_second{{{JOB}}}", "goal"),
             (f"medley_job_predicted_samples_per_second{{{JOB}}}", "predicted")], "short", low=0,
            dashed=[("goal", "red"), ("predicted", "yellow")])
    d.lines("Measured over predicted", "1: the plan's prediction was right.",
            [(f"medley_job_throughput_samples_per_second{{{JOB}}} / medley_job_predicted_samples_per_second{{{JOB}}}", "throughput")],
            "percentunit", low=0)
    d.lines("Loss", "Mean of the last steps.", [(f"medley_job_loss{{{JOB}}}", "loss")], "none")
    d.lines("Samples", "Trained, and to train in all.",
            [(f"medley_job_samples_total{{{JOB}}}", "trained"), (f"medley_job_target_samples{{{JOB}}}", "all")], "short", low=0,
            dashed=[("all", "blue")])
    d.row("Money")
    d.lines("Price per hour", "Units of the plan by pool; dashed: spec.objective.maxUsdPerHour.",
            [(f"medley_job_usd_per_hour{{{JOB}}}", "{{pool}}"), (f"medley_job_max_usd_per_hour{{{JOB}}}", "limit")], "currencyUSD",
            width=8, low=0, step=True, dashed=[("limit", "red")])
    d.lines("Spent", "Since the start; dashed: spec.objective.budgetUsd.",
            [(f"medley_job_cost_usd_total{{{JOB}}}", "spent"), (f"medley_job_budget_usd{{{JOB}}}", "budget")], "currencyUSD", width=8,
            low=0, dashed=[("budget", "red")])
    d.lines("Cost of a million samples", "At the price of now: by the throughput that was predicted, and by the one measured.",
            [(f"sum(medley_job_usd_per_hour{{{JOB}}}) / 3600 / sum(medley_job_predicted_samples_per_second{{{JOB}}}) * 1e6", "predicted"),
             (f"sum(medley_job_usd_per_hour{{{JOB}}}) / 3600 / (sum(medley_job_throughput_samples_per_second{{{JOB}}}) > 0) * 1e6",
              "measured")], "currencyUSD", width=8, low=0, dashed=[("predicted", "yellow")])
    d.row("Stages")
    d.lines("Computation per step", "Of each stage; the longest holds up all others.",
            [(f"medley_job_stage_compute_seconds{{{JOB}}}", "stage {{stage}} on {{pool}}")], "s", width=8, low=0)
    d.lines("Waiting per step", "For activations, gradients, parameter rows and reduction.",
            [(f"medley_job_stage_communication_seconds{{{JOB}}}", "stage {{stage}} on {{pool}}")], "s", width=8, low=0)
    d.lines("Stages: predicted against measured", "Samples per second that a stage's computation alone allows, over what the plan "
            "expects of it; under 1: its machines are slower than when they were measured.",
            [(f"medley_job_stage_throughput_samples_per_second{{{JOB}}} / "
              f"medley_job_stage_predicted_samples_per_second{{{JOB}}}", "stage {{stage}} on {{pool}}")], "percentunit", width=8, low=0)
    d.lines("Units", "Of each stage, and of the parameter servers.",
            [(f'medley_job_units{{{JOB}, role="trainer"}}', "stage {{stage}} on {{pool}}"),
             (f'medley_job_units{{{JOB}, role="server"}}', "servers on {{pool}}")], "none", stack=True, low=0, step=True)
    d.lines("Generations", "The runtime's generation, and the generation of the accepted plan: apart while a move is under way.",
            [(f"medley_job_generation{{{JOB}}}", "in force"), (f"medley_job_plan_generation{{{JOB}}}", "plan")], "none", step=True, fill=0)
    d.row("Trouble")
    d.stat("Restarts", "Of the whole job, from its last checkpoint.", f"medley_job_restarts_total{{{JOB}}}", "none",
           thresholds=[(None, "green"), (1, "yellow"), (4, "red")])
    d.stat("Moves", "Generation switches that were planned, since the operator started.",
           f'medley_job_pause_seconds_count{{{JOB}, kind="rescale"}}', "none")
    d.stat("Recoveries", "Generation switches after a loss, since the operator started.",
           f'medley_job_pause_seconds_count{{{JOB}, kind="recovery"}}', "none", thresholds=[(None, "green"), (1, "yellow")])
    d.stat("Training stood still", "For all moves and recoveries together, since the operator started.",
           f"sum(medley_job_pause_seconds_sum{{{JOB}}})", "s", decimals=2)
    d.stat("Steps trained again", "After recoveries.", f"medley_job_lost_steps_total{{{JOB}}}", "none",
           thresholds=[(None, "green"), (1, "yellow")])
    d.stat("Steps since the checkpoint", "What a loss of all trainers would cost.",
           f"medley_job_committed_step{{{JOB}}} - medley_job_checkpoint_step{{{JOB}}}", "none")
    d.stat("Bad rows", "Rows of the data that were refused.", f"medley_job_bad_rows{{{JOB}}}", "none",
           thresholds=[(None, "green"), (1, "yellow")])
    d.stat("Missing members", "Places of the plan whose pod is not there.", f"medley_job_missing_members{{{JOB}}}", "none",
           thresholds=[(None, "green"), (1, "red")])
    d.stat("Since the last progress", "Since samples were last trained for the first time.",
           f"time() - medley_job_last_progress_timestamp_seconds{{{JOB}}}", "s", decimals=0,
           thresholds=[(None, "green"), (60, "yellow"), (600, "red")])
    d.table("Conditions", "Status and reason of each condition; kubectl describe mtj has the sentences.",
            [(f"max by (condition, status, reason) (medley_job_condition{{{JOB}}})", None, "none")], width=12, height=8)
    d.bars("Results on the test data", "Once the job has been evaluated.", [(f"medley_job_score{{{JOB}}}", "{{score}}")], "none")
    return d
