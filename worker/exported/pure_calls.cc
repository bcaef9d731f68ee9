#include "worker/exported/pure_calls.h"

#include <algorithm>
#include <set>

namespace medley::worker::exported {
namespace {

// From the namespace aten, without overloads: what sixty models of torchvision, timm and transformers call
// (tests/bench/zoo_models.py), and operators like those. Not here: from_file and others that open files, what changes
// settings of the process, sets or shares storage, prints, waits, or needs a device of its own; what gives memory that
// nobody has written to (empty); and what trusts its arguments where a check is needed (_unsafe_index, as_strided).
const std::set<std::string_view>& PureOperators() {
  static const std::set<std::string_view> kOperators = {
      // clang-format off
    // Elementwise: one tensor.
    "abs", "absolute", "acos", "acosh", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh",
    "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "conj", "conj_physical", "cos", "cosh", "deg2rad",
    "digamma", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "fix", "floor", "frac", "i0", "isfinite", "isinf",
    "isnan", "isneginf", "isposinf", "isreal", "lgamma", "log", "log10", "log1p", "log2", "logical_not", "logit",
    "mvlgamma", "nan_to_num", "neg", "negative", "polygamma", "positive", "rad2deg", "real", "imag", "reciprocal",
    "round", "rsqrt", "sgn", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "special_erf", "special_erfc",
    "special_exp2", "special_expit", "special_expm1", "special_gammaln", "special_log1p", "special_logit",
    "special_ndtr", "special_round", "special_sinc", "sqrt", "square", "tan", "tanh", "trunc",
    // Elementwise: several.
    "add", "addcdiv", "addcmul", "arctan2", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "clamp", "clamp_max", "clamp_min", "clip", "copysign", "div", "divide",
    "eq", "float_power", "floor_divide", "fmax", "fmin", "fmod", "ge", "greater", "greater_equal", "gt", "heaviside",
    "hypot", "ldexp", "le", "lerp", "less", "less_equal", "logaddexp", "logaddexp2", "logical_and", "logical_or",
    "logical_xor", "lt", "maximum", "minimum", "mul", "multiply", "ne", "nextafter", "not_equal", "pow", "remainder",
    "rsub", "special_xlog1py", "special_xlogy", "sub", "subtract", "true_divide", "where", "xlogy", "__and__",
    "__lshift__", "__or__", "__rshift__", "__xor__",
    // Activations.
    "celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "log_sigmoid",
    "log_sigmoid_forward", "mish", "prelu", "_prelu_kernel", "relu", "relu6", "rrelu", "rrelu_with_noise", "selu",
    "silu", "softplus", "softshrink", "threshold", "softmax", "_softmax", "log_softmax", "_log_softmax",
    "special_softmax", "special_log_softmax", "_safe_softmax",
    // Sums and other reductions.
    "all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "count_nonzero", "cummax", "cummin", "cumprod",
    "cumsum", "diff", "dist", "logcumsumexp", "logsumexp", "special_logsumexp", "max", "mean", "median", "min",
    "mode", "nanmean", "nanmedian", "nanquantile", "nansum", "norm", "linalg_norm", "linalg_vector_norm",
    "linalg_matrix_norm", "frobenius_norm", "nuclear_norm", "prod", "quantile", "std", "std_mean", "sum",
    "sum_to_size", "var", "var_mean", "trace", "bincount", "histc",
    // Shape.
    "adjoint", "alias", "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_tensors", "broadcast_to",
    "cat", "channel_shuffle", "native_channel_shuffle", "chunk", "column_stack", "concat", "concatenate",
    "constant_pad_nd", "contiguous", "detach", "diag", "diag_embed", "diagonal", "dsplit", "dstack", "expand",
    "expand_as", "flatten", "flip", "fliplr", "flipud", "hsplit", "hstack", "meshgrid", "moveaxis", "movedim", "mT",
    "mH", "narrow", "numpy_T", "matrix_H", "pad", "_pad_circular", "_pad_enum", "permute", "pixel_shuffle",
    "pixel_unshuffle", "ravel", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "repeat",
    "repeat_interleave", "replication_pad1d", "replication_pad2d", "replication_pad3d", "reshape", "reshape_as",
    "roll", "rot90", "select", "slice", "split", "split_with_sizes", "squeeze", "stack", "swapaxes", "swapdims", "t",
    "tensor_split", "tile", "transpose", "tril", "triu", "unbind", "unflatten", "unfold", "unsafe_chunk",
    "unsafe_split", "unsafe_split_with_sizes", "_unsafe_view", "unsqueeze", "view", "view_as", "view_as_complex",
    "view_as_real", "vsplit", "vstack", "im2col", "col2im", "lift_fresh", "lift_fresh_copy", "lift",
    // Indexing.
    "argsort", "bucketize", "embedding", "embedding_bag", "gather", "index", "index_add", "index_copy", "index_fill",
    "index_put", "index_reduce", "index_select", "isin", "kthvalue", "masked_fill", "masked_scatter",
    "masked_select", "msort", "nonzero", "nonzero_static", "argwhere", "one_hot", "put", "scatter", "scatter_add",
    "scatter_reduce", "searchsorted", "select_scatter", "slice_scatter", "diagonal_scatter", "sort", "take",
    "take_along_dim", "topk", "tril_indices", "triu_indices", "unique_consecutive", "unique_dim",
    "unique_dim_consecutive", "_unique", "_unique2", "cartesian_prod", "combinations",
    // Matrix products.
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "bilinear", "bmm", "chain_matmul", "cross", "linalg_cross", "dot",
    "einsum", "ger", "inner", "kron", "linalg_matmul", "linalg_multi_dot", "linalg_vecdot", "linear", "matmul",
    "matrix_exp", "linalg_matrix_exp", "matrix_power", "linalg_matrix_power", "mm", "mv", "outer", "tensordot",
    "vdot", "_addmm_activation", "cdist", "pairwise_distance", "pdist", "cosine_similarity",
    // Linear algebra.
    "cholesky", "cholesky_inverse", "cholesky_solve", "linalg_cholesky", "linalg_cholesky_ex", "det", "linalg_det",
    "linalg_eigh", "linalg_eigvalsh", "linalg_inv", "linalg_inv_ex", "inverse", "linalg_lstsq", "linalg_lu",
    "linalg_pinv", "pinverse", "linalg_qr", "qr", "logdet", "slogdet", "linalg_slogdet", "linalg_solve",
    "linalg_solve_triangular", "triangular_solve", "linalg_svd", "linalg_svdvals", "svd",
    // Convolutions and pooling.
    "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "convolution", "_convolution", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "_adaptive_avg_pool2d",
    "adaptive_avg_pool3d", "_adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "fractional_max_pool2d",
    "fractional_max_pool3d", "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices",
    "max_pool3d", "max_pool3d_with_indices", "max_unpool2d", "max_unpool3d",
    // Resampling.
    "affine_grid_generator", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "upsample_bicubic2d",
    "_upsample_bicubic2d_aa", "upsample_bilinear2d", "_upsample_bilinear2d_aa", "upsample_linear1d",
    "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d", "_upsample_nearest_exact3d", "upsample_trilinear3d",
    // Normalisation and dropout.
    "alpha_dropout", "batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_functional",
    "_native_batch_norm_legit_no_training", "_batch_norm_with_update", "_batch_norm_no_update", "native_batch_norm",
    "cudnn_batch_norm", "dropout", "feature_alpha_dropout", "feature_dropout", "native_dropout", "group_norm",
    "native_group_norm", "instance_norm", "layer_norm", "native_layer_norm", "rms_norm", "_fused_rms_norm", "renorm",
    "_weight_norm", "_weight_norm_interface", "norm_except_dim",
    // Attention and recurrence.
    "scaled_dot_product_attention", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_attention_math", "gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell",
    "rnn_tanh", "rnn_tanh_cell",
    // Losses.
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy_loss",
    "ctc_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "margin_ranking_loss", "mse_loss",
    "multi_margin_loss", "multilabel_margin_loss", "nll_loss", "nll_loss2d", "nll_loss_forward",
    "nll_loss2d_forward", "nll_loss_nd", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss",
    "triplet_margin_loss",
    // Tensors from numbers.
    "arange", "eye", "full", "full_like", "hann_window", "hamming_window", "linspace", "logspace", "new_full",
    "new_ones", "new_zeros", "ones", "ones_like", "scalar_tensor", "zero", "zeros", "zeros_like", "fill", "copy",
    "complex", "polar", "vander",
    // Random numbers: refused later, unless their form does not depend on the placement.
    "bernoulli", "exponential", "multinomial", "normal", "normal_functional", "poisson", "rand", "rand_like",
    "randint", "randint_like", "randn", "randn_like", "randperm", "uniform",
    // Types and memory.
    "clone", "_conj", "resolve_conj", "resolve_neg", "to", "_to_copy", "type_as", "to_dense", "_to_dense",
    "_autocast_to_full_precision", "_autocast_to_reduced_precision",
    // Fourier transforms.
    "fft_fft", "fft_fft2", "fft_fftn", "fft_fftfreq", "fft_fftshift", "fft_ifft", "fft_ifft2", "fft_ifftn",
    "fft_ifftshift", "fft_irfft", "fft_irfft2", "fft_irfftn", "fft_rfft", "fft_rfft2", "fft_rfftn", "fft_rfftfreq",
    "stft", "istft",
    // Sizes and checks.
    "_assert_async", "_assert_scalar", "_assert_tensor_metadata", "_functional_assert_async",
    "_functional_assert_scalar", "is_nonzero", "item", "_local_scalar_dense", "numel", "sym_constrain_range",
    "sym_constrain_range_for_size", "sym_is_contiguous", "sym_numel", "sym_size", "sym_storage_offset", "sym_stride",
      // clang-format on
  };
  return kOperators;
}

bool IsName(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

}  // namespace

bool IsPureCall(std::string_view target) {
  constexpr std::string_view kAten = "aten.";
  // Arithmetic on sizes, which worker/cut computes itself.
  for (const std::string_view numbers : {"_operator.", "math.", "torch.sym_"}) {
    if (target.starts_with(numbers)) return IsName(target.substr(numbers.size()));
  }
  if (!target.starts_with(kAten)) return false;
  std::string_view name = target.substr(kAten.size());
  name = name.substr(0, name.find('.'));
  if (PureOperators().contains(name)) return true;
  const bool in_place = name.ends_with('_') && !name.ends_with("__");
  return in_place && PureOperators().contains(name.substr(0, name.size() - 1));
}

std::string_view InsteadOf(std::string_view target) {
  constexpr std::string_view kPacked =
      "packed sequences have no axis of samples by which a batch can be divided: without pack_padded_sequence, give "
      "the "
      "recurrent layer the padded batch (batch_first=True), and take or mask its outputs by the lengths, which can be "
      "an "
      "input of the model";
  for (const std::string_view packed : {"aten._pack_padded_sequence", "aten._pad_packed_sequence", "aten.lstm.data",
                                        "aten.gru.data", "aten.rnn_tanh.data", "aten.rnn_relu.data"}) {
    if (target.starts_with(packed)) return kPacked;
  }
  return "";
}

}  // namespace medley::worker::exported
