// The jobs of examples/zoo. For tests.
#pragma once

#include <string>
#include <vector>

#include "common/model/job_spec.h"

namespace medley::worker::testing {

// The repository.
std::string SourceFolder();

// The names of the files, without .yaml.
std::vector<std::string> ZooNames();

// The TrainingJob of a file, with the data of examples/data.
model::JobSpec ZooJob(const std::string& name);

}  // namespace medley::worker::testing
