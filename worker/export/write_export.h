// Writes the finished model of a job as a folder that states itself: docs/use/model.md describes the files.
//
// Stateless and thread-safe. The weights are copied from a complete checkpoint piece by piece, so memory is bounded by
// the largest dense parameter, whatever the size of the tables.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>

#include <memory>
#include <string>
#include <string_view>

#include "worker/checkpoint/files.h"
#include "worker/checkpoint/layout.h"
#include "worker/export/exported_model.h"
#include "worker/export/model_card.h"

namespace medley::worker {

// The archive of a model from PyTorch as torch.export.save writes it, with the weights before the training.
struct ProgramBytes {
  std::shared_ptr<const void> owner;
  std::string_view bytes;  // empty: the model is Medley's own
};

struct ExportRequest {
  CheckpointManifest checkpoint;
  ExportedModel model;
  ModelCard card;
  ProgramBytes program;
  uint64_t seed = 0;           // of the job: rows that no sample has used are not in the checkpoint
  std::string log;             // of the coordinator; empty: none
  std::string folder;          // relative to the volume; replaced when it exists
  std::string temporary_name;  // of the unfinished folder, beside `folder`, also with "old-" before it; of this process
};

// Writes into a temporary folder, calls `may_publish`, and renames it. A process that is killed leaves its temporary
// folders, and the old export, the new one, or between two renames none. Errors: DataLoss
// (the checkpoint lacks a parameter, or is damaged), those of `may_publish` and of the file system.
absl::Status WriteExport(const Volume& volume, const ExportRequest& request,
                         absl::FunctionRef<absl::Status()> may_publish);

}  // namespace medley::worker
