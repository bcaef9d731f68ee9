// A model as planners see it: operations ("layers") in topological order, and what each costs per resource type.
//
// Immutable values. Bytes are per sample where said; seconds are for the profile batch B_o on ONE unit.
// Source of the profile's symbols: HeterPS, section 4 (design: planning.md, section 1).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace medley::model {

// Symbol in the paper's notation behind each field.
struct LayerProfile {
  std::string resource_type;
  double compute_seconds = 0;   // c: forward + backward + local update
  double compute_parallel = 0;  // alpha in [0, 1]: fraction of c that divides by units
  double sync_seconds = 0;      // y: gradient / parameter synchronisation
  double transfer_seconds = 0;  // x: output to the next stage and its gradient back
  double comm_parallel = 0;     // beta in [0, 1]: fraction of y and x that divides by units
  double server_seconds = 0;    // v: parameter-server CPU; 0 when synchronised by allreduce
  std::string origin;           // measured, analytic, calibrated or empty
  std::string measured_at;      // RFC 3339 or empty
  double spread = 0;            // standard deviation over mean of compute_seconds
  double activation_bytes = 0;  // per sample
  bool operator==(const LayerProfile&) const = default;
};

struct Layer {
  std::string name;
  std::string kind;         // EMBEDDING, FULLY_CONNECTED, ...; open
  double input_bytes = 0;   // per sample
  double output_bytes = 0;  // per sample
  double weight_bytes = 0;  // w
  bool sparse = false;      // rows touched per sample
  std::vector<int> inputs;  // producers; empty: the layer before (a chain)
  std::map<std::string, std::string> attributes;
  std::vector<LayerProfile> profiles;  // one a resource type
  bool operator==(const Layer&) const = default;
};

struct Model {
  std::string name;
  std::vector<Layer> layers;
  bool operator==(const Model&) const = default;
};

struct Link {
  std::string from;
  std::string to;
  double latency_seconds = 0;
  double bytes_per_second = 0;
  bool operator==(const Link&) const = default;
};

struct Profile {
  std::string id;
  Model model;
  int profile_batch_size = 0;  // B_o
  std::vector<Link> links;
  double state_factor = 3;  // (weights + gradient + optimizer state) / weights
  int64_t samples_per_epoch = 0;
  bool operator==(const Profile&) const = default;
};

}  // namespace medley::model
