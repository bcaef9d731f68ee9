// Training that begins with the weights of an exported model (spec.model.initialFrom) instead of random ones. Optimizer
// state, step and samples begin at zero.
//
// The weights are mapped into memory, not copied: a row of a table is read when the table is asked for it first. The
// parameters keep the mapping. Functions are thread-safe; they read files and keep no state.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <vector>

#include "common/model/job_spec.h"
#include "worker/model/graph.h"

namespace medley::worker {

enum class InitialParts { kAll, kTables };

// Gives the parameters of `graph`, which was built for `spec`, the weights of the export that spec.model.initialFrom
// names below `root`; changes nothing when it names none. `classes`: of the label, in the order of their numbers; none:
// not known, so not compared. kTables: only those with rows, which do not depend on the classes.
//
// Errors: InvalidArgument, a sentence for users: the folder is no export, or which fields differ, with the value of the
// export and that of the job.
absl::Status UseInitialWeights(const model::JobSpec& spec, const std::string& root,
                               const std::vector<std::string>& classes, InitialParts parts, Graph& graph);

}  // namespace medley::worker
