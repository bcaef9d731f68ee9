#include "worker/model/imported_graph.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "worker/data/inputs.h"
#include "worker/data/schema.h"
#include "worker/exported/archive.h"
#include "worker/torchscript/read.h"

namespace medley::worker {
namespace {

// Rows and columns of a tensor that checkpoints know as a matrix.
std::pair<int64_t, int64_t> MatrixOf(const std::vector<int64_t>& sizes) {
  if (sizes.size() < 2) return {1, sizes.empty() ? 1 : sizes.front()};
  int64_t columns = 1;
  for (size_t i = 1; i < sizes.size(); ++i) columns *= sizes[i];
  return {sizes.front(), columns};
}

class Builder {
 public:
  // `tables`: whether parameters may be tables.
  Builder(const cut::Cut& cut, bool tables) : cut_(cut), program_(*cut.program), tables_(tables) {}

  absl::StatusOr<std::vector<InputSlice>> Inputs(const SampleShape& shape,
                                                 const std::vector<model::InputSpec>& named) const {
    std::vector<ModelInput> inputs;
    for (const exported::Input& input : program_.inputs) {
      if (input.kind != exported::InputKind::kUser) continue;
      const exported::TensorMeta& meta = program_.tensors.at(input.value);
      const bool floats = meta.type == exported::ScalarType::kFloat32;
      const bool integers = meta.type == exported::ScalarType::kInt64 || meta.type == exported::ScalarType::kInt32 ||
                            meta.type == exported::ScalarType::kBool;
      if (!floats && !integers) {
        return base::Unimplemented(
            "the model's input '{}' is of type {}; float32, int64, int32 and bool can be trained on", input.name,
            exported::NameOf(meta.type));
      }
      ModelInput& added = inputs.emplace_back(ModelInput{input.name, integers, {}});
      for (size_t i = 1; i < meta.sizes.size(); ++i) added.shape.push_back(meta.sizes[i].value);
    }
    return InputLayout(inputs, shape, named);
  }

  absl::StatusOr<Operation> Convert(int index, const std::vector<InputSlice>& inputs) const {
    const cut::Operation& from = cut_.operations[static_cast<size_t>(index)];
    Operation operation;
    operation.kind = OperationKind::kImported;
    operation.name = from.name;
    operation.inputs = from.inputs;
    operation.reads_batch = !from.batch.empty();
    operation.output_width = static_cast<int>(from.output_floats);
    for (const int input : from.inputs) {
      operation.input_width += static_cast<int>(cut_.operations[static_cast<size_t>(input)].output_floats);
    }
    operation.module_kind = from.kind;
    operation.flops = from.flops;
    for (const std::string& name : from.owned) {
      MEDLEY_ASSIGN_OR_RETURN(operation.parameters.emplace_back(), Parameter(index, name));
    }
    if (from.table.empty() || !tables_) return operation;
    ParameterSpec& table = operation.parameters.front();
    const auto rows = std::ranges::find(inputs, from.table_rows, &InputSlice::name);
    if (rows == inputs.end() || !rows->integers) return base::Internal("the table '{}' has no rows", from.table);
    const exported::StoredTensor& stored = program_.stored.at(from.table);
    table.sparse = true;
    table.first_field = rows->first;
    table.fields = rows->count;
    table.stored_rows = {program_.mapping, stored.bytes.data() + stored.offset * static_cast<int64_t>(sizeof(float))};
    return operation;
  }

 private:
  absl::StatusOr<ParameterSpec> Parameter(int operation, const std::string& name) const {
    const exported::StoredTensor& stored = program_.stored.at(name);
    const bool statistic = std::ranges::find(cut_.statistics, name) != cut_.statistics.end();
    if (!statistic && stored.type != exported::ScalarType::kFloat32) {
      return base::Unimplemented("the parameter '{}' is of type {}; only float32 can be trained", name,
                                 exported::NameOf(stored.type));
    }
    const auto [rows, columns] = MatrixOf(stored.sizes);
    const auto owns = [&](const cut::Operation& other) {
      return std::ranges::find(other.owned, name) != other.owned.end();
    };
    const auto owner = static_cast<int>(std::ranges::find_if(cut_.operations, owns) - cut_.operations.begin());
    return ParameterSpec{.operation = operation,
                         .name = name,
                         .rows = rows,
                         .columns = columns,
                         .initializer = Initializer::kStored,
                         .role = statistic              ? ParameterRole::kStatistic
                                 : stored.requires_grad ? ParameterRole::kTrained
                                                        : ParameterRole::kFrozen,
                         .shape = stored.sizes,
                         .copy_of = owner < operation ? owner : -1};
  }

