#include "worker/agent/event_reports.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/tf_record/tf_record.h"
#include "medley/tensorboard/v1/event.pb.h"

namespace medley::worker {
namespace {

namespace board = ::medley::tensorboard::v1;

constexpr uint64_t kMostScalarBytes = 64 << 10;  // of a record with scalars

std::optional<double> ScalarOf(const board::Value& value) {
  if (!value.has_tensor()) return value.simple_value();
  constexpr int kFloat = 1;
  const board::Tensor& tensor = value.tensor();
  if (tensor.dtype() != kFloat) return std::nullopt;
  if (tensor.float_val_size() == 1) return tensor.float_val(0);
  if (tensor.tensor_content().size() != sizeof(float)) return std::nullopt;
  float scalar = 0;
  std::memcpy(&scalar, tensor.tensor_content().data(), sizeof scalar);
  return scalar;
}

void Add(const board::Event& event, std::vector<EventReport>& reports) {
  if (event.step() < 1 || event.summary().values().empty()) return;
  if (reports.empty() || reports.back().report.step != event.step()) {
    reports.push_back({{event.step(), std::nullopt}, std::isfinite(event.wall_time()) ? event.wall_time() : 0});
  }
  std::optional<double>& loss = reports.back().report.loss;
  for (const board::Value& value : event.summary().values()) {
    if (loss || !IsLossTag(value.tag())) continue;
    const std::optional<double> scalar = ScalarOf(value);
    if (scalar && std::isfinite(*scalar)) loss = scalar;
  }
}

}  // namespace

bool IsLossTag(std::string_view tag) {
  std::string lower(tag);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  for (const char* other : {"val", "eval", "test"}) {
    if (lower.starts_with(other)) return false;
  }
  const std::string name = lower.substr(lower.rfind('/') == std::string::npos ? 0 : lower.rfind('/') + 1);
  return name == "loss" || name == "train_loss" || name == "training_loss" || name == "train_loss_step";
}

absl::StatusOr<EventsRead> ReadEvents(std::string_view bytes) {
  EventsRead read;
  while (read.used < bytes.size()) {
    MEDLEY_ASSIGN_OR_RETURN(const auto record, tf_record::ReadFirst(bytes.substr(read.used), kMostScalarBytes));
    if (!record) break;
    read.used += record->size;
    board::Event event;
    if (record->data && event.ParseFromArray(record->data->data(), static_cast<int>(record->data->size()))) {
      Add(event, read.reports);
    }
  }
  return read;
}

}  // namespace medley::worker
