// The README.md of an export: what the model was trained on, how good it is, and what it cost. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/model/job_spec.h"
#include "worker/export/exported_model.h"

namespace medley::worker {

struct ModelCard {
  ExportOrigin origin;
  model::JobSpec spec;
  int64_t rows = 0;      // of the training data
  int64_t bad_rows = 0;  // that could not be parsed and were left out
  // For the test data or, without these, of the validation data, with the number of samples; empty: there are neither.
  std::map<std::string, double> metrics;
  std::string chosen;                       // a sentence: which of the models this one is, and why; may be empty
  std::map<std::string, double> chosen_by;  // the metrics of the evaluation that chose it, if those are others
  double usd = 0;                           // for the units of trainers and servers
  std::vector<std::string> plan;            // one line for each group of units, in the order of the stages
  std::string finished;                     // RFC 3339
  bool has_log = false;                     // the folder has the log of the training
};

std::string Markdown(const ModelCard& card, const ExportedModel& model);

}  // namespace medley::worker
