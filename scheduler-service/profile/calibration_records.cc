#include "scheduler-service/profile/calibration_records.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "common/base/hash.h"
#include "common/base/status.h"

namespace medley::sched {
namespace {

constexpr uint32_t kMaxText = 1 << 24;  // bytes; more than any request has
constexpr uint32_t kMaxCount = 1 << 20;

template <typename T>
void Put(std::string& out, T value) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  out.append(raw, sizeof(T));
}

void PutText(std::string& out, std::string_view text) {
  Put(out, static_cast<uint32_t>(text.size()));
  out += text;
}

// Reads values from the front of `bytes`, and records whether all were present and valid.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }
  std::string_view rest() const { return bytes_; }

  template <typename T>
  T Take() {
    T value{};
    if (!Has(sizeof(T))) return value;
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_.remove_prefix(sizeof(T));
    return value;
  }

  std::string TakeText() {
    const auto size = Take<uint32_t>();
    if (size > kMaxText || !Has(size)) return Fail();
    std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }

  // Reads the number of elements, each of which has at least `size` bytes.
  uint32_t TakeCount(size_t size) {
    const auto count = Take<uint32_t>();
    if (count > kMaxCount || !Has(count * size)) Fail();
    return ok_ ? count : 0;
  }

  double TakeSeconds(bool zero_allowed) {
    const auto value = Take<double>();
    if (!std::isfinite(value) || value < 0 || (value == 0 && !zero_allowed)) Fail();
    return value;
  }

 private:
  bool Has(size_t size) {
    ok_ = ok_ && bytes_.size() >= size;
    return ok_;
  }
  std::string Fail() {
    ok_ = false;
    return "";
  }

  std::string_view bytes_;
  bool ok_ = true;
};

void PutPoint(std::string& out, const CostPoint& point) {
  Put(out, point.stays);
  Put(out, point.divides);
  Put(out, point.measured);
}

CostPoint TakePoint(Reader& in, bool measured) {
  CostPoint point;
  point.stays = in.TakeSeconds(true);
  point.divides = in.TakeSeconds(true);
  point.measured = in.TakeSeconds(!measured);
  return point;
}

const model::LayerProfile* Find(const model::Layer& layer, const std::string& type) {
  for (const model::LayerProfile& p : layer.profiles) {
    if (p.resource_type == type) return &p;
  }
  return nullptr;
}

}  // namespace

std::string Fingerprint(const model::Model& model) {
  std::string text;
  for (const model::Layer& layer : model.layers) {
    PutText(text, layer.name);
    PutText(text, layer.kind);
    for (const double value : {layer.input_bytes, layer.output_bytes, layer.weight_bytes}) Put(text, value);
    Put(text, static_cast<uint8_t>(layer.sparse));
  }
  PutText(text, model.name);
  return base::HashHex(text);
}

uint64_t ProfileHash(const model::Model& model, const std::string& type) {
  std::string numbers;
  for (const model::Layer& layer : model.layers) {
    const model::LayerProfile* p = Find(layer, type);
    if (p == nullptr) {
      Put(numbers, std::numeric_limits<double>::infinity());
      continue;
    }
    for (const double value : {p->compute_seconds, p->compute_parallel, p->sync_seconds, p->transfer_seconds,
                               p->comm_parallel, p->server_seconds}) {
      Put(numbers, value);
    }
  }
  return base::Hash64(numbers);
}

int FindSeries(const ModelRecords& records, const SeriesKey& key) {
  for (size_t i = 0; i < records.series.size(); ++i) {
    if (records.series[i] == key) return static_cast<int>(i);
  }
  return -1;
}

StageRecord PredictStage(const model::Model& model, const model::StageMeasurement& stage, double batch,
                         double profile_batch) {
  StageRecord record;
  const double divided = batch / profile_batch / stage.units;
  const auto add = [&](CostPoint& point, double seconds, double parallel) {
    point.stays += seconds * (1 - parallel);
    point.divides += seconds * parallel * divided;
  };
  for (int l = stage.first_layer; l <= stage.last_layer; ++l) {
    const model::LayerProfile* p = Find(model.layers[static_cast<size_t>(l)], stage.resource_type);
    if (p == nullptr) continue;
    add(record.compute, p->compute_seconds, p->compute_parallel);
    add(record.comm, p->sync_seconds, p->comm_parallel);
    const bool crosses = l == stage.last_layer && l + 1 < std::ssize(model.layers);
    if (crosses) add(record.comm, p->transfer_seconds, p->comm_parallel);
  }
  return record;
}

std::string ToBytes(const std::string& fingerprint, const ModelRecords& records) {
  std::string out;
  PutText(out, fingerprint);
  Put(out, records.used);
  Put(out, static_cast<uint32_t>(records.series.size()));
  for (const SeriesKey& key : records.series) {
    PutText(out, key.type);
    Put(out, key.profile);
  }
  Put(out, static_cast<uint32_t>(records.steps.size()));
  for (const StepRecord& step : records.steps) {
    Put(out, step.seconds);
    Put(out, static_cast<uint32_t>(step.stages.size()));
    for (const StageRecord& stage : step.stages) {
      Put(out, stage.series);
      PutPoint(out, stage.compute);
      PutPoint(out, stage.comm);
    }
  }
  return out;
}

absl::StatusOr<NamedRecords> TakeRecords(std::string_view& bytes) {
  Reader in(bytes);
  NamedRecords found;
  found.fingerprint = in.TakeText();
  ModelRecords& records = found.records;
  records.used = in.Take<uint64_t>();
  const uint32_t series = in.TakeCount(sizeof(uint32_t) + sizeof(uint64_t));
  for (uint32_t i = 0; i < series && in.ok(); ++i) {
    std::string type = in.TakeText();
    records.series.push_back({std::move(type), in.Take<uint64_t>()});
  }
  const uint32_t steps = in.TakeCount(sizeof(double) + sizeof(uint32_t));
  bool known = true;
  for (uint32_t i = 0; i < steps && in.ok(); ++i) {
    StepRecord step;
    step.seconds = in.TakeSeconds(false);
    const uint32_t stages = in.TakeCount(sizeof(uint32_t) + 6 * sizeof(double));
    for (uint32_t s = 0; s < stages && in.ok(); ++s) {
      StageRecord stage;
      stage.series = in.Take<uint32_t>();
      known = known && stage.series < records.series.size();
      stage.compute = TakePoint(in, true);
      stage.comm = TakePoint(in, false);
      step.stages.push_back(stage);
    }
    records.steps.push_back(std::move(step));
  }
  if (!in.ok() || !known) return base::DataLoss("calibration state: the records of a model are truncated or invalid");
  bytes = in.rest();
  return found;
}

}  // namespace medley::sched
