// The parts of model.json and schema.json that only models from PyTorch have. Pure.
#pragma once

#include <absl/status/status.h>

#include "common/document/reader.h"
#include "worker/export/exported_model.h"

namespace medley::worker {

// schema.json: the named inputs, and the arrays that the data are. Errors: InvalidArgument naming the field.
absl::Status ReadInputs(const document::Reader& root, ExportedModel& model);

// model.json: which program computes it. Its layers have been read. Errors: InvalidArgument naming the field.
absl::Status ReadProgram(const document::Reader& root, ExportedModel& model);

}  // namespace medley::worker
