// Reads the parts of a TrainingJob's spec that are as the schema says. The functions are made (cmake/job_fields.py). A
// value of a wrong type is recorded in the reader. Used by the parser of job_spec.h.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "common/document/reader.h"
#include "common/model/job_fields.h"

namespace medley::model {

using document::Reader;

void ReadModelSpec(const Reader& reader, ModelSpec& out);
void ReadTrainingSpec(const Reader& reader, TrainingSpec& out);
void ReadCheckpointSpec(const Reader& reader, CheckpointSpec& out);

// A duration, in seconds. `out` keeps its value when the field is absent.
void ReadSeconds(const Reader& reader, std::string_view field, double& out);

// A number of bytes such as 2Gi. `out` keeps its value when the field is absent.
void ReadBytes(const Reader& reader, std::string_view field, double& out);

// Adds the numbers of an object, by their names.
void ReadNumbers(const Reader& reader, std::string_view field, std::map<std::string, double>& out);

}  // namespace medley::model
