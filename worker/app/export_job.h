// How the coordinator writes the finished model of its job: what it knows of the job, as a request to worker/export.
#pragma once

#include <string>

#include "worker/app/environment.h"
#include "worker/coordinator/server/server.h"
#include "worker/export/write_export.h"
#include "worker/model/graph.h"

namespace medley::worker {

inline constexpr char kExportFolder[] = "export";  // in the job's checkpoint folder

// Errors: FailedPrecondition (the transform does not fit the schema), those of the job's data source.
absl::StatusOr<ExportRequest> MakeExportRequest(const Environment& env, const Graph& graph,
                                                const CheckpointManifest& checkpoint, const ExportCommand& order);

// `instance` is unique for this process: two coordinators may write at once, of which one publishes.
ExportModel ExporterOf(const Environment& env, const Graph& graph, std::string instance);

}  // namespace medley::worker
