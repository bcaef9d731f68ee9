#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>

#include "common/base/status.h"
#include "common/model/layer_kinds.h"

namespace medley::model {
namespace {

// "spec.model.layers[3].dim ('pairs')".
std::string PlaceOfLayer(size_t index, const LayerSpec& layer, std::string_view field = "") {
  return fmt::format("spec.model.layers[{}]{}{} ('{}')", index, field.empty() ? "" : ".", field, layer.name);
}

class LayerResolver {
 public:
  LayerResolver(const ModelSpec& model, const SchemaSpec& schema)
      : layers_(model.layers),
        rows_(model.embedding_rows),
        numerics_(static_cast<int>(schema.numeric.size())),
        ids_(static_cast<int>(schema.categorical.size()) + (schema.numeric_buckets > 0 ? numerics_ : 0)) {}

  absl::StatusOr<std::vector<ResolvedLayer>> Resolve() {
    for (size_t i = 0; i < layers_.size(); ++i) {
      MEDLEY_RETURN_IF_ERROR(CheckKind(i));
      MEDLEY_ASSIGN_OR_RETURN(ResolvedLayer layer, One(i));
      resolved_.push_back(std::move(layer));
    }
    MEDLEY_RETURN_IF_ERROR(CheckUses());
    MEDLEY_RETURN_IF_ERROR(CheckNegatives());
    return std::move(resolved_);
  }

 private:
  // The layer has no field that its kind does not have.
  absl::Status CheckKind(size_t i) const {
    const LayerSpec& layer = layers_[i];
    const unsigned fields = LayerKindNamed(layer.kind)->fields;
    struct Given {
      std::string_view name;
      unsigned bit;
      bool given;
    };
    // Those of a Dropout have a rule of their own.
    const std::array<Given, 8> all = {{{"out", kOut, layer.out > 0 && layer.kind != "Loss"},
                                       {"dim", kDim, layer.dim > 0},
                                       {"first", kFirst, layer.first > 0},
                                       {"fields", kFields, layer.fields > 0},
                                       {"combine", kCombine, !layer.combine.empty()},
                                       {"numerics", kWithNumerics, !layer.numerics},
                                       {"negatives", kNegatives, layer.negatives > 0},
                                       {"activation", kActivation, !layer.activation.empty()}}};
    for (const Given& field : all) {
      if (!field.given || (fields & field.bit) != 0) continue;
      return base::InvalidArgument("{}: a layer of the kind {} has none", PlaceOfLayer(i, layer, field.name),
                                   layer.kind);
    }
    if ((fields & kNeedsDim) != 0 && layer.dim == 0) {
      return base::InvalidArgument("{}: a layer of the kind {} needs it: how long its vectors are",
                                   PlaceOfLayer(i, layer, "dim"), layer.kind);
    }
    const bool adds = layer.combine == "sum" || layer.combine.empty();
    if (layer.kind == "Embedding" ? adds || layer.combine == "concatenate" : layer.combine != "concatenate") {
      return absl::OkStatus();
    }
    return base::InvalidArgument("{}: '{}' is not one of {}", PlaceOfLayer(i, layer, "combine"), layer.combine,
                                 layer.kind == "Embedding" ? "concatenate, sum" : "sum, mean, max");
  }

  absl::StatusOr<ResolvedLayer> One(size_t i) {
    const LayerSpec& layer = layers_[i];
    if (layer.kind == "Dropout") return ResolvedLayer{};
    ResolvedLayer resolved;
    MEDLEY_ASSIGN_OR_RETURN(resolved.inputs, InputsOf(i));
    if (layer.kind == "Embedding") return Embedding(i);
    const bool reads = resolved.inputs.empty() && layer.kind != "Loss";
    if (reads && numerics_ == 0) {
      return base::InvalidArgument("spec.model: a model without embedding needs numeric columns in spec.data.schema");
    }
    if (layer.kind == "Loss") return resolved;
    if (layer.kind == "FullyConnected") {
      resolved.width = layer.out;
      return resolved;
    }
    if (layer.kind == "Numerics" || reads) {
      resolved.width = numerics_;
      return resolved;
    }
    std::vector<NamedWidth> widths;
    for (const int input : resolved.inputs) {
      widths.push_back({layers_[static_cast<size_t>(input)].name, resolved_[static_cast<size_t>(input)].width});
    }
    const absl::StatusOr<int64_t> width = VectorLayerWidth({layer.kind, layer.dim, layer.first, layer.out}, widths);
    if (!width.ok()) {
      return base::InvalidArgument("{}: {} {}", PlaceOfLayer(i, layer), layer.kind, base::Message(width.status()));
    }
    resolved.width = *width;
    return resolved;
  }

