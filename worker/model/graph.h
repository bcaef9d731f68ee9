// Builds the graph of operations of a job's model, with shapes and parameters. Pure; no torch. imported_graph.h does so
// for models that were exported from PyTorch.
//
//   ctrdnn:    embedding (ids -> fields x dim, then the numeric features) | fc1 .. fcN (relu) | fc_out | loss
//   mlp:       fc1 .. fcN (relu, on the numeric features) | fc_out | loss
//   logistic:  embedding (dim = outputs, summed, then the numeric features) | fc_out (adds a linear form) | loss
//   residual:  ctrdnn (mlp without ids), where an addition follows hidden layer 3, 5, ...: its output plus the output
//              of two layers before, if they are equally wide
//   two-tower: embedding_1 | fc1_1 .. fc1_N (relu) on the first half of the ids, embedding_2 | fc2_1 .. fc2_N on the
//              others and the numeric features; their product, element by element | fc_out | loss
//   spec.model.layers: any layers of common/model/layer_kinds.h
//
// Dropout is no operation of its own: it belongs to the operation before it, as activations do. Those of hidden layers
// have it in the named models.
// The last fully connected layer has as many outputs as the task needs: 1, or one for each class or label.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/model/forward.h"
#include "worker/cut/cut.h"
#include "worker/data/batch.h"
#include "worker/data/inputs.h"
#include "worker/params/parameter_spec.h"

namespace medley::model {
struct JobSpec;
}

namespace medley::worker {

enum class OperationKind {
  kEmbedding,
  kFullyConnected,
  kAdd,       // of two inputs or more
  kMultiply,  // of two inputs, element by element
  kLoss,
  kImported,  // of Graph::imported
  // Those of common/model/layer_kinds.h. What they compute: vector_layers.h; of kCross: kernels.h.
  kNumerics,
  kCross,
  kConcat,
  kSlice,
  kPool,
  kInteraction,
  kFactorizationMachine,
  kMatch,
  kInnerProduct,
  kCosine,
};
enum class Combine { kSum, kMean, kMax };
enum class Activation { kNone, kRelu, kSigmoid, kTanh };
enum class LossKind { kLogistic, kSquared, kAbsolute, kSoftmax, kOutput };  // worker/model/losses.h

struct Operation {
  OperationKind kind = OperationKind::kFullyConnected;
  std::string name;
  std::vector<int> inputs;      // operations before it whose outputs it takes, ascending; empty: it reads the batch
  int input_width = 0;          // floats per sample of each input (if they differ: of all); 0 without inputs
  int output_width = 0;         // floats per sample; 0 for the loss
  bool reads_numerics = false;  // an embedding that appends them; a fully connected layer without inputs
  bool reads_batch = false;     // exported: it takes inputs of the model
  std::string module_kind;      // exported: the class of the module, "Linear"
  double flops = 0;             // exported: of the forward pass of a sample
  Activation activation = Activation::kNone;
  double dropout = 0;       // part of the outputs that training sets to 0, in [0, 1); others are divided by 1 - dropout
  bool sum_fields = false;  // embedding: add a sample's rows instead of concatenating them
  bool pass_first = false;  // fully connected: input i < outputs has the fixed weight 1 to output i, 0 to the others
  int dim = 0;              // layers of vectors: how long these are; 0: each input is one
  int first = 0;            // kSlice: the first number that it takes of each vector
  Combine combine = Combine::kSum;  // kPool
  LossKind loss = LossKind::kLogistic;
  int negatives = 0;  // loss: its inputs after the first, of rows that were drawn for the sample; their label is 0
  std::vector<float> class_weights;  // loss: factors of samples by class; empty: 1
  std::vector<ParameterSpec> parameters;

  // Its only parameter is sparse.
  bool HasTable() const { return !parameters.empty() && parameters.front().sparse; }
};

// The sparse or the dense parameters of operations, in order.
std::vector<ParameterSpec> ParametersOf(std::span<const Operation> operations, bool sparse);

// What a model that was exported from PyTorch computes. Operation i < operations.size() - 1 of the graph is operation i
// of the cut; the last one is the loss.
struct ImportedModel {
  std::shared_ptr<const cut::Cut> cut;
  std::vector<InputSlice> inputs;  // where each input of the model is in a sample
};

struct Graph {
  std::string name;
  SampleShape shape;
  std::vector<Operation> operations;              // in topological order; the last one is the loss
  bool clips_gradients = false;                   // by the norm over all parameters
  std::shared_ptr<const ImportedModel> imported;  // null: the operations' kinds say what they compute

  // How many numbers a prediction has.
  int Outputs() const { return operations.back().input_width - operations.back().negatives; }
  // The sparse or the dense parameters of the operations, in order.
  std::vector<ParameterSpec> Parameters(bool sparse) const { return ParametersOf(operations, sparse); }
  // The model in the form that planners take, without profiles.
  model::Model ToModel() const;
};

// The loss that the task of the job trains.
LossKind LossOf(const model::JobSpec& spec);

// `classes`: of Task::kMultiClass, as the training data tell. While it is not known (0), and the spec does not tell,
// the last layer has kUnknownClasses outputs, which is enough for those that need only the operations and the tables;
// others use FitGraph (fit_graph.h). Errors: InvalidArgument naming the field of the spec, also when the model does not
// fit the data's schema or its classes.
inline constexpr int kUnknownClasses = 2;
absl::StatusOr<Graph> BuildGraph(const model::JobSpec& spec, int classes = 0);

// The graph of predictions, for which no rows are drawn. Errors: as BuildGraph; InvalidArgument naming a layer whose
// weights would have another shape.
absl::StatusOr<Graph> PredictionGraph(const model::JobSpec& spec, int classes = 0);

}  // namespace medley::worker
