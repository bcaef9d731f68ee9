#include "common/base/details.h"

#include <absl/strings/cord.h>

namespace medley::base {
namespace {

constexpr char kDetails[] = "medley.dev/details";

}  // namespace

absl::Status WithDetails(absl::Status status, std::string_view details) {
  status.SetPayload(kDetails, absl::Cord(absl::string_view(details.data(), details.size())));
  return status;
}

std::string Details(const absl::Status& status) {
  const auto payload = status.GetPayload(kDetails);
  return payload ? std::string(*payload) : std::string();
}

}  // namespace medley::base
