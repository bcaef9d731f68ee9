"""Where the C++ of a TrainingJob's spec differs from the schema: which structs there are, and names, types and meanings that do not
follow from the schema. The tables of job_fields.py; paths are those of the spec.
"""

# struct -> the object that it is, what the struct is for, and objects below whose fields are members of it too. A struct that
# another holds comes before it. Several objects of one struct have the same fields.
STRUCTS = {
    "LayerSpec": ("model.layers[]", "One layer of spec.model.layers.", []),
    "CutSpec": ("model.cut", "How a model from PyTorch is divided into operations: worker/cut/cut.h.", []),
    "ModelSpec": ("model", "What is trained.", ["parameters", "exported", "torchScript"]),
    "EvaluationSpec": ("training.evaluation",
                       "When models are evaluated before the end of the training: exactly one number is above 0.", []),
    "EarlyStoppingSpec": ("training.earlyStopping", "Training stops when the metric has not improved by more than min_delta "
                          "in `patience` evaluations in a row.", []),
    "ClassWeightsSpec": ("training.classWeights",
                         "Factors of the losses of samples by their class. Evaluations count every sample once.", []),
    "ScheduleSpec": ("training.optimizer.schedule",
                     "How the learning rate changes with the number of the step (worker/params/rate_schedule.h).", []),
    "EmbeddingsSpec": ("training.embeddings",
                       "Which keys of embedding tables have rows (worker/params/row_lifetime.h), and where rows are.", []),
    "TrainingSpec": ("training", "How it is trained.", ["optimizer"]),
    "ProgramSpec": ("program", "A program that Medley starts instead of training a model itself.",
                    ["progress", "checkpoint", "done", "scaling"]),
    "CheckpointSpec": ("checkpoint", "When and where checkpoints are saved.", ["volume"]),
    "SourceSpec": (("data.train", "data.test"), "Files of samples.", []),
    "InputSpec": ("data.inputs[]", "One argument of a model from PyTorch, and where its numbers come from.", []),
    "SchemaSpec": ("data.schema", "The columns of the data, as they are meant: ranges and dates are spelled out. Column indices count "
                   "from 0; that of a named column is -1 until a header is read (worker/data/columns.h).", ["label"]),
    "ValidationSpec": ("data.validation", "Samples that choose the best model and stop the training early.", []),
    "DataSpec": ("data", "Where samples come from, and what they mean.", ["shuffle"]),
    "Objective": ("objective", "What a plan minimises, and the bounds that it must keep. A bound that the user did not set is 0.", []),
    "PlannerChoice": ("planner", "Who plans, and how stages work together.", ["parallelism"]),
    "Elasticity": ("elasticity", "When and how the plan may change while the job runs.", ["replan"]),
    "RunPolicy": ("runPolicy", "How the job starts, pauses and ends.", ["disruptionBudget", "schedulingPolicy"]),
}

# file -> its folder, its namespace, what it is for, what it includes, and its structs.
FILES = {
    "job_fields": ("common/model", "medley::model", "The parts of a TrainingJob's spec that are as the schema says, but its data.", [],
                   ["LayerSpec", "CutSpec", "ModelSpec", "EvaluationSpec", "EarlyStoppingSpec", "ClassWeightsSpec", "ScheduleSpec",
                    "EmbeddingsSpec", "TrainingSpec", "ProgramSpec", "CheckpointSpec"]),
    "data_fields": ("common/model", "medley::model", "The parts of a TrainingJob's spec.data.",
                    ["common/model/columns.h", "common/model/task.h"],
                    ["SourceSpec", "InputSpec", "SchemaSpec", "ValidationSpec", "DataSpec"]),
    "job_policies": ("operator/api", "medley::ops", "What only the operator reads of a TrainingJob's spec.",
                     ["common/model/synchronisation.h"],
                     ["Objective", "PlannerChoice", "Elasticity", "RunPolicy"]),
}

