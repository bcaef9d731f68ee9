#include "scheduler-service/profile/work.h"

#include <cmath>
#include <cstdlib>

#include "common/base/status.h"
#include "common/model/model.h"

namespace medley::sched {
namespace {

// Reads the attributes of one layer and keeps the first error.
class Attributes {
 public:
  explicit Attributes(const model::Layer& layer) : layer_(layer) {}

  bool Has(const char* name) const { return layer_.attributes.count(name) > 0; }

  std::string Text(const char* name) const {
    const auto found = layer_.attributes.find(name);
    return found == layer_.attributes.end() ? "" : found->second;
  }

  double Number(const char* name) {
    if (!Has(name)) return Fail(name, "is required for this kind");
    return Read(name);
  }

  double Number(const char* name, double otherwise) { return Has(name) ? Read(name) : otherwise; }

  const absl::Status& status() const { return status_; }

 private:
  double Read(const char* name) {
    const std::string text = Text(name);
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !std::isfinite(value) || value <= 0) {
      return Fail(name, "must be a number above 0, is '" + text + "'");
    }
    return value;
  }

  double Fail(const char* name, const std::string& what) {
    if (status_.ok()) {
      status_ = base::InvalidArgument("layer '{}' ({}): attributes.{} {}", layer_.name, layer_.kind, name, what);
    }
    return 1;
  }

  const model::Layer& layer_;
  absl::Status status_;
};

void Embedding(const model::Layer& layer, Attributes& a, LayerWork& work) {
  // Defaults: ids have 8 bytes, and the output is the concatenated rows.
  work.gathered_rows = a.Number("fields", std::max(1.0, layer.input_bytes / 8)) * a.Number("sequence", 1);
  const double dim = a.Number("dim", layer.output_bytes / work.dtype_bytes / work.gathered_rows);
  if (a.Has("rows")) work.parameters = a.Number("rows") * dim;
  work.gathered_bytes = work.gathered_rows * dim * work.dtype_bytes;
  work.distinct_share = a.Number("distinctShare", 1);
  work.forward_flops = 0;
  work.update_launches = 2;  // sum of the gradients of each row, update of the rows
}

// A sample uses each weight once: two operations per weight.
void FullyConnected(Attributes& a, LayerWork& work) {
  if (a.Has("units") && a.Has("width")) work.parameters = (a.Number("width") + 1) * a.Number("units");
  work.forward_flops = 2 * work.parameters;
  work.backward_factor = 2;
  work.forward_launches = 2;   // product with bias, activation
  work.backward_launches = 4;  // activation, two products, bias
  work.update_launches = 2;
}

void Convolution(const model::Layer& layer, Attributes& a, LayerWork& work) {
  const double units = a.Number("units");
  const double positions = layer.output_bytes / work.dtype_bytes / units;
  if (a.Has("kernelHeight") && a.Has("kernelWidth") && a.Has("channels")) {
    work.parameters = (a.Number("kernelHeight") * a.Number("kernelWidth") * a.Number("channels") + 1) * units;
  }
  work.forward_flops = 2 * work.parameters * positions;
  work.backward_factor = 2;
  work.forward_launches = 2;
  work.backward_launches = 4;
  work.update_launches = 2;
}

void Recurrent(Attributes& a, LayerWork& work) {
  const double sequence = a.Number("sequence");
  if (a.Has("units") && a.Has("width")) {
    const std::string cell = a.Text("cell");
    const double gates = cell == "lstm" ? 4 : cell == "rnn" ? 1 : 3;
    const double units = a.Number("units");
    work.parameters = gates * units * (a.Number("width") + units + 2);
  }
  work.forward_flops = 2 * work.parameters * sequence;
  work.backward_factor = 2;
  work.forward_launches = 2;  // of one step: product, gates
  work.backward_launches = 3;
  work.update_launches = 4;
  work.sequential = sequence;
}

// Four projections of units x units, the scores and the weighted sum.
void Attention(Attributes& a, LayerWork& work) {
  const double sequence = a.Number("sequence");
  const double units = a.Number("units");
  if (work.parameters == 0) work.parameters = 4 * units * (units + 1);
  work.forward_flops = 2 * work.parameters * sequence + 4 * sequence * sequence * units;
  work.forward_bytes += 2 * sequence * sequence * work.dtype_bytes;
  work.backward_factor = 2;
  work.forward_launches = 7;
  work.backward_launches = 14;
  work.update_launches = 8;
}

void Other(Attributes& a, LayerWork& work) {
  const std::string op = a.Text("op");
  if (op == "match" || op == "dot") {
    work.forward_flops = 2 * a.Number("rows") * a.Number("columns") * a.Number("width");
    work.backward_factor = 2;
    work.backward_launches = 2;
  } else if (a.Has("cosine")) {
    work.forward_flops += 6 * a.Number("cosine");
    work.forward_launches = 4;
    work.backward_launches = 4;
  }
}

// An operation of a model from PyTorch: its cut counted the operations of the forward pass.
void Counted(const model::Layer& layer, Attributes& a, LayerWork& work) {
  work.forward_flops = a.Text("flops") == "0" ? 0 : a.Number("flops");
  work.backward_factor = work.parameters > 0 ? 2 : 1;
  if (a.Has("activationBytes")) {
    work.activation_bytes = a.Number("activationBytes");
    work.forward_bytes = layer.input_bytes + 2 * work.activation_bytes;
  }
  work.forward_launches = a.Number("calls", 2);
  work.backward_launches = (work.parameters > 0 ? 2 : 1) * work.forward_launches;
}

}  // namespace

absl::StatusOr<LayerWork> WorkOf(const model::Layer& layer) {
  Attributes a(layer);
  LayerWork work;
  work.dtype_bytes = a.Number("dtypeBytes", 4);
  work.parameters = layer.weight_bytes / work.dtype_bytes;
  work.forward_bytes = layer.input_bytes + layer.output_bytes;
  // Default for kinds without a formula: some operations per number, as for an activation, a sum or a softmax.
  constexpr double kFlopsPerNumber = 4;
  work.forward_flops = kFlopsPerNumber * std::max(layer.input_bytes, layer.output_bytes) / work.dtype_bytes;
  if (work.parameters > 0) work.update_launches = 2;
  if (a.Has("flops") && layer.kind != "EMBEDDING") {
    Counted(layer, a, work);
  } else if (layer.kind == "EMBEDDING") {
    Embedding(layer, a, work);
  } else if (layer.kind == "FULLY_CONNECTED") {
    FullyConnected(a, work);
  } else if (layer.kind == "CONVOLUTION") {
    Convolution(layer, a, work);
  } else if (layer.kind == "RECURRENT") {
    Recurrent(a, work);
  } else if (layer.kind == "ATTENTION") {
    Attention(a, work);
  } else if (layer.kind == "LOSS") {
    constexpr double kScalarOperations = 80;  // per number: an exponential, a logarithm, the gradient
    work.scalar_operations = kScalarOperations * layer.input_bytes / work.dtype_bytes;
    work.forward_launches = 2;
    work.backward_launches = 2;
  } else if (layer.kind != "POOLING" && layer.kind != "NORMALIZATION" && layer.kind != "ACTIVATION") {
    Other(a, work);
  }
  if (!a.status().ok()) return a.status();
  return work;
}

}  // namespace medley::sched
