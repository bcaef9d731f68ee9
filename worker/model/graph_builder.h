// Adds the operations of a graph one by one. Used by the files that build graphs; not thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/model/job_spec.h"
#include "worker/model/graph.h"

namespace medley::worker {

inline constexpr float kEmbeddingScale = 0.05F;

// The categorical ids of a sample that an embedding looks up.
struct Fields {
  int first = 0;
  int count = 0;
};

// Adds operations one by one. Each takes the output of the one that was added before, unless inputs are named.
class GraphBuilder {
 public:
  explicit GraphBuilder(Graph& graph) : graph_(graph) {}

  Fields AllFields() const { return {0, graph_.shape.fields}; }
  int last() const { return static_cast<int>(graph_.operations.size()) - 1; }
  int Width(int operation) const { return graph_.operations[static_cast<size_t>(operation)].output_width; }
  // The operation that was added last, for what the functions below do not say.
  Operation& added() { return graph_.operations.back(); }

  // The next operation takes the output of this one.
  GraphBuilder& From(int operation) {
    from_ = operation;
    return *this;
  }

  void Embedding(std::string name, int dim, int64_t rows, bool sum_fields, Fields fields, bool numerics = true) {
    Operation operation;
    operation.kind = OperationKind::kEmbedding;
    operation.name = std::move(name);
    operation.sum_fields = sum_fields;
    operation.reads_numerics = numerics;
    operation.output_width = (sum_fields ? 1 : fields.count) * dim + (numerics ? graph_.shape.numerics : 0);
    operation.parameters = {{.operation = last() + 1,
                             .name = "table",
                             .rows = rows,
                             .columns = dim,
                             .sparse = true,
                             .initializer = sum_fields ? Initializer::kZero : Initializer::kUniform,
                             .scale = kEmbeddingScale,
                             .first_field = fields.first,
                             .fields = fields.count}};
    graph_.operations.push_back(std::move(operation));
  }

  void FullyConnected(std::string name, int out, Activation activation, bool pass_first = false) {
    Operation operation;
    operation.kind = OperationKind::kFullyConnected;
    operation.name = std::move(name);
    TakeOne(operation);
    operation.reads_numerics = operation.inputs.empty();
    operation.output_width = out;
    operation.activation = activation;
    operation.pass_first = pass_first;
    operation.parameters = {
        {.operation = last() + 1,
         .name = "weight",
         .rows = operation.reads_numerics ? graph_.shape.numerics : operation.input_width,
         .columns = out,
         .initializer = activation == Activation::kRelu ? Initializer::kHeUniform : Initializer::kXavierUniform},
        {.operation = last() + 1, .name = "bias", .rows = 1, .columns = out}};
    graph_.operations.push_back(std::move(operation));
  }

  // For the outputs of the operation that was added before.
  void Dropout(double fraction) { graph_.operations.back().dropout = fraction; }

  // A hidden layer of a named model.
  void Hidden(std::string name, int out, double dropout) {
    FullyConnected(std::move(name), out, Activation::kRelu);
    Dropout(dropout);
  }

  // An operation with these inputs, which are not equally wide.
  void Join(std::string name, OperationKind kind, std::vector<int> inputs, int width) {
    Operation operation;
    operation.kind = kind;
    operation.name = std::move(name);
    operation.inputs = std::move(inputs);
    for (const int input : operation.inputs) operation.input_width += Width(input);
    operation.output_width = width;
    graph_.operations.push_back(std::move(operation));
  }

  // Adds or multiplies the outputs of `other` and of the last operation, which are equally wide.
  void Combine(std::string name, OperationKind kind, int other) {
    Operation operation;
    operation.kind = kind;
    operation.name = std::move(name);
    operation.inputs = {other, last()};
    operation.input_width = Width(last());
    operation.output_width = operation.input_width;
    graph_.operations.push_back(std::move(operation));
  }

  void Loss(std::string name, LossKind loss) {
    Operation operation;
    operation.kind = OperationKind::kLoss;
    operation.name = std::move(name);
    operation.loss = loss;
    TakeOne(operation);
    graph_.operations.push_back(std::move(operation));
  }

 private:
  void TakeOne(Operation& operation) {
    const int from = std::exchange(from_, kLastAdded);
    if (last() < 0) return;
    operation.inputs = {from == kLastAdded ? last() : from};
    operation.input_width = Width(operation.inputs.front());
  }

  static constexpr int kLastAdded = -1;

  Graph& graph_;
  int from_ = kLastAdded;
};

// Adds the operations of spec.model.layers, which have been checked.
absl::Status AddLayers(const model::JobSpec& spec, LossKind loss, GraphBuilder& graph);

}  // namespace medley::worker