# Fields that are no member of these structs, and why.
SKIPPED = {
    "model.task": "it says how labels are read: SchemaSpec::task",
    "training.sync": "the operator reads it into a plan: PlannerChoice::sync",
    "program.scaling.measure": "the operator tells profilers what to measure: TrainedProgram::measures_sizes",
    "checkpoint.volume.hostPath": "pods see only the path at which it is mounted",
    **{f"checkpoint.volume.{kind}": "refused" for kind in
       ("emptyDir", "ephemeral", "gitRepo", "configMap", "secret", "downwardAPI", "projected", "image")},
    "data.volume": "as the one of checkpoints: TrainingJob::data_volume",
    "data.schema.dates": "each is several numeric columns: SchemaSpec::parts",
    "objective.minimize": "with objective.fastest, it is Objective::fastest and least_usd_per_hour",
    "objective.fastest": "as objective.minimize",
    "planner.parallelism.schedule": "a name of the plan's messages: PlannerChoice::schedule",
}

# Members of a struct that are fields of another object. The struct that holds it reads them into it.
MOVED = {"data.inputs": "SchemaSpec", "data.weight": "SchemaSpec"}
# Fields that a struct has as a member of another struct's type.
WITHIN = {"ValidationSpec": ("SourceSpec", "source")}
# Structs that an absent object is too, by the defaults of its fields. As those that the schema requires.
PRESENT = {"model.cut", "data.schema"}

# Members that follow from several fields: their declarations, and what they are. Code sets them after the fields are read.
DERIVED = {
    "SchemaSpec": [
        ("Task task = Task::kBinary", "spec.model.task: how labels are read."),
        ("std::vector<ColumnPart> parts", "For each numeric column; empty: all are numbers. The columns of schema.dates are in "
         "`numeric` once for each part."),
        ("std::vector<bool> whole_numbers", "Which columns of `categorical` hold whole numbers that are taken as they are, of inputs. "
         "Empty: all are hashed."),
        ("ColumnNames names", "Of the columns that have names.")],
    "Objective": [
        ("bool fastest = false", "The fewest seconds to the end within the bounds, instead of the least USD."),
        ("bool least_usd_per_hour = false", "Instead of the least USD; not with fastest.")],
    "PlannerChoice": [
        ("model::ScheduleKind schedule = model::ScheduleKind::kSync1F1B", "spec.planner.parallelism.schedule."),
        ("model::Synchronisation sync", "spec.training.sync.")],
}

# Members whose names are not those of the fields.
NAMES = {
    "model.exported.uri": "exported_uri",
    "model.torchScript.uri": "torchscript_uri",
    "training.optimizer.name": "optimizer",
    "checkpoint.interval": "interval_seconds",
    "program.hangTimeout": "hang_seconds",
    "program.progress.log": "progress_log",
    "program.progress.endpoint": "progress_endpoint",
    "program.progress.tensorBoard": "progress_tensor_board",
    "program.checkpoint.signal": "save_signal",
    "program.checkpoint.deadline": "save_seconds",
    "program.checkpoint.done.file": "saved_file",
    "program.scaling.units": "legal_units",
    "checkpoint.volume.mountPath": "path",
    "data.inputs[].std": "deviation",
    **{f"data.schema.label.{field}": f"label_{field}" for field in
       ("column", "columns", "positive", "classes", "count", "storage")},
    "data.schema.label.transform": "label_log",
    "data.weight": "weight_column",
    "data.shuffle.window": "shuffle_window",
    "objective.deadline": "deadline_seconds",
    "planner.timeBudget": "time_budget_seconds",
    "elasticity.replan.cooldown": "cooldown_seconds",
    "runPolicy.disruptionBudget.enabled": "disruption_budget",
}

# Members of another type than the schema's.
TYPES = {"training.seed": "uint64_t", "data.validation.seed": "uint64_t", "runPolicy.ttlSecondsAfterFinished": "int64_t"}

