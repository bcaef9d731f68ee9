// Builds the chain of operations of a job's model, with shapes and parameters. Pure; no torch.
//
//   ctrdnn:   embedding (ids -> fields x dim, then the numeric features) | fc1 .. fcN (relu) | fc_out | loss
//   mlp:      fc1 .. fcN (relu, on the numeric features) | fc_out | loss
//   logistic: embedding (dim = outputs, summed, then the numeric features) | fc_out (adds them to a linear form) | loss
//   spec.model.layers: [Embedding] FullyConnected... Loss
//
// The last fully connected layer has as many outputs as the task needs: 1, or one for each class or label.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/model/job_spec.h"
#include "common/model/model.h"
#include "worker/data/batch.h"
#include "worker/params/parameter_spec.h"

namespace medley::worker {

enum class OperationKind { kEmbedding, kFullyConnected, kLoss };
enum class Activation { kNone, kRelu, kSigmoid, kTanh };
enum class LossKind { kLogistic, kSquared, kAbsolute, kSoftmax };  // worker/model/losses.h

struct Operation {
  OperationKind kind = OperationKind::kFullyConnected;
  std::string name;
  int input_width = 0;          // floats per sample from the operation before; 0 for an embedding or a first operation
  int output_width = 0;         // floats per sample; 0 for the loss
  bool reads_numerics = false;  // true for the first fully connected layer of a model without embedding
  Activation activation = Activation::kNone;
  bool sum_fields = false;  // embedding: add a sample's rows instead of concatenating them
  bool pass_first = false;  // fully connected: input i < outputs has the fixed weight 1 to output i, 0 to the others
  LossKind loss = LossKind::kLogistic;
  std::vector<float> class_weights;  // loss: factors of samples by class; empty: 1
  std::vector<ParameterSpec> parameters;
};

struct Graph {
  std::string name;
  SampleShape shape;
  std::vector<Operation> operations;  // a chain

  int Outputs() const { return operations.back().input_width; }
  // The sparse or the dense parameters of the operations, in order.
  std::vector<ParameterSpec> Parameters(bool sparse) const;
  // The model in the form that planners take, without profiles.
  model::Model ToModel() const;
};

// `classes`: of Task::kMultiClass, as the training data tell. While it is not known (0), and the spec does not tell,
// the last layer has kUnknownClasses outputs, which is enough for those that need only the operations and the tables;
// others use FitGraph (fit_graph.h). Errors: InvalidArgument naming the field of the spec, also when the model does not
// fit the data's schema or its classes.
inline constexpr int kUnknownClasses = 2;
absl::StatusOr<Graph> BuildGraph(const model::JobSpec& spec, int classes = 0);

}  // namespace medley::worker
