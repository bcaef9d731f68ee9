#include "common/model/job_spec.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "common/base/clock.h"
#include "common/base/status.h"

namespace medley::model {
namespace {

using nlohmann::json;

// Reads the fields of one JSON object. It keeps the first error with its path; later reads then do nothing.
class Reader {
 public:
  Reader(const json& object, std::string path, absl::Status& status)
      : object_(object), path_(std::move(path)), status_(status) {
    if (!object_.is_object()) Fail("", "must be an object");
  }

  void Read(const char* name, std::string& out) {
    if (const json* value = Find(name)) {
      if (!value->is_string()) return Fail(name, "must be a string");
      out = value->get<std::string>();
    }
  }
  void Read(const char* name, bool& out) {
    if (const json* value = Find(name)) {
      if (!value->is_boolean()) return Fail(name, "must be true or false");
      out = value->get<bool>();
    }
  }
  void Read(const char* name, double& out) {
    if (const json* value = Find(name)) {
      if (!value->is_number()) return Fail(name, "must be a number");
      out = value->get<double>();
    }
  }
  template <typename Int>
  requires std::is_integral_v<Int>
  void Read(const char* name, Int& out) {
    if (const json* value = Find(name)) ReadInteger(*value, name, out);
  }
  template <typename Int>
  requires std::is_integral_v<Int>
  void Read(const char* name, std::vector<Int>& out) {
    const json* value = Find(name);
    if (value == nullptr) return;
    if (!value->is_array()) return Fail(name, "must be a list of whole numbers");
    out.clear();
    for (size_t i = 0; i < value->size(); ++i) {
      out.emplace_back();
      ReadInteger((*value)[i], fmt::format("{}[{}]", name, i), out.back());
    }
  }
  // A Go duration ("60s").
  void ReadDuration(const char* name, double& out_seconds) {
    std::string text;
    Read(name, text);
    if (text.empty() || !status_.ok()) return;
    const absl::StatusOr<base::nanoseconds> duration = base::ParseDuration(text);
    if (!duration.ok()) return Fail(name, base::Message(duration.status()));
    out_seconds = base::ToSeconds(*duration);
  }

  // Calls `read` with a Reader of the object `name`, if that field exists.
  template <typename Read>
  bool Child(const char* name, const Read& read) {
    const json* value = Find(name);
    if (value == nullptr) return false;
    Reader child(*value, Path(name), status_);
    if (status_.ok()) read(child);
    return true;
  }
  // Calls `read` for each object of the list `name`.
  template <typename Read>
  void Children(const char* name, const Read& read) {
    const json* value = Find(name);
    if (value == nullptr) return;
    if (!value->is_array()) return Fail(name, "must be a list");
    for (size_t i = 0; i < value->size() && status_.ok(); ++i) {
      Reader child((*value)[i], fmt::format("{}[{}]", Path(name), i), status_);
      if (status_.ok()) read(child);
    }
  }

 private:
  const json* Find(const char* name) const {
    if (!status_.ok()) return nullptr;
    const auto it = object_.find(name);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }
  template <typename Int>
  void ReadInteger(const json& value, std::string_view name, Int& out) {
    if (!value.is_number_integer()) return Fail(name, "must be a whole number");
    if (std::is_unsigned_v<Int> && !value.is_number_unsigned()) return Fail(name, "must not be negative");
    if (value.is_number_unsigned()) {
      const uint64_t number = value.get<uint64_t>();
      if (number > static_cast<uint64_t>(std::numeric_limits<Int>::max())) return Fail(name, "is too large");
      out = static_cast<Int>(number);
      return;
    }
    const int64_t number = value.get<int64_t>();
    if (number < static_cast<int64_t>(std::numeric_limits<Int>::min())) return Fail(name, "is too small");
    out = static_cast<Int>(number);
  }
  std::string Path(std::string_view name) const { return name.empty() ? path_ : fmt::format("{}.{}", path_, name); }
  void Fail(std::string_view name, std::string_view what) {
    if (status_.ok()) status_ = base::InvalidArgument("{}: {}", Path(name), what);
  }

  const json& object_;
  const std::string path_;
  absl::Status& status_;
};

void ReadModel(Reader& reader, ModelSpec& model) {
  reader.Read("name", model.name);
  reader.Child("parameters", [&](Reader& parameters) {
    parameters.Read("embeddingDim", model.embedding_dim);
    parameters.Read("embeddingRows", model.embedding_rows);
    parameters.Read("hidden", model.hidden);
  });
  reader.Children("layers", [&](Reader& layer) {
    LayerSpec& spec = model.layers.emplace_back();
    layer.Read("name", spec.name);
    layer.Read("kind", spec.kind);
    layer.Read("out", spec.out);
    layer.Read("activation", spec.activation);
  });
}

void ReadSource(Reader& reader, SourceSpec& source) {
  reader.Read("uri", source.uri);
  reader.Read("format", source.format);
}

void ReadData(Reader& reader, DataSpec& data) {
  reader.Child("train", [&](Reader& train) { ReadSource(train, data.train); });
  reader.Child("test", [&](Reader& test) { ReadSource(test, data.test.emplace()); });
  reader.Child("schema", [&](Reader& schema) {
    schema.Child("label", [&](Reader& label) {
      label.Read("column", data.schema.label_column);
      label.Read("positive", data.schema.label_positive);
    });
    schema.Read("categorical", data.schema.categorical);
    schema.Read("numeric", data.schema.numeric);
    schema.Read("numericBuckets", data.schema.numeric_buckets);
    schema.Read("header", data.schema.header);
  });
  reader.Read("maxBadRows", data.max_bad_rows);
}

void ReadTraining(Reader& reader, TrainingSpec& training) {
  reader.Read("epochs", training.epochs);
  reader.Read("batchSize", training.batch_size);
  reader.Read("microBatches", training.micro_batches);
  reader.Child("optimizer", [&](Reader& optimizer) {
    optimizer.Read("name", training.optimizer);
    optimizer.Read("learningRate", training.learning_rate);
  });
  reader.Read("precision", training.precision);
  reader.Read("seed", training.seed);
}

void ReadCheckpoint(Reader& reader, CheckpointSpec& checkpoint) {
  reader.ReadDuration("interval", checkpoint.interval_seconds);
  reader.Read("keep", checkpoint.keep);
  reader.Child("volume", [&](Reader& volume) { volume.Read("mountPath", checkpoint.path); });
}

}  // namespace

absl::StatusOr<JobSpec> ParseJobSpec(std::string_view text) {
  const json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return base::InvalidArgument("spec: is not valid JSON");
  JobSpec spec;
  absl::Status status;
  Reader reader(root, "spec", status);
  if (status.ok()) {
    reader.Child("model", [&](Reader& child) { ReadModel(child, spec.model); });
    reader.Child("data", [&](Reader& child) { ReadData(child, spec.data); });
    reader.Child("training", [&](Reader& child) { ReadTraining(child, spec.training); });
    reader.Child("checkpoint", [&](Reader& child) { ReadCheckpoint(child, spec.checkpoint); });
  }
  if (!status.ok()) return status;
  return spec;
}

}  // namespace medley::model