# Enumerations that are enumerations of C++ too, and those that are whether the value is this one.
ENUMS = {"runPolicy.cleanPodPolicy": "CleanPodPolicy", "runPolicy.schedulingPolicy.podGroup": "PodGroupChoice"}
FLAGS = {"data.schema.label.transform": "Log1p"}

# Columns, which are numbers or names of a header: where their names are.
COLUMN_NAMES = {
    "data.inputs[].columns": "column_names",
    "data.schema.label.column": "names.label",
    "data.schema.label.columns": "names.labels",
    "data.schema.categorical": "names.categorical",
    "data.schema.numeric": "names.numeric",
    "data.weight": "names.weight",
}

# Bounds that code counts by: where the schema has them, as the keyword or, where no keyword can say it, in the field's text.
CONSTANTS = {
    "kMostClasses": ("data.schema.label.classes", "maxItems",
                     "The most classes of kMultiClass, named or found in the data."),
    "kMostColumns": ("data.schema.numeric", r"at most (\d+) columns",
                     "The most columns of one list of a schema, after ranges and dates are spelled out."),
}

# What an absent field means where the schema cannot have a default, because its rules refuse the field in some jobs.
ABSENT = {
    "model.task": "binary",
    "model.loss": "mse",
    "model.parameters.hidden": [400, 400, 400],
    "model.parameters.dropout": 0,
    "model.cut.depth": 1,
    "model.layers[].numerics": True,
    "data.validation.seed": 1,
    "data.inputs[].scale": 1,
    "data.schema.dayFirst": False,
    "data.schema.label.count": 1,
    "data.schema.label.transform": "None",
    "training.optimizer.beta1": 0.9,
    "training.optimizer.beta2": 0.999,
    "training.optimizer.alpha": 0.99,
    "training.optimizer.momentum": 0,
    "training.optimizer.beta": 1,
    "training.optimizer.l1": 0,
    "training.optimizer.l2": 0,
    "training.optimizer.nesterov": False,
    "training.classWeights.balanced": False,
    "training.tensorBoard": False,
}

# Numbers whose absence code asks about, though it means one of ABSENT.
OPTIONAL = {"training.optimizer.beta1", "training.optimizer.beta2", "training.optimizer.alpha",
            "training.optimizer.momentum", "training.optimizer.beta", "training.optimizer.l1", "training.optimizer.l2"}
# Texts whose absence code asks about: they are empty then.
EMPTY = {"model.loss"}
# Numbers that are 0 when absent, where the schema or its rules allow no 0, or where 0 means no bound.
ZERO = {"model.layers[].out", "model.layers[].fraction", "model.layers[].dim", "model.layers[].first", "model.layers[].fields",
        "model.layers[].negatives", "training.evaluation.everyEpochs", "training.evaluation.everySteps",
        "training.optimizer.schedule.everySteps", "training.optimizer.schedule.steps", "training.embeddings.evictAfter",
        "training.embeddings.decaySteps", "training.embeddings.memoryBudget", "training.embeddings.diskBudget", "training.earlyStopping.patience",
        "data.validation.fraction", "objective.minThroughput", "objective.deadline", "objective.budgetUsd",
        "objective.maxUsdPerHour", "planner.parallelism.maxStaleness", "program.processesPerUnit",
        "program.samplesPerStep", "program.steps", "program.hangTimeout"}

# Functions of a struct, which a source beside the made file defines.
EQUAL = "bool operator==(const {}&) const = default;"
FUNCTIONS = {
    "ModelSpec": ["// Whether it comes from a file of PyTorch.", "bool imported() const;"],
    "SourceSpec": ["// Whether its files hold arrays.", "bool arrays() const;"],
    **{name: [EQUAL.format(name)] for name in ("Objective", "PlannerChoice", "Elasticity")},
}
# Structs with a template that calls f with each member, derived ones too: for what must not forget one.
VISITED = {"InputSpec", "SchemaSpec"}
