#include "scheduler-service/policy_net/trained_policy.h"

#include <cmath>
#include <set>

#include "common/base/hash.h"
#include "common/base/status.h"
#include "scheduler-service/policy_net/byte_stream.h"

namespace medley::sched::policy_net {
namespace {

constexpr std::string_view kMagic = "MDLYPOL";
constexpr uint8_t kVersion = 1;
constexpr size_t kMaxScales = 64;

// The bytes between magic and checksum.
absl::StatusOr<std::string_view> Payload(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return base::InvalidArgument("policy: {} bytes are not a policy file", bytes.size());
  if (bytes.size() <= kMagic.size() + sizeof(uint64_t)) return base::InvalidArgument("policy: is truncated");
  const auto version = static_cast<uint8_t>(bytes[kMagic.size()]);
  if (version != kVersion) {
    return base::InvalidArgument("policy: has version {}, this program reads version {}", version, kVersion);
  }
  const std::string_view body = bytes.substr(0, bytes.size() - sizeof(uint64_t));
  if (ByteReader(bytes.substr(body.size())).Take<uint64_t>() != base::Hash64(body)) {
    return base::InvalidArgument("policy: is damaged: the checksum does not match");
  }
  return body.substr(kMagic.size() + 1);
}

absl::Status ReadShape(ByteReader& in, TrainedPolicy& policy) {
  const auto cell = in.Take<uint8_t>();
  if (cell > 1) return base::InvalidArgument("policy: has an unknown cell kind {}", cell);
  policy.shape.cell = cell == 0 ? CellKind::kLstm : CellKind::kElman;
  policy.shape.features = in.Take<int32_t>();
  policy.shape.actions = in.Take<int32_t>();
  policy.shape.hidden = in.Take<int32_t>();
  policy.updates = in.Take<int64_t>();
  const auto within = [](int value, int most) { return value >= 1 && value <= most; };
  if (in.cut_short() || !within(policy.shape.features, kMaxFeatures) || !within(policy.shape.actions, kMaxActions) ||
      !within(policy.shape.hidden, kMaxHidden) || policy.updates < 0) {
    return base::InvalidArgument("policy: has invalid sizes: {} features, {} actions, {} hidden units",
                                 policy.shape.features, policy.shape.actions, policy.shape.hidden);
  }
  return absl::OkStatus();
}

absl::Status ReadNames(ByteReader& in, TrainedPolicy& policy) {
  std::set<std::string> seen;
  for (int i = 0; i < policy.shape.actions && !in.cut_short(); ++i) {
    const auto size = in.Take<uint16_t>();
    policy.actions.push_back(in.TakeString(size));
    if (size == 0 || size > kMaxName || !seen.insert(policy.actions.back()).second) {
      return base::InvalidArgument("policy: the name of action {} is empty, too long or a duplicate", i);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadScales(ByteReader& in, TrainedPolicy& policy) {
  const auto count = in.Take<uint32_t>();
  if (count > kMaxScales) return base::InvalidArgument("policy: has too many feature scales: {}", count);
  for (uint32_t i = 0; i < count && !in.cut_short(); ++i) {
    const auto mean = in.Take<double>();
    const auto scale = in.Take<double>();
    if (!std::isfinite(mean) || !std::isfinite(scale) || !(scale > 0)) {
      return base::InvalidArgument("policy: feature scale {} is not a positive number", i);
    }
    policy.scales.push_back({mean, scale});
  }
  return absl::OkStatus();
}

absl::Status ReadParameters(ByteReader& in, TrainedPolicy& policy) {
  const size_t expected = ParameterLayout(policy.shape).size;
  if (in.cut_short() || in.left() != expected * sizeof(float)) {
    return base::InvalidArgument("policy: has {} bytes of parameters, its sizes need {}", in.left(),
                                 expected * sizeof(float));
  }
  policy.parameters.resize(expected);
  for (float& value : policy.parameters) {
    value = in.Take<float>();
    if (!std::isfinite(value)) return base::InvalidArgument("policy: has a parameter that is not finite");
  }
  return absl::OkStatus();
}

}  // namespace

std::string ToBytes(const TrainedPolicy& policy) {
  std::string out(kMagic);
  PutValue(out, kVersion);
  PutValue(out, static_cast<uint8_t>(policy.shape.cell == CellKind::kLstm ? 0 : 1));
  for (const int size : {policy.shape.features, policy.shape.actions, policy.shape.hidden}) {
    PutValue(out, static_cast<int32_t>(size));
  }
  PutValue(out, policy.updates);
  for (const std::string& name : policy.actions) {
    PutValue(out, static_cast<uint16_t>(name.size()));
    out += name;
  }
  PutValue(out, static_cast<uint32_t>(policy.scales.size()));
  for (const FeatureScale& scale : policy.scales) {
    PutValue(out, scale.mean);
    PutValue(out, scale.scale);
  }
  for (const float value : policy.parameters) PutValue(out, value);
  PutValue(out, base::Hash64(out));
  return out;
}

absl::StatusOr<TrainedPolicy> PolicyFromBytes(std::string_view bytes) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string_view payload, Payload(bytes));
  ByteReader in(payload);
  TrainedPolicy policy;
  MEDLEY_RETURN_IF_ERROR(ReadShape(in, policy));
  MEDLEY_RETURN_IF_ERROR(ReadNames(in, policy));
  MEDLEY_RETURN_IF_ERROR(ReadScales(in, policy));
  MEDLEY_RETURN_IF_ERROR(ReadParameters(in, policy));
  return policy;
}

}  // namespace medley::sched::policy_net
