#include "localcluster/node/emulation.h"

#include <absl/strings/numbers.h>

#include <cmath>
#include <string>

#include "common/base/quantity.h"
#include "common/base/status.h"

namespace medley::localcluster {
namespace {

constexpr auto kLongestDelay = base::seconds(10);
constexpr double kBitsPerByte = 8;

// nullopt: the pod has no such annotation.
absl::StatusOr<std::optional<double>> PositiveQuantity(const kube::Object& pod, const char* name) {
  const std::string text = pod.annotation(name);
  if (text.empty()) return std::nullopt;
  const auto amount = base::ParseQuantity(text);
  if (!amount.ok() || !std::isfinite(*amount) || *amount <= 0) {
    return base::InvalidArgument("annotation '{}' is '{}', which is no quantity above 0", name, text);
  }
  return *amount;
}

absl::Status ReadDelay(const kube::Object& pod, CardState& card) {
  const std::string delay = pod.annotation(kLinkDelayAnnotation), spread = pod.annotation(kLinkDelaySpreadAnnotation);
  if (!delay.empty()) {
    const auto parsed = base::ParseDuration(delay);
    if (!parsed.ok() || *parsed < base::nanoseconds(0) || *parsed > kLongestDelay) {
      return base::InvalidArgument("annotation '{}' is '{}', which is no duration of 0 to 10 s, such as 20ms",
                                   kLinkDelayAnnotation, delay);
    }
    card.delay = *parsed;
  }
  if (!spread.empty() && (!absl::SimpleAtod(spread, &card.spread) || !(card.spread >= 0 && card.spread <= 1))) {
    return base::InvalidArgument("annotation '{}' is '{}', which is no number of 0 to 1", kLinkDelaySpreadAnnotation,
                                 spread);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Emulation> EmulationOf(const kube::Object& pod) {
  Emulation emulation;
  MEDLEY_ASSIGN_OR_RETURN(emulation.cores, PositiveQuantity(pod, kCpuAnnotation));
  MEDLEY_RETURN_IF_ERROR(ReadDelay(pod, emulation.card));
  MEDLEY_ASSIGN_OR_RETURN(const auto egress, PositiveQuantity(pod, kEgressAnnotation));
  MEDLEY_ASSIGN_OR_RETURN(const auto ingress, PositiveQuantity(pod, kIngressAnnotation));
  emulation.card.sends = egress.value_or(0) / kBitsPerByte;
  emulation.card.receives = ingress.value_or(0) / kBitsPerByte;
  return emulation;
}

}  // namespace medley::localcluster
