#include "worker/trainer/trainer_state.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/status.h"
#include "worker/checkpoint/reader.h"
#include "worker/params/initialize.h"
#include "worker/pipeline/local_tables.h"

namespace medley::worker {

namespace {

// Where the only block with tables computes, if it has room for them; else in the host's memory. Null: there are none.
absl::StatusOr<std::shared_ptr<WholeTables>> MakeTables(const BlockSettings& settings,
                                                        const std::vector<std::unique_ptr<BlockCompute>>& models,
                                                        const std::vector<ParameterSpec>& specs) {
  if (specs.empty()) return nullptr;
  for (const auto& model : models) {
    if (model->Tables().size() != specs.size()) continue;
    TableKeeper* const keeper = KeeperOf(*model);
    if (keeper == nullptr) continue;
    MEDLEY_ASSIGN_OR_RETURN(std::shared_ptr<WholeTables> tables,
                            keeper->MakeTables(settings.optimizer, settings.seed, settings.kept_updates));
    if (tables != nullptr) return tables;
  }
  return std::make_shared<LocalTables>(specs, settings.optimizer, settings.seed, settings.kept_updates);
}

}  // namespace

absl::StatusOr<std::shared_ptr<TrainerState>> TrainerState::Create(const Graph& graph, const Options& options) {
  std::vector<std::unique_ptr<BlockCompute>> models;
  std::vector<ParameterSpec> tables;
  for (const model::OperationRange& block : options.blocks) {
    MEDLEY_ASSIGN_OR_RETURN(auto model, options.make_block(graph, block, options.settings));
    if (options.local_tables) tables.insert(tables.end(), model->Tables().begin(), model->Tables().end());
    models.push_back(std::move(model));
  }
  if (!tables.empty() && options.settings.optimizer.lifetime.Counts()) {
    return base::FailedPrecondition(
        "spec.training.embeddings: the plan keeps whole tables in trainers, where all keys have rows");
  }
  MEDLEY_ASSIGN_OR_RETURN(std::shared_ptr<WholeTables> whole, MakeTables(options.settings, models, tables));
  std::shared_ptr<TrainerState> state(
      new TrainerState(options, std::move(models), std::move(tables), std::move(whole)));
  for (const Held& parameter : state->Parameters()) {
    if (parameter.spec.stored_rows.bytes == nullptr) continue;
    // spec.model.initialFrom: instead of what the model has written.
    std::vector<float> values(parameter.weights.size());
    Initialize(parameter.spec, options.settings.seed, values);
    MEDLEY_RETURN_IF_ERROR(parameter.weights.Store(0, values));
  }
  return state;
}

TrainerState::TrainerState(Options options, std::vector<std::unique_ptr<BlockCompute>> models,
                           std::vector<ParameterSpec> specs, std::shared_ptr<WholeTables> tables)
    : options_(std::move(options)),
      models_(std::move(models)),
      table_specs_(std::move(specs)),
      tables_(std::move(tables)) {
  std::set<int> operations;
  for (const Held& parameter : Parameters()) operations.insert(parameter.spec.operation);
  for (const ParameterSpec& table : table_specs_) operations.insert(table.operation);
  holds_.assign(operations.begin(), operations.end());
}

TableCounts TrainerState::DeviceTables() const {
  TableCounts sum;
  for (const auto& model : models_) {
    const TableKeeper* const keeper = KeeperOf(*model);
    if (keeper == nullptr) continue;
    const TableCounts counts = keeper->Counts();
    if (sum.place == model::TablePlace::kUnspecified) sum.place = counts.place;
    if (sum.instead.empty()) sum.instead = counts.instead;
    sum.used_rows += counts.used_rows;
    sum.found_rows += counts.found_rows;
    sum.bytes_in += counts.bytes_in;
    sum.bytes_out += counts.bytes_out;
  }
  return sum;
}

std::vector<TrainerState::Held> TrainerState::Parameters() {
  const size_t state_floats = StateFloats(options_.settings.optimizer.kind);
  std::vector<Held> all;
  for (const auto& model : models_) {
    const std::vector<DenseParameter> parameters = model->Parameters();
    for (size_t p = 0; p < parameters.size(); ++p) {
      all.push_back({parameters[p].spec, DenseValues(*model, p, parameters[p], DensePart::kWeights, state_floats),
                     DenseValues(*model, p, parameters[p], DensePart::kState, state_floats)});
    }
  }
  return all;
}

bool TrainerState::Has(int operation) const {
  return std::ranges::any_of(options_.blocks, [&](const auto& block) { return block.Contains(operation); });
}

int64_t TrainerState::DenseStep() const {
  int64_t step = models_.front()->AppliedStep();
  for (const auto& model : models_) step = std::min(step, model->AppliedStep());
  return step;
}

int64_t TrainerState::AppliedStep() const {
  return tables_ == nullptr ? DenseStep() : std::min(DenseStep(), tables_->AppliedStep());
}

int64_t TrainerState::AgreedStep() const {
  int64_t step = AppliedStep();
  for (const auto& model : models_) step = std::min(step, model->AgreedStep());
  return step;
}

absl::Status TrainerState::SetDiffers(bool differs) {
  for (const auto& model : models_) {
    model->ForgetAgreed();
    if (differs && !model->Parameters().empty()) MEDLEY_RETURN_IF_ERROR(model->KeepAgreed());
  }
  return absl::OkStatus();
}

int64_t TrainerState::UndoLimit() const {
  int64_t limit = tables_ == nullptr ? 0 : tables_->UndoLimit();
  for (const auto& model : models_) limit = std::max(limit, model->UndoLimit());
  return limit;
}

int64_t TrainerState::samples() const {
  int64_t samples = base_samples_;
  const int64_t applied = AppliedStep();
  for (const auto& [step, count] : begun_) samples += step <= applied ? count : 0;
  return samples;
}

void TrainerState::BeginStep(int64_t step, int64_t samples) {
  const int64_t kept = std::min(UndoLimit(), AppliedStep());
  while (!begun_.empty() && begun_.begin()->first <= kept) {
    base_samples_ += begun_.begin()->second;
    begun_.erase(begun_.begin());
  }
  begun_[step] = samples;
}

absl::Status TrainerState::UndoTo(int64_t step) {
  if (step > AppliedStep()) {
    return base::FailedPrecondition("the trainer has applied step {} and cannot roll back to the later step {}",
                                    AppliedStep(), step);
  }
  for (const auto& model : models_) MEDLEY_RETURN_IF_ERROR(model->UndoTo(step));
  if (tables_ != nullptr) MEDLEY_RETURN_IF_ERROR(tables_->UndoTo(step));
  begun_.erase(begun_.upper_bound(step), begun_.end());
  return absl::OkStatus();
}

void TrainerState::SetApplied(int64_t step, int64_t samples) {
  for (const auto& model : models_) model->SetAppliedStep(step);
  if (tables_ != nullptr) tables_->SetAppliedStep(step);
  base_samples_ = samples;
  begun_.clear();
}

std::vector<DenseValues> TrainerState::Values(int operation) {
  std::vector<DenseValues> values;
  for (const Held& parameter : Parameters()) {
    if (parameter.spec.operation != operation) continue;
    values.push_back(parameter.weights);
    values.push_back(parameter.state);
  }
  for (const ParameterSpec& table : table_specs_) {
    if (table.operation != operation) continue;
    values.emplace_back(tables_->Weights(operation));
    values.emplace_back(tables_->State(operation));
  }
  return values;
}

absl::Status TrainerState::Load(const Volume& volume, const CheckpointManifest& manifest) {
  const std::vector<Held> parameters = Parameters();
  size_t loaded = 0;
  CheckpointHandlers handlers;
  // A checkpoint has one copy of a parameter: that of its owner.
  const auto is_of = [](const Held& parameter, int32_t operation) {
    return (parameter.spec.copy_of >= 0 ? parameter.spec.copy_of : parameter.spec.operation) == operation;
  };
  handlers.wanted_dense = [&](int32_t operation) {
    return Has(operation) || std::ranges::any_of(parameters, [&](const auto& one) { return is_of(one, operation); });
  };
  handlers.dense = [&](int32_t operation, std::string_view name, std::span<const float> weights,
                       std::span<const float> state) -> absl::Status {
    for (const Held& parameter : parameters) {
      if (!is_of(parameter, operation) || parameter.spec.name != name) continue;
      if (weights.size() != parameter.weights.size() || state.size() != parameter.state.size()) {
        return base::DataLoss("operation {}, parameter '{}': the checkpoint has {} weights, the model {}", operation,
                              name, weights.size(), parameter.weights.size());
      }
      MEDLEY_RETURN_IF_ERROR(parameter.weights.Store(0, weights));
      MEDLEY_RETURN_IF_ERROR(parameter.state.Store(0, state));
      ++loaded;
    }
    return absl::OkStatus();
  };
  handlers.wanted_rows = [&](int32_t table) { return tables_ != nullptr && Has(table); };
  handlers.rows = [&](int32_t table, int32_t width, std::span<const uint64_t> keys,
                      std::span<const float> values) -> absl::Status {
    const std::span<float> weights = tables_->Weights(table), state = tables_->State(table);
    const auto spec = std::ranges::find(table_specs_, table, &ParameterSpec::operation);
    if (spec == table_specs_.end()) return base::DataLoss("the checkpoint has rows of the unknown table {}", table);
    const auto columns = static_cast<size_t>(spec->columns);
    const auto floats = static_cast<size_t>(width);
    if (!IsRowWidth(options_.settings.optimizer.kind, columns, floats)) {
      return base::DataLoss("table {}: a row of the checkpoint has {} floats, a row of the model {}", table, width,
                            RowFloats(options_.settings.optimizer.kind, columns));
    }
    const size_t state_columns = columns * StateFloats(options_.settings.optimizer.kind);
    for (size_t k = 0; k < keys.size(); ++k) {
      if ((keys[k] + 1) * columns > weights.size())
        return base::DataLoss("the checkpoint has a row {1} of table {0}, which the model does not have", table,
                              keys[k]);
      const auto row = values.begin() + static_cast<std::ptrdiff_t>(k * floats);
      std::copy_n(row, columns, weights.begin() + static_cast<std::ptrdiff_t>(keys[k] * columns));
      std::copy_n(row + static_cast<std::ptrdiff_t>(columns), state_columns,
                  state.begin() + static_cast<std::ptrdiff_t>(keys[k] * state_columns));
    }
    return absl::OkStatus();
  };
  MEDLEY_RETURN_IF_ERROR(ReadCheckpoint(volume, manifest, std::move(handlers)));
  if (loaded != parameters.size()) {
    return base::DataLoss("checkpoint {} has {} of the {} dense parameters of this trainer", manifest.folder, loaded,
                          parameters.size());
  }
  SetApplied(manifest.step, SamplesAt(manifest));
  return absl::OkStatus();
}

absl::StatusOr<TrainerSnapshot> TrainerState::Snapshot(const std::set<int>& operations) {
  const auto copy = [](std::span<const float> values) { return std::vector<float>(values.begin(), values.end()); };
  TrainerSnapshot snapshot;
  for (const Held& parameter : Parameters()) {
    if (!operations.contains(parameter.spec.operation) || parameter.spec.copy_of >= 0) continue;
    MEDLEY_ASSIGN_OR_RETURN(std::vector<float> weights, parameter.weights.Copy());
    MEDLEY_ASSIGN_OR_RETURN(std::vector<float> state, parameter.state.Copy());
    snapshot.dense.push_back({parameter.spec.operation, parameter.spec.name, std::move(weights), std::move(state)});
  }
  for (const ParameterSpec& table : table_specs_) {
    if (!operations.contains(table.operation)) continue;
    snapshot.tables.push_back({table.operation, static_cast<size_t>(table.columns),
                               copy(tables_->Weights(table.operation)), copy(tables_->State(table.operation))});
    MEDLEY_RETURN_IF_ERROR(tables_->Failure());
  }
  return snapshot;
}

int64_t SamplesAt(const CheckpointManifest& manifest) {
  if (manifest.rows <= 0 || manifest.batch_size <= 0) return 0;
  const int64_t batch = manifest.batch_size;
  const int64_t steps_an_epoch = (manifest.rows + batch - 1) / batch;
  const int64_t epochs = manifest.step / steps_an_epoch;
  const int64_t steps = manifest.step % steps_an_epoch;
  return epochs * manifest.rows + std::min(manifest.rows, steps * batch);
}

}  // namespace medley::worker