  const cut::Cut& cut_;
  const exported::Program& program_;
  const bool tables_;
};

// How many outputs the loss of the task takes; 0: any, 1 or more.
absl::Status CheckOutputs(const model::JobSpec& spec, int64_t floats, int classes) {
  const int outputs = model::OutputsOf(spec.data.schema);
  const bool tokens = spec.data.schema.task == model::Task::kMultiClass && spec.data.train.arrays();
  const int64_t labels = tokens ? spec.data.schema.label_count : 1;
  const int64_t wanted = labels * (outputs > 0 ? outputs : classes);
  if (wanted == 0 ? floats % labels == 0 : floats == wanted) return absl::OkStatus();
  if (tokens) {
    return base::InvalidArgument(
        "the model has {} outputs a sample, the task multiClass with {} labels a sample and these data needs {}; for a "
        "class for each token, spec.data.schema.label.count is the number of tokens and the model's output "
        "[batch, tokens, classes]",
        floats, labels, wanted);
  }
  return base::InvalidArgument("the model has {} outputs a sample, the task {} with these data needs {}", floats,
                               model::TaskName(spec.data.schema.task), wanted);
}

}  // namespace

absl::StatusOr<Graph> ImportedGraph(const model::JobSpec& spec, std::shared_ptr<const exported::Program> program,
                                    int classes) {
  const model::CutSpec& wanted = spec.model.cut;
  auto imported = std::make_shared<ImportedModel>();
  MEDLEY_ASSIGN_OR_RETURN(cut::Cut cut, cut::Divide(std::move(program), {.depth = wanted.depth,
                                                                         .modules = wanted.modules,
                                                                         .finest = wanted.finest,
                                                                         .output = spec.model.output}));
  MEDLEY_RETURN_IF_ERROR(CheckOutputs(spec, cut.result_floats, classes));
  const Builder builder(cut, !spec.training.clip_norm.has_value());  // the norm is of dense gradients
  Graph graph;
  graph.name = "exported";
  graph.shape = ShapeOf(spec.data.schema);
  graph.clips_gradients = spec.training.clip_norm.has_value();
  MEDLEY_ASSIGN_OR_RETURN(imported->inputs, builder.Inputs(graph.shape, spec.data.schema.inputs));
  for (int i = 0; i < static_cast<int>(cut.operations.size()); ++i) {
    MEDLEY_ASSIGN_OR_RETURN(graph.operations.emplace_back(), builder.Convert(i, imported->inputs));
  }
  Operation loss;
  loss.kind = OperationKind::kLoss;
  loss.name = "loss";
  loss.inputs = {static_cast<int>(cut.operations.size()) - 1};
  loss.input_width = static_cast<int>(cut.result_floats);
  loss.loss = LossOf(spec);
  graph.operations.push_back(std::move(loss));
  imported->cut = std::make_shared<const cut::Cut>(std::move(cut));
  graph.imported = std::move(imported);
  return graph;
}

namespace {

absl::StatusOr<exported::Program> ReadProgram(const model::JobSpec& spec, const std::string& root) {
  constexpr size_t kScheme = 7;  // file://, which Validate has checked
  if (!spec.model.exported_uri.empty()) return exported::ReadArchive(root + spec.model.exported_uri.substr(kScheme));
  std::vector<torchscript::SampleInput> inputs;
  for (const model::InputSpec& input : spec.data.schema.inputs) {
    inputs.push_back({input.name, input.type != "float32", input.shape});
  }
  return torchscript::ReadTorchScript(root + spec.model.torchscript_uri.substr(kScheme), inputs);
}

}  // namespace

absl::StatusOr<Graph> ReadGraph(const model::JobSpec& spec, const std::string& root, int classes) {
  if (!spec.model.imported()) return BuildGraph(spec, classes);
  MEDLEY_RETURN_IF_ERROR(model::Validate(spec));
  MEDLEY_ASSIGN_OR_RETURN(exported::Program program, ReadProgram(spec, root));
  return ImportedGraph(spec, std::make_shared<const exported::Program>(std::move(program)), classes);
}

absl::StatusOr<Graph> ReadPredictionGraph(const model::JobSpec& spec, const std::string& root, int classes) {
  return spec.model.imported() ? ReadGraph(spec, root, classes) : PredictionGraph(spec, classes);
}

}  // namespace medley::worker