  absl::StatusOr<std::vector<int>> InputsOf(size_t i) const {
    const LayerSpec& layer = layers_[i];
    const LayerKind& kind = *LayerKindNamed(layer.kind);
    const std::string place = PlaceOfLayer(i, layer, "inputs");
    std::vector<int> inputs;
    for (const std::string& name : layer.inputs) {
      const auto found = std::ranges::find(layers_, name, &LayerSpec::name);
      const auto index = static_cast<int>(found - layers_.begin());
      if (index >= static_cast<int>(i)) {
        return base::InvalidArgument("{}: no layer before it is '{}'", place, name);
      }
      if (found->kind == "Dropout") {
        return base::InvalidArgument("{}: '{}' is a Dropout, which belongs to the layer before it: name that one",
                                     place, name);
      }
      if (!inputs.empty() && index <= inputs.back()) {
        return base::InvalidArgument("{}: must be different layers, in the order of spec.model.layers", place);
      }
      inputs.push_back(index);
    }
    if (inputs.empty() && kind.least_inputs == 1) {
      auto before = static_cast<int>(i) - 1;
      if (before >= 0 && layers_[static_cast<size_t>(before)].kind == "Dropout") --before;
      if (before >= 0) inputs.push_back(before);
      if (before < 0 && layer.kind != "FullyConnected" && layer.kind != "Loss") {
        return base::InvalidArgument("{}: the first layer must be an Embedding, Numerics or FullyConnected", place);
      }
      return inputs;
    }
    const int count = static_cast<int>(inputs.size());
    if (count >= kind.least_inputs && count <= kind.most_inputs) return inputs;
    const std::string wanted = kind.most_inputs == 0 ? "none"
                               : kind.least_inputs == kind.most_inputs
                                   ? fmt::format("{}", kind.most_inputs)
                                   : fmt::format("{} to {}", kind.least_inputs, kind.most_inputs);
    return base::InvalidArgument("{}: a layer of the kind {} has {}, not {}", place, layer.kind, wanted, count);
  }

  absl::StatusOr<ResolvedLayer> Embedding(size_t i) const {
    const LayerSpec& layer = layers_[i];
    if (ids_ == 0) {
      return base::InvalidArgument(
          "spec.model: an embedding needs categorical columns or numericBuckets in spec.data.schema");
    }
    const int fields = layer.fields > 0 ? layer.fields : ids_ - layer.first;
    if (fields < 1 || layer.first + fields > ids_) {
      return base::InvalidArgument("{}: it would look up the ids {} to {}, but a sample has {}, counted from 0",
                                   PlaceOfLayer(i, layer, "fields"), layer.first, layer.first + std::max(fields, 1) - 1,
                                   ids_);
    }
    for (size_t other = 0; other < i; ++other) {
      const LayerSpec& before = layers_[other];
      if (before.kind != "Embedding" || before.first >= layer.first + fields) continue;
      if (before.first + resolved_[other].fields <= layer.first) continue;
      return base::InvalidArgument("{}: the Embedding '{}' has some of its ids; give each its own by first and fields",
                                   PlaceOfLayer(i, layer, "kind"), before.name);
    }
    const int64_t vectors = layer.combine == "sum" ? 1 : fields + layer.negatives;
    ResolvedLayer resolved{.width = vectors * layer.out + (layer.numerics ? numerics_ : 0), .fields = fields};
    if (layer.negatives > 0) MEDLEY_RETURN_IF_ERROR(CheckDrawn(i, fields));
    if (resolved.width <= kMostLayerWidth) return resolved;
    return base::InvalidArgument("{}: gives {} numbers for each sample; at most {} are possible",
                                 PlaceOfLayer(i, layer), resolved.width, kMostLayerWidth);
  }

  absl::Status CheckDrawn(size_t i, int fields) const {
    const LayerSpec& layer = layers_[i];
    if (layer.negatives >= rows_) {
      return base::InvalidArgument(
          "{}: {} rows cannot be drawn beside that of the sample from a table of {} rows "
          "(spec.model.parameters.embeddingRows)",
          PlaceOfLayer(i, layer, "negatives"), layer.negatives, rows_);
    }
    if (fields != 1 || layer.first + fields != ids_ || layer.numerics || layer.combine == "sum") {
      return base::InvalidArgument(
          "{}: an Embedding that draws rows looks up the last id of the sample only ({} to {} are given), "
          "concatenates, and has numerics: false",
          PlaceOfLayer(i, layer, "negatives"), layer.first, layer.first + fields - 1);
    }
    return absl::OkStatus();
  }

  // Every output but the loss's is used.
  absl::Status CheckUses() const {
    std::vector<bool> used(layers_.size(), false);
    for (const ResolvedLayer& layer : resolved_) {
      for (const int input : layer.inputs) used[static_cast<size_t>(input)] = true;
    }
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (used[i] || layers_[i].kind == "Dropout" || layers_[i].kind == "Loss") continue;
      return base::InvalidArgument("{}: no layer after it takes its outputs", PlaceOfLayer(i, layers_[i]));
    }
    return absl::OkStatus();
  }

  // The loss and the embedding that draws rows say the same number.
  absl::Status CheckNegatives() const {
    const LayerSpec& loss = layers_.back();
    int drawn = 0;
    for (const LayerSpec& layer : layers_) {
      if (layer.kind == "Embedding") drawn = std::max(drawn, layer.negatives);
    }
    if (loss.negatives == drawn) return absl::OkStatus();
    return base::InvalidArgument("{}: must be {}, as many as the Embedding draws",
                                 PlaceOfLayer(layers_.size() - 1, loss, "negatives"), drawn);
  }

  const std::vector<LayerSpec>& layers_;
  const int64_t rows_;
  const int numerics_;
  const int ids_;
  std::vector<ResolvedLayer> resolved_;
};

}  // namespace

absl::StatusOr<std::vector<ResolvedLayer>> ResolveLayers(const ModelSpec& model, const SchemaSpec& schema) {
  return LayerResolver(model, schema).Resolve();
}

}  // namespace medley::model
