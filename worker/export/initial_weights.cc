#include "worker/export/initial_weights.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/document/difference.h"
#include "common/document/parse.h"
#include "common/model/task.h"
#include "worker/export/exported_model.h"

namespace medley::worker {
namespace {

using Document = nlohmann::json;

constexpr size_t kMostShown = 8;  // parameters of a message

absl::Status RefuseInitial(const std::string& folder, const std::string& why) {
  return base::InvalidArgument("spec.model.initialFrom: cannot begin with the weights of {}: {}", folder, why);
}

class MappedWeights {
 public:
  MappedWeights(void* data, size_t size) : data_(data), size_(size) {}
  ~MappedWeights() { munmap(data_, size_); }
  MappedWeights(const MappedWeights&) = delete;
  MappedWeights& operator=(const MappedWeights&) = delete;
  const std::byte* data() const { return static_cast<const std::byte*>(data_); }
  size_t size() const { return size_; }

 private:
  void* const data_;
  const size_t size_;
};

absl::StatusOr<std::shared_ptr<const MappedWeights>> MapWeights(const std::filesystem::path& path) {
  MEDLEY_ASSIGN_OR_RETURN(const int fd, base::OpenRegularFile(path));
  struct stat info = {};
  const bool sized = fstat(fd, &info) == 0 && info.st_size > static_cast<off_t>(sizeof(uint64_t));
  void* data = sized ? mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  const int error = errno;
  close(fd);
  if (!sized) return base::InvalidArgument("the file is truncated");
  if (data == MAP_FAILED) return base::ErrnoStatus(error, "mapping the file");
  return std::make_shared<const MappedWeights>(data, static_cast<size_t>(info.st_size));
}

struct StoredWeights {
  std::shared_ptr<const MappedWeights> mapping;
  Document header;   // of the safetensors format: name -> dtype, shape, data_offsets
  size_t first = 0;  // of the values
};

absl::StatusOr<StoredWeights> OpenWeights(const std::filesystem::path& path) {
  StoredWeights stored;
  MEDLEY_ASSIGN_OR_RETURN(stored.mapping, MapWeights(path));
  uint64_t length = 0;
  std::memcpy(&length, stored.mapping->data(), sizeof length);
  if (length > static_cast<uint64_t>(kMostJsonBytes) || length > stored.mapping->size() - sizeof length) {
    return base::InvalidArgument("the header is too long");
  }
  const std::string_view text(reinterpret_cast<const char*>(stored.mapping->data() + sizeof length), length);
  MEDLEY_ASSIGN_OR_RETURN(stored.header,
                          document::ParseJson(text, {.bytes = size_t{kMostJsonBytes}, .values = kMostJsonValues}));
  if (!stored.header.is_object()) return base::InvalidArgument("the header is not a JSON object");
  stored.first = sizeof length + length;
  return stored;
}

// The values of one tensor; null: its place in the file is impossible.
const std::byte* ValuesOf(const StoredWeights& stored, const Document& entry, int64_t bytes) {
  const Document offsets = entry.value("data_offsets", Document());
  const bool numbers =
      offsets.is_array() && offsets.size() == 2 && offsets[0].is_number_unsigned() && offsets[1].is_number_unsigned();
  if (!numbers) return nullptr;
  const auto begin = offsets[0].get<uint64_t>();
  const auto end = offsets[1].get<uint64_t>();
  const uint64_t room = stored.mapping->size() - stored.first;
  if (begin > end || end > room || end - begin != static_cast<uint64_t>(bytes)) return nullptr;
  return stored.mapping->data() + stored.first + begin;
}

Document InputFields(const std::vector<model::InputSpec>& inputs) {
  Document fields = Document::array();
  for (const model::InputSpec& input : inputs) {
    Document field = {{"name", input.name}, {"type", input.type}, {"scale", input.scale}};
    if (input.columns.empty()) field["shape"] = input.shape;
    if (!input.mean.empty()) field["mean"] = input.mean;
    if (!input.deviation.empty()) field["std"] = input.deviation;
    fields.push_back(std::move(field));
  }
  return fields;
}

// The columns of dates, each once.
Document DatesOf(const model::SchemaSpec& schema, const Document& numeric) {
  Document dates = Document::array();
  for (size_t i = 0; i < schema.parts.size(); ++i) {
    if (schema.parts[i] == model::ColumnPart::kTime) dates.push_back(numeric[i]);
  }
  return dates;
}

// What the numbers of inputs and labels mean, as JSON of the fields of a job.
Document MeaningOf(const model::SchemaSpec& schema, bool by_name) {
  Document json = {{"model", {{"task", model::TaskName(schema.task)}}}};
  if (!schema.inputs.empty()) json["data"]["inputs"] = InputFields(schema.inputs);
  Document& columns = json["data"]["schema"];
  if (schema.numeric_buckets > 0) columns["numericBuckets"] = schema.numeric_buckets;
  columns["categorical"] = by_name ? Document(schema.names.categorical) : Document(schema.categorical);
  columns["numeric"] = by_name ? Document(schema.names.numeric) : Document(schema.numeric);
  if (const Document dates = DatesOf(schema, columns["numeric"]); !dates.empty()) {
    columns["dates"] = dates;
    columns["dayFirst"] = schema.day_first;
  }
  if (schema.task == model::Task::kBinary && !schema.label_positive.empty()) {
    columns["label"]["positive"] = schema.label_positive;
  }
  if (schema.label_log) columns["label"]["transform"] = "Log1p";
  if (schema.task == model::Task::kMultiLabel && !schema.label_columns.empty()) {
    columns["label"]["columns"] = by_name ? Document(schema.names.labels) : Document(schema.label_columns);
  }
  return json;
}

// Equal layers by their names that compute another function of the same weights.
void AddActivations(const Graph& exported, const Graph& own, std::vector<document::Difference>& differences) {
  for (const Operation& operation : own.operations) {
    const auto before = std::ranges::find(exported.operations, operation.name, &Operation::name);
    if (before == exported.operations.end() || before->activation == operation.activation) continue;
    const auto words = [](Activation activation) { return Document(ActivationName(activation)).dump(); };
    differences.push_back(
        {"the activation of layer " + operation.name, words(before->activation), words(operation.activation)});
  }
}

// Differences that the shapes of the parameters do not show, or not in words.
std::vector<document::Difference> InputDifferences(const ExportedModel& exported, const model::JobSpec& spec,
                                                   const Graph& graph, const std::vector<std::string>& classes) {
  const model::SchemaSpec& own = spec.data.schema;
  const bool by_name = !own.names.empty() && !exported.schema.names.empty();
  const bool by_number = own.names.empty() && exported.schema.names.empty();
  Document before = MeaningOf(exported.schema, by_name);
  Document after = MeaningOf(own, by_name);
  if (!by_name && !by_number) {  // one has names only: the shapes tell
    for (Document* side : {&before, &after}) {
      for (const char* field : {"categorical", "numeric", "dates"}) (*side)["data"]["schema"].erase(field);
      if ((*side)["data"]["schema"].contains("label")) (*side)["data"]["schema"]["label"].erase("columns");
    }
  }
  if (!spec.model.imported()) {
    before["model"]["name"] = exported.graph.name;
    after["model"]["name"] = graph.name;
    if (!own.categorical.empty()) {
      before["model"]["parameters"]["embeddingRows"] = exported.embedding_rows;
      after["model"]["parameters"]["embeddingRows"] = spec.model.embedding_rows;
    }
  }
  const std::vector<std::string>& known = exported.transform.label.classes;
  if (!classes.empty() && !known.empty() && known != classes) {
    before["data"]["schema"]["label"]["classes"] = known;
    after["data"]["schema"]["label"]["classes"] = classes;
  }
  std::vector<document::Difference> differences = document::Differences(before, after, "spec");
  if (!spec.model.imported()) AddActivations(exported.graph, graph, differences);
  return differences;
}

absl::StatusOr<ExportedModel> ReadDescription(const std::filesystem::path& folder) {
  const auto model = base::ReadFile(folder / kModelFile, kMostJsonBytes);
  if (absl::IsNotFound(model.status())) return base::InvalidArgument("the folder has no {}", kModelFile);
  MEDLEY_RETURN_IF_ERROR(model.status());
  MEDLEY_ASSIGN_OR_RETURN(const std::string schema, base::ReadFile(folder / kSchemaFile, kMostJsonBytes));
  return ParseExportedModel(*model, schema);
}

}  // namespace

absl::Status UseInitialWeights(const model::JobSpec& spec, const std::string& root,
                               const std::vector<std::string>& classes, InitialParts parts, Graph& graph) {
  if (spec.model.initial_from.empty()) return absl::OkStatus();
  std::string_view path = spec.model.initial_from;
  if (path.starts_with("file://")) path.remove_prefix(std::string_view("file://").size());
  const std::string folder = root + std::string(path);
  const auto exported = ReadDescription(folder);
  // A model from PyTorch is described by its archive, so only its tensors are compared.
  if (!exported.ok() && !spec.model.imported()) return RefuseInitial(folder, base::Message(exported.status()));
  const auto stored = OpenWeights(std::filesystem::path(folder) / kWeightsFile);
  if (!stored.ok()) return RefuseInitial(folder, fmt::format("{}: {}", kWeightsFile, base::Message(stored.status())));
  std::vector<document::Difference> differences;
  if (exported.ok()) differences = InputDifferences(*exported, spec, graph, classes);
  size_t further = 0;
  for (const ExportedTensor& tensor : TensorsOf(graph)) {
    if (parts == InitialParts::kTables && !tensor.spec.sparse) continue;
    const auto entry = stored->header.find(tensor.name);
    const bool exists = entry != stored->header.end() && entry->is_object();
    const std::string shape = exists ? entry->value("shape", Document()).dump() : "not set";
    const std::string wanted = Document(tensor.shape).dump();
    if (shape != wanted || entry->value("dtype", Document()) != "F32") {
      const bool same_shape = shape == wanted;
      if (differences.size() < kMostShown) {
        differences.push_back(
            {"the shape of parameter " + tensor.name, same_shape ? "of another type than float32" : shape, wanted});
      } else {
        ++further;
      }
      continue;
    }
    const std::byte* values = ValuesOf(*stored, *entry, tensor.bytes());
    if (values == nullptr) return RefuseInitial(folder, fmt::format("tensor {} is outside of its file", tensor.name));
    Operation& operation = graph.operations[static_cast<size_t>(tensor.spec.operation)];
    for (ParameterSpec& parameter : operation.parameters) {
      if (parameter.name != tensor.spec.name) continue;
      parameter.initializer = Initializer::kStored;
      parameter.stored_rows = {stored->mapping, values};
    }
  }
  if (differences.empty()) return absl::OkStatus();
  std::string why = document::Sentence(differences, "in the export", "in this job", kMostShown);
  if (further > 0) why += fmt::format("; {} more parameters differ", further);
  return RefuseInitial(folder, why + ". Only the rate, the optimizer, the batch size, epochs and rows may be others");
}

}  // namespace medley::worker
