// The program of an export of a model from PyTorch, and the archive that becomes it. Thread-safe.
//
// The archive has the weights before the training, and buffers that training does not change; the weights of the
// training are in the safetensors file. It may come from anybody: nothing of it is executed here.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "common/model/job_spec.h"
#include "worker/export/read_export.h"
#include "worker/export/write_export.h"

namespace medley::worker {

struct LoadedProgram {
  Graph graph;      // one operation, then the loss; without tables
  Weights weights;  // its parameters, by name
};

// Errors: those of exported::ReadArchive, ImportedGraph and ReadWeights; InvalidArgument for a program that has not as
// many outputs as model.json says.
absl::StatusOr<LoadedProgram> ReadExportedProgram(const LoadedModel& model);

// The archive of a job's model: the file of spec.model.exported, or what spec.model.torchScript is lowered to. `root`:
// a prefix of the path. Errors: those of the file system and of torchscript::LowerTorchScript.
absl::StatusOr<ProgramBytes> ReadProgramBytes(const model::JobSpec& spec, const std::string& root);

}  // namespace medley::worker
