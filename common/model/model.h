// A model as planners see it: operations ("layers") in topological order, and their costs on each resource type.
//
// Immutable values. Sizes are in bytes, per sample where noted. Seconds are for one batch of profile_batch_size (B_o in
// the paper) on ONE unit. The symbols are those of HeterPS, section 4; see "The cost model" in docs/design/planning.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/model/table_place.h"

namespace medley::model {

// The comment of each field begins with its symbol in the paper.
struct LayerProfile {
  std::string resource_type;
  double compute_seconds = 0;   // c; forward + backward + local update
  double compute_parallel = 0;  // alpha in [0, 1]; the fraction of c that shrinks with more units
  double sync_seconds = 0;      // y; gradient or parameter synchronisation
  double transfer_seconds = 0;  // x; sending the output to the next stage and its gradient back
  double comm_parallel = 0;     // beta in [0, 1]; the fraction of y and x that shrinks with more units
  double server_seconds = 0;    // v; CPU time of parameter servers; 0 when synchronised by allreduce
  std::string origin;           // measured, analytic, calibrated or empty
  std::string measured_at;      // RFC 3339 or empty
  double spread = 0;            // relative standard deviation of compute_seconds
  double activation_bytes = 0;  // per sample, kept from the forward to the backward pass
  // The part of compute_seconds in which the processor moves data for sync_seconds.
  double sync_processor_seconds = 0;
  // compute_seconds without that part while the CPU quota of a period is not used up; 0: unknown.
  double burst_seconds = 0;
  double undivided_seconds = 0;
  // Parts of burst_seconds in [0, 1]; forward_part 0: neither was measured.
  double forward_part = 0;
  double update_part = 0;
  double undivided_parallel = 0;                        // as compute_parallel, of undivided_seconds; 0: unknown
  std::optional<TablesOnDevice> tables = std::nullopt;  // of a layer with tables, measured on a GPU
  bool operator==(const LayerProfile&) const = default;
};

struct Layer {
  std::string name;
  std::string kind;         // EMBEDDING, FULLY_CONNECTED, ...; planners must accept unknown kinds
  double input_bytes = 0;   // per sample
  double output_bytes = 0;  // per sample
  double weight_bytes = 0;  // w in the paper
  bool sparse = false;      // a sample uses only some rows of the weights (embeddings)
  std::vector<int> inputs;  // indices of the producing layers, -1: the batch; empty: the previous layer (a chain)
  std::map<std::string, std::string> attributes;
  std::vector<LayerProfile> profiles;  // one per resource type
  bool operator==(const Layer&) const = default;
};

struct Model {
  std::string name;
  std::vector<Layer> layers;
  bool clips_gradients = false;  // by the norm over all parameters: updates wait for all gradients
  bool operator==(const Model&) const = default;
};

}  // namespace medley::model
