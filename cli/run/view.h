// Formats a run as text: lines for pipes and logs, frames for terminals. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/format.h"
#include "cli/run/snapshot.h"
#include "cli/screen.h"

namespace medley::cli {

// The plan, its stages and the plans on a single pool, as a table.
std::vector<std::string> PlanTable(const ops::PlanStatus& plan);

// "  37 %  36,352 of 97,683 samples  5,312 samples/s  loss 0.3312  0.0004 USD"
std::string ProgressLine(const Snapshot& view);

// "epoch 3, step 192: accuracy 0.8601, auc 0.9012, logLoss 0.3012; training loss 0.3123"
std::string CurveLine(const ops::EvaluationStatus& evaluation);
// The last `most` evaluations as a table; empty when there are none.
std::vector<std::string> CurveTable(const std::vector<ops::EvaluationStatus>& evaluations, size_t most);

// " (2400 ms of it from the program's start to its first step)"; empty: the job is not of a program.
std::string OfStart(const ops::RescaleStatus& move);

// A frame of at most `width` columns: phase, plan, pools with prices, learning curve, progress bar, the
// last messages.
std::vector<std::string> Frame(const Snapshot& view, const std::vector<std::string>& messages, double seconds,
                               int width);

}  // namespace medley::cli
