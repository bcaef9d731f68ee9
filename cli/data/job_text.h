// Writes a job file with comments for `medley run`: what `medley init` prints. Pure.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/data/guess.h"
#include "cli/data/label_guess.h"

namespace medley::cli {

struct JobInput {
  std::string file;              // the job file, for comments
  std::string name;              // of the job; JobNameOf a file
  std::filesystem::path folder;  // of the data, as the job file should spell it; empty: they are in an object store
  std::string train;             // path below `folder`, or an address
  std::optional<std::string> test;
  std::optional<std::string> validation;  // path below `folder`; or:
  double validation_fraction = 0;         // of the rows of `train`; 0: none
  int64_t rows = 0;                       // of the training data, estimated
  int64_t sample_rows = 0;                // that were looked at
  int64_t bad_rows = 0;                   // of these
  std::string format = "csv";             // of `train`: a name of common/model/data_format.h
  std::string test_format;                // empty: that of `train`
  std::string validation_format;
  int cpus = 1;  // of this machine
  int64_t memory_bytes = 0;
};

// The result holds one ResourcePool and one TrainingJob.
std::string JobText(const JobInput& input, const TableGuess& table, const LabelGuess& label);

// The part of a table with so many rows that is put aside for validation: enough to compare models, and few enough
// to be missed little. 0: so few rows that none can be spared.
double ValidationFraction(int64_t rows);

// "Churn Data (2).csv" -> "churn-data-2": the name of a file as that of a job.
std::string JobNameOf(const std::filesystem::path& file);

}  // namespace medley::cli
