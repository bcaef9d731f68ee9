// Calls with weights: products, attention, tables, convolutions, pooling, normalisation.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "worker/cut/uses.h"
#include "worker/export/onnx_calls.h"

namespace medley::worker {
namespace {

using exported::ScalarType;
using exported::SymInt;

// --- Matrix products.

void Linear(OnnxConversion& to) {
  const std::string weight = to.Add("Transpose", {to.Value("weight")}, {{"perm", std::vector<int64_t>{1, 0}}});
  const std::string x = to.Add("MatMul", {to.Value("input"), weight});
  to.Set(to.Has("bias") ? to.Add("Add", {x, to.Value("bias")}) : x);
}
void MatMul(OnnxConversion& to) {
  const std::string_view other = to.Has("mat2") ? "mat2" : to.Has("vec") ? "vec" : "other";
  to.Set(to.Add("MatMul", {to.Value("self"), to.Value(other)}));
}
void AddProduct(OnnxConversion& to, std::string_view a, std::string_view b) {
  std::string product = to.Add("MatMul", {to.Value(a), to.Value(b)});
  if (const double alpha = to.Number("alpha", 1); alpha != 1) product = to.With("Mul", product, alpha);
  const double beta = to.Number("beta", 1);
  std::string sum = to.Value("self");
  if (beta != 1) sum = to.With("Mul", sum, beta);
  to.Set(to.Add("Add", {sum, product}));
}
void Addmm(OnnxConversion& to) { AddProduct(to, "mat1", "mat2"); }
void Baddbmm(OnnxConversion& to) { AddProduct(to, "batch1", "batch2"); }
void Einsum(OnnxConversion& to) {
  std::vector<std::string> inputs;
  for (const std::string& value : to.ValuesOf("tensors")) inputs.push_back(to.Named(value));
  to.Set(to.Add("Einsum", inputs, {{"equation", to.Text("equation", "")}}));
}

void Attention(OnnxConversion& to) {
  if (to.Bool("enable_gqa", false)) return to.Refuse("groups of queries are not known");
  const std::vector<SymInt>& query = to.MetaOf("query").sizes;
  const std::vector<SymInt>& key = to.MetaOf("key").sizes;
  if (query.size() < 2 || key.size() < 2) return to.Refuse("its arguments are no matrices");
  std::vector<int64_t> order(key.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  const double scale = to.Number("scale", 1 / std::sqrt(static_cast<double>(to.Fixed(query.back()))));
  const std::string turned = to.Add("Transpose", {to.Value("key")}, {{"perm", order}});
  std::string scores = to.With("Mul", to.Add("MatMul", {to.Value("query"), turned}), scale);
  const auto mask = [&](const std::string& allowed) {
    const std::string never = to.Scalar(-std::numeric_limits<double>::infinity(), ScalarType::kFloat32);
    scores = to.Add("Where", {allowed, scores, never});
  };
  if (to.Bool("is_causal", false)) {
    const std::vector<SymInt> sizes = {query[query.size() - 2], key[key.size() - 2]};
    const std::string ones = to.Add("Expand", {to.Scalar(1, ScalarType::kInt64), to.Sizes(sizes, false)});
    const std::string below = to.Add("Trilu", {ones, to.Scalar(0, ScalarType::kInt64)}, {{"upper", int64_t{0}}});
    mask(to.Cast(below, ScalarType::kInt64, ScalarType::kBool));
  }
  if (to.Has("attn_mask")) {
    const std::string given = to.Value("attn_mask");
    if (to.MetaOf("attn_mask").type == ScalarType::kBool) {
      mask(given);
    } else {
      scores = to.Add("Add", {scores, given});
    }
  }
  const std::string weights = to.Add("Softmax", {scores}, {{"axis", int64_t{-1}}});
  to.Set(to.Add("MatMul", {weights, to.Value("value")}));
}

// --- Tables.

void Embedding(OnnxConversion& to) {
  to.Set(to.Add("Gather", {to.Value("weight"), to.Value("indices")}, {{"axis", int64_t{0}}}));
}

// Bags of equal length, as a matrix of indices gives.
void EmbeddingBag(OnnxConversion& to) {
  const std::string offsets = to.NameOf("offsets");
  int64_t length = 0;
  for (const exported::Node& node : to.program().nodes) {
    if (std::ranges::find(node.outputs, offsets) == node.outputs.end() || !node.target.starts_with("aten.arange."))
      continue;
    for (const exported::NamedArgument& argument : node.inputs) {
      if (argument.name == "step" && std::holds_alternative<int64_t>(argument.value)) {
        length = std::get<int64_t>(argument.value);
      }
    }
  }
  if (length < 1) return to.Refuse("its bags must have one length");
  if (to.Has("per_sample_weights") || to.Bool("include_last_offset", false) || to.Int("padding_idx", -1) >= 0) {
    return to.Refuse("weights of samples, last offsets and padding are not known");
  }
  const std::string rows = to.Add("Reshape", {to.Value("indices"), to.Constant({-1, length})});
  const std::string found = to.Add("Gather", {to.Value("weight"), rows}, {{"axis", int64_t{0}}});
  const int64_t mode = to.Int("mode", 0);
  const std::vector<int64_t> axes = {1};
  if (mode == 0) return to.Set(to.Add("ReduceSum", {found, to.Constant(axes)}, {{"keepdims", int64_t{0}}}));
  to.Set(to.Add(mode == 1 ? "ReduceMean" : "ReduceMax", {found}, {{"axes", axes}, {"keepdims", int64_t{0}}}));
}
void IndexSelect(OnnxConversion& to) {
  const int64_t axis = to.Axis(to.Int("dim", 0), to.Rank("self"));
  to.Set(to.Add("Gather", {to.Value("self"), to.Value("index")}, {{"axis", axis}}));
}
void Gather(OnnxConversion& to) {
  const int64_t axis = to.Axis(to.Int("dim", 0), to.Rank("self"));
  to.Set(to.Add("GatherElements", {to.Value("self"), to.Value("index")}, {{"axis", axis}}));
}

// --- Convolutions, pooling, normalisation.

// One number for each axis of the image.
std::vector<int64_t> Each(OnnxConversion& to, std::string_view name, size_t axes, int64_t otherwise) {
  std::vector<int64_t> values = to.Ints(name);
  if (values.empty()) values = {otherwise};
  if (values.size() == 1) values.resize(axes, values[0]);
  if (values.size() != axes) to.Refuse("an argument does not fit the axes");
  values.resize(axes);
  return values;
}
std::vector<int64_t> BothSides(std::vector<int64_t> pads) {
  const size_t axes = pads.size();
  pads.resize(2 * axes);
  std::copy_n(pads.begin(), axes, pads.begin() + static_cast<std::ptrdiff_t>(axes));
  return pads;
}
std::vector<std::string> OnnxWeights(OnnxConversion& to) {
  std::vector<std::string> inputs = {to.Value("input"), to.Value("weight")};
  if (to.Has("bias")) inputs.push_back(to.Value("bias"));
  return inputs;
}
template <bool transposed>
void Convolve(OnnxConversion& to) {
  const std::vector<SymInt>& kernel = to.MetaOf("weight").sizes;
  const size_t axes = kernel.size() < 2 ? 0 : kernel.size() - 2;
  const std::vector<int64_t> dilation = Each(to, "dilation", axes, 1);
  std::vector<int64_t> pads;
  bool is_text = false;
  for (const exported::NamedArgument& argument : to.node().inputs) {
    is_text = is_text || (argument.name == "padding" && std::holds_alternative<std::string>(argument.value));
  }
  if (is_text) {  // "valid", or "same": what is lacking, the larger half behind
    pads.assign(2 * axes, 0);
    for (size_t i = 0; i < axes && to.Text("padding", "") == "same"; ++i) {
      const int64_t total = dilation[i] * (to.Fixed(kernel[i + 2]) - 1);
      pads[i] = total / 2;
      pads[axes + i] = total - total / 2;
    }
  } else {
    pads = BothSides(Each(to, "padding", axes, 0));
  }
  const std::vector<int64_t> stride = Each(to, "stride", axes, 1);
  const int64_t groups = to.Int("groups", 1);
  if (transposed || to.Bool("transposed", false)) {
    const std::vector<int64_t> more = Each(to, "output_padding", axes, 0);
    return to.Set(to.Add(
        "ConvTranspose", OnnxWeights(to),
        {{"strides", stride}, {"pads", pads}, {"dilations", dilation}, {"group", groups}, {"output_padding", more}}));
  }
  to.Set(to.Add("Conv", OnnxWeights(to),
                {{"strides", stride}, {"pads", pads}, {"dilations", dilation}, {"group", groups}}));
}

template <size_t axes>
void MaxPool(OnnxConversion& to) {
  for (size_t i = 1; i < to.node().outputs.size(); ++i) {
    for (const exported::Node& node : to.program().nodes) {
      bool used = false;
      cut::ForEachUse(node, [&](const std::string& value) { used = used || value == to.node().outputs[i]; });
      if (used) return to.Refuse("the places of maxima are not known");
    }
  }
  const std::vector<int64_t> kernel = Each(to, "kernel_size", axes, 1);
  const std::vector<int64_t> stride = to.Ints("stride").empty() ? kernel : Each(to, "stride", axes, 1);
  to.Set(to.Add("MaxPool", {to.Value("self")},
                {{"kernel_shape", kernel},
                 {"strides", stride},
                 {"pads", BothSides(Each(to, "padding", axes, 0))},
                 {"dilations", Each(to, "dilation", axes, 1)},
                 {"ceil_mode", int64_t{to.Bool("ceil_mode", false)}}}));
}
template <size_t axes>
void AveragePool(OnnxConversion& to) {
  if (to.Has("divisor_override")) return to.Refuse("divisors of its own are not known");
  if (to.Bool("ceil_mode", false)) return to.Refuse("ceil_mode is not known");
  const std::vector<int64_t> kernel = Each(to, "kernel_size", axes, 1);
  const std::vector<int64_t> stride = to.Ints("stride").empty() ? kernel : Each(to, "stride", axes, 1);
  to.Set(to.Add("AveragePool", {to.Value("self")},
                {{"kernel_shape", kernel},
                 {"strides", stride},
                 {"pads", BothSides(Each(to, "padding", axes, 0))},
                 {"count_include_pad", int64_t{to.Bool("count_include_pad", true)}}}));
}
template <size_t axes>
void AdaptivePool(OnnxConversion& to, std::string_view pool) {
  const std::vector<SymInt>& from = to.MetaOf("self").sizes;
  const std::vector<SymInt>& result = to.Result().sizes;
  if (from.size() < axes || result.size() != from.size()) return to.Refuse("its axes are not known");
  std::vector<int64_t> kernel;
  for (size_t i = from.size() - axes; i < from.size(); ++i) {
    const int64_t in = to.Fixed(from[i]), out = to.Fixed(result[i]);
    if (out < 1 || in % out != 0) return to.Refuse("the size of its input must be a multiple of that of its result");
    kernel.push_back(in / out);
  }
  to.Set(to.Add(pool, {to.Value("self")}, {{"kernel_shape", kernel}, {"strides", kernel}}));
}
template <size_t axes>
void AdaptiveAverage(OnnxConversion& to) {
  AdaptivePool<axes>(to, "AveragePool");
}
template <size_t axes>
void AdaptiveMax(OnnxConversion& to) {
  AdaptivePool<axes>(to, "MaxPool");
}

// A weight or bias; where there is none, so many ones or zeros.
std::string ValueOr(OnnxConversion& to, std::string_view name, int64_t count, double otherwise) {
  if (to.Has(name)) return to.Value(name);
  return to.Add("Expand", {to.Scalar(otherwise, ScalarType::kFloat32), to.Constant({count})});
}

void LayerNorm(OnnxConversion& to) {
  const std::vector<int64_t> shape = to.Ints("normalized_shape");
  std::string scale = to.Has("weight") ? to.Value("weight")
                                       : to.Add("Expand", {to.Scalar(1, ScalarType::kFloat32), to.Constant(shape)});
  std::vector<std::string> inputs = {to.Value("input"), std::move(scale)};
  if (to.Has("bias")) inputs.push_back(to.Value("bias"));
  to.Set(to.Add("LayerNormalization", inputs,
                {{"axis", -std::ssize(shape)}, {"epsilon", static_cast<float>(to.Number("eps", 1e-5))}}));
}
void BatchNorm(OnnxConversion& to) {
  const std::vector<SymInt>& sizes = to.MetaOf("input").sizes;
  if (sizes.size() < 2) return to.Refuse("its input has no channels");
  if (!to.Has("running_mean") || !to.Has("running_var")) {
    return to.Refuse("without running statistics its result depends on the other samples of the batch");
  }
  const int64_t channels = to.Fixed(sizes[1]);
  to.Set(to.Add("BatchNormalization",
                {to.Value("input"), ValueOr(to, "weight", channels, 1), ValueOr(to, "bias", channels, 0),
                 to.Value("running_mean"), to.Value("running_var")},
                {{"epsilon", static_cast<float>(to.Number("eps", 1e-5))}}));
}
void GroupNorm(OnnxConversion& to) {
  const std::vector<SymInt>& sizes = to.MetaOf("input").sizes;
  if (sizes.size() < 2) return to.Refuse("its input has no channels");
  const int64_t groups = to.Int("num_groups", 1), channels = to.Fixed(sizes[1]);
  const std::string parts = to.Add("Reshape", {to.Value("input"), to.Constant({0, groups, -1})});
  const std::string ones = to.Add("Expand", {to.Scalar(1, ScalarType::kFloat32), to.Constant({groups})});
  const std::string zeros = to.Add("Expand", {to.Scalar(0, ScalarType::kFloat32), to.Constant({groups})});
  const std::string norm =
      to.Add("InstanceNormalization", {parts, ones, zeros}, {{"epsilon", static_cast<float>(to.Number("eps", 1e-5))}});
  std::string x = to.Reshape(norm, sizes);
  std::vector<int64_t> each(sizes.size() - 1, 1);
  each[0] = channels;
  if (to.Has("weight")) x = to.Add("Mul", {x, to.Add("Reshape", {to.Value("weight"), to.Constant(each)})});
  if (to.Has("bias")) x = to.Add("Add", {x, to.Add("Reshape", {to.Value("bias"), to.Constant(each)})});
  to.Set(x);
}
void RmsNorm(OnnxConversion& to) {
  const std::vector<int64_t> shape = to.Ints("normalized_shape");
  std::vector<int64_t> axes(shape.size());
  std::iota(axes.begin(), axes.end(), -std::ssize(shape));
  const std::string x = to.Value("input");
  const std::string mean = to.Add("ReduceMean", {to.Add("Mul", {x, x})}, {{"axes", axes}, {"keepdims", int64_t{1}}});
  const std::string root = to.Add("Sqrt", {to.With("Add", mean, to.Number("eps", 1.1920928955078125e-07))});
  const std::string norm = to.Add("Div", {x, root});
  to.Set(to.Has("weight") ? to.Add("Mul", {norm, to.Value("weight")}) : norm);
}

}  // namespace

OnnxConverter FindOnnxLayerConverter(std::string_view call) {
  static const std::map<std::string_view, OnnxConverter> kKnown = {
      {"linear", Linear},
      {"mm", MatMul},
      {"bmm", MatMul},
      {"mv", MatMul},
      {"matmul", MatMul},
      {"linalg_matmul", MatMul},
      {"addmm", Addmm},
      {"baddbmm", Baddbmm},
      {"einsum", Einsum},
      {"scaled_dot_product_attention", Attention},
      {"embedding", Embedding},
      {"embedding_bag", EmbeddingBag},
      {"index_select", IndexSelect},
      {"gather", Gather},
      {"conv1d", Convolve<false>},
      {"conv2d", Convolve<false>},
      {"conv3d", Convolve<false>},
      {"convolution", Convolve<false>},
      {"_convolution", Convolve<false>},
      {"conv_transpose1d", Convolve<true>},
      {"conv_transpose2d", Convolve<true>},
      {"conv_transpose3d", Convolve<true>},
      {"max_pool1d", MaxPool<1>},
      {"max_pool2d", MaxPool<2>},
      {"max_pool3d", MaxPool<3>},
      {"max_pool2d_with_indices", MaxPool<2>},
      {"max_pool3d_with_indices", MaxPool<3>},
      {"avg_pool1d", AveragePool<1>},
      {"avg_pool2d", AveragePool<2>},
      {"avg_pool3d", AveragePool<3>},
      {"adaptive_avg_pool1d", AdaptiveAverage<1>},
      {"adaptive_avg_pool2d", AdaptiveAverage<2>},
      {"_adaptive_avg_pool2d", AdaptiveAverage<2>},
      {"adaptive_avg_pool3d", AdaptiveAverage<3>},
      {"adaptive_max_pool1d", AdaptiveMax<1>},
      {"adaptive_max_pool2d", AdaptiveMax<2>},
      {"layer_norm", LayerNorm},
      {"native_layer_norm", LayerNorm},
      {"batch_norm", BatchNorm},
      {"native_batch_norm", BatchNorm},
      {"cudnn_batch_norm", BatchNorm},
      {"_native_batch_norm_legit", BatchNorm},
      {"_native_batch_norm_legit_no_training", BatchNorm},
      {"_batch_norm_with_update", BatchNorm},
      {"_batch_norm_no_update", BatchNorm},
      {"group_norm", GroupNorm},
      {"rms_norm", RmsNorm},
  };
  const auto found = kKnown.find(call);
  return found == kKnown.end() ? nullptr : found->second;
}

}  // namespace medley::worker
