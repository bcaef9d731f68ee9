#include <google/protobuf/util/time_util.h>

#include <cmath>
#include <optional>

#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/convert_enums.h"
#include "common/model/model.h"
#include "common/model/profile.h"
#include "medley/profile/v1/profile.pb.h"

namespace medley::model {
namespace {

namespace profile_pb = profile::v1;

void ProfileToProto(const LayerProfile& p, profile_pb::LayerProfile& out) {
  out.set_resource_type(p.resource_type);
  out.set_compute_seconds(p.compute_seconds);
  out.set_compute_parallel(p.compute_parallel);
  out.set_sync_seconds(p.sync_seconds);
  out.set_transfer_seconds(p.transfer_seconds);
  out.set_comm_parallel(p.comm_parallel);
  out.set_server_seconds(p.server_seconds);
  out.set_origin(p.origin);
  google::protobuf::Timestamp time;
  if (!p.measured_at.empty() && TimeToProto(p.measured_at, time).ok()) *out.mutable_measured_at() = time;
  out.set_spread(p.spread);
  out.set_activation_bytes(p.activation_bytes);
  out.set_sync_processor_seconds(p.sync_processor_seconds);
  out.set_burst_seconds(p.burst_seconds);
  out.set_undivided_seconds(p.undivided_seconds);
  out.set_forward_part(p.forward_part);
  out.set_update_part(p.update_part);
  out.set_undivided_parallel(p.undivided_parallel);
  if (!p.tables) return;
  profile_pb::TablesOnDevice& tables = *out.mutable_tables();
  tables.set_seconds(p.tables->seconds);
  tables.set_missed_seconds(p.tables->missed_seconds);
  for (const CachedRows& cached : p.tables->cached) {
    tables.add_cached()->set_share(cached.share);
    tables.mutable_cached()->rbegin()->set_hits(cached.hits);
  }
}

std::optional<TablesOnDevice> TablesFromProto(const profile_pb::LayerProfile& in) {
  if (!in.has_tables()) return std::nullopt;
  TablesOnDevice tables{.seconds = in.tables().seconds(), .missed_seconds = in.tables().missed_seconds(), .cached = {}};
  for (const profile_pb::CachedRows& cached : in.tables().cached()) {
    tables.cached.push_back({cached.share(), cached.hits()});
  }
  return tables;
}

LayerProfile ProfileFromProto(const profile_pb::LayerProfile& in) {
  return {in.resource_type(),
          in.compute_seconds(),
          in.compute_parallel(),
          in.sync_seconds(),
          in.transfer_seconds(),
          in.comm_parallel(),
          in.server_seconds(),
          in.origin(),
          in.has_measured_at() ? TimeFromProto(in.measured_at()) : "",
          in.spread(),
          in.activation_bytes(),
          in.sync_processor_seconds(),
          in.burst_seconds(),
          in.undivided_seconds(),
          in.forward_part(),
          in.update_part(),
          in.undivided_parallel(),
          TablesFromProto(in)};
}

}  // namespace

absl::Status TimeToProto(std::string_view text, google::protobuf::Timestamp& out) {
  out.Clear();
  if (text.empty()) return absl::OkStatus();
  if (!google::protobuf::util::TimeUtil::FromString(std::string(text), &out)) {
    return base::InvalidArgument("'{}' is not an RFC 3339 time", text);
  }
  return absl::OkStatus();
}

std::string TimeFromProto(const google::protobuf::Timestamp& in) {
  using google::protobuf::util::TimeUtil;
  if (in.seconds() == 0 && in.nanos() == 0) return "";
  if (in.seconds() < TimeUtil::kTimestampMinSeconds || in.seconds() > TimeUtil::kTimestampMaxSeconds) return "";
  if (in.nanos() < 0 || in.nanos() > 999'999'999) return "";
  return TimeUtil::ToString(in);
}

void ToProto(const Model& model, profile_pb::Model& out) {
  out.set_clips_gradients(model.clips_gradients);
  out.Clear();
  out.set_name(model.name);
  for (const Layer& layer : model.layers) {
    profile_pb::Layer& to = *out.add_layers();
    to.set_name(layer.name);
    to.set_kind(layer.kind);
    to.set_input_bytes(layer.input_bytes);
    to.set_output_bytes(layer.output_bytes);
    to.set_weight_bytes(layer.weight_bytes);
    to.set_sparse(layer.sparse);
    for (const int input : layer.inputs) to.add_inputs(input);
    to.mutable_attributes()->insert(layer.attributes.begin(), layer.attributes.end());
    for (const LayerProfile& p : layer.profiles) ProfileToProto(p, *to.add_profiles());
  }
}

absl::StatusOr<Model> FromProto(const profile_pb::Model& in) {
  Model model;
  model.clips_gradients = in.clips_gradients();
  model.name = in.name();
  for (const profile_pb::Layer& from : in.layers()) {
    Layer layer;
    layer.name = from.name();
    layer.kind = from.kind();
    layer.input_bytes = from.input_bytes();
    layer.output_bytes = from.output_bytes();
    layer.weight_bytes = from.weight_bytes();
    layer.sparse = from.sparse();
    layer.inputs.assign(from.inputs().begin(), from.inputs().end());
    layer.attributes.insert(from.attributes().begin(), from.attributes().end());
    for (const profile_pb::LayerProfile& p : from.profiles()) layer.profiles.push_back(ProfileFromProto(p));
    model.layers.push_back(std::move(layer));
  }
  return model;
}

void ToProto(const AllreduceMeasurement& measured, profile_pb::AllreduceMeasurement& out) {
  out.set_resource_type(measured.resource_type);
  out.set_ranks(measured.ranks);
  out.set_bytes(measured.bytes);
  out.set_algorithm(AlgorithmToProto(measured.algorithm));
  out.set_seconds(measured.seconds);
}

absl::StatusOr<AllreduceMeasurement> FromProto(const profile_pb::AllreduceMeasurement& in, std::string_view path) {
  AllreduceMeasurement measured{in.resource_type(), in.ranks(), in.bytes(), AllreduceAlgorithm::kRing, in.seconds()};
  MEDLEY_ASSIGN_OR_RETURN(measured.algorithm, AlgorithmFromProto(in.algorithm(), path));
  if (measured.algorithm == AllreduceAlgorithm::kAuto) {
    return base::InvalidArgument("{}.algorithm: must name an algorithm, not AUTO", path);
  }
  if (measured.ranks < 2) return base::InvalidArgument("{}.ranks: must be at least 2, is {}", path, measured.ranks);
  if (measured.bytes < 1) return base::InvalidArgument("{}.bytes: must be at least 1, is {}", path, measured.bytes);
  if (!(measured.seconds > 0) || !std::isfinite(measured.seconds)) {
    return base::InvalidArgument("{}.seconds: must be greater than 0, is {}", path, measured.seconds);
  }
  return measured;
}

void ToProto(const Link& link, profile_pb::Link& out) {
  out.set_from(link.from);
  out.set_to(link.to);
  out.set_latency_seconds(link.latency_seconds);
  out.set_bytes_per_second(link.bytes_per_second);
  out.set_processor_seconds_per_message(link.processor_seconds_per_message);
  out.set_processor_seconds_per_byte(link.processor_seconds_per_byte);
  out.set_processor_seconds_per_message_in_a_row(link.processor_seconds_per_message_in_a_row);
  out.set_computed_bytes_per_message(link.computed_bytes_per_message);
}

Link FromProto(const profile_pb::Link& in) {
  return {in.from(),
          in.to(),
          in.latency_seconds(),
          in.bytes_per_second(),
          in.processor_seconds_per_message(),
          in.processor_seconds_per_byte(),
          in.processor_seconds_per_message_in_a_row(),
          in.computed_bytes_per_message()};
}

void ToProto(const UnitCpus& unit, profile_pb::UnitCpus& out) {
  out.set_resource_type(unit.resource_type);
  out.set_cores(unit.cores);
  out.set_period_seconds(unit.period_seconds);
  if (unit.device_memory_bytes > 0) out.set_device_memory_bytes(unit.device_memory_bytes);
}

absl::StatusOr<UnitCpus> FromProto(const profile_pb::UnitCpus& in, std::string_view path) {
  const auto good = [](double value) { return std::isfinite(value) && value >= 0; };
  if (!good(in.cores())) return base::InvalidArgument("{}.cores: must not be negative, is {}", path, in.cores());
  if (!good(in.period_seconds())) {
    return base::InvalidArgument("{}.periodSeconds: must not be negative, is {}", path, in.period_seconds());
  }
  if (!good(in.device_memory_bytes())) {
    return base::InvalidArgument("{}.deviceMemoryBytes: must not be negative, is {}", path, in.device_memory_bytes());
  }
  return UnitCpus{in.resource_type(), in.cores(), in.period_seconds(), in.device_memory_bytes()};
}

void ToProto(const Profile& profile, profile_pb::Profile& out) {
  out.Clear();
  out.set_id(profile.id);
  ToProto(profile.model, *out.mutable_model());
  out.set_profile_batch_size(profile.profile_batch_size);
  for (const Link& link : profile.links) ToProto(link, *out.add_links());
  out.set_state_factor(profile.state_factor);
  out.set_samples_per_epoch(profile.samples_per_epoch);
  out.set_micro_batches(profile.micro_batches);
  for (const AllreduceMeasurement& measured : profile.allreduces) ToProto(measured, *out.add_allreduces());
  for (const UnitCpus& unit : profile.units) ToProto(unit, *out.add_units());
}

absl::StatusOr<Profile> FromProto(const profile_pb::Profile& in) {
  Profile profile;
  profile.id = in.id();
  MEDLEY_ASSIGN_OR_RETURN(profile.model, FromProto(in.model()));
  profile.profile_batch_size = in.profile_batch_size();
  for (const profile_pb::Link& link : in.links()) profile.links.push_back(FromProto(link));
  profile.state_factor = in.state_factor() == 0 ? 3 : in.state_factor();
  profile.samples_per_epoch = in.samples_per_epoch();
  profile.micro_batches = in.micro_batches();
  for (int i = 0; i < in.allreduces_size(); ++i) {
    MEDLEY_ASSIGN_OR_RETURN(profile.allreduces.emplace_back(),
                            FromProto(in.allreduces(i), fmt::format("allreduces[{}]", i)));
  }
  for (int i = 0; i < in.units_size(); ++i) {
    MEDLEY_ASSIGN_OR_RETURN(profile.units.emplace_back(), FromProto(in.units(i), fmt::format("units[{}]", i)));
  }
  return profile;
}

}  // namespace medley::model
