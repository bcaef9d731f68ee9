#include "worker/cut/uses.h"

#include <set>
#include <type_traits>
#include <vector>

namespace medley::worker::cut {

using exported::Argument;
using exported::Node;
using exported::ValueRef;

void ForEachUse(const Argument& argument, const std::function<void(const std::string&)>& use) {
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, ValueRef>) {
          use(value.name);
        } else if constexpr (std::is_same_v<T, std::vector<ValueRef>>) {
          for (const ValueRef& ref : value) use(ref.name);
        } else if constexpr (std::is_same_v<T, std::vector<std::optional<ValueRef>>>) {
          for (const auto& ref : value) {
            if (ref.has_value()) use(ref->name);
          }
        } else if constexpr (std::is_same_v<T, std::vector<exported::IntOrRef>>) {
          for (const exported::IntOrRef& item : value) {
            if (const auto* ref = std::get_if<ValueRef>(&item)) use(ref->name);
          }
        }
      },
      argument);
}

void ForEachUse(const Node& node, const std::function<void(const std::string&)>& use) {
  for (const exported::NamedArgument& argument : node.inputs) ForEachUse(argument.value, use);
}

std::string_view CallOf(const Node& node) {
  std::string_view name = node.target;
  constexpr std::string_view kAten = "aten.";
  if (!name.starts_with(kAten)) return name;
  name.remove_prefix(kAten.size());
  return name.substr(0, name.find('.'));
}

bool InPlace(const Node& node) {
  const std::string_view call = CallOf(node);
  return call.ends_with('_') && !call.ends_with("__") && node.target.starts_with("aten.");
}

bool IsView(const Node& node) {
  static const std::set<std::string_view> kViews = {"view",
                                                    "reshape",
                                                    "_unsafe_view",
                                                    "transpose",
                                                    "t",
                                                    "permute",
                                                    "expand",
                                                    "expand_as",
                                                    "unsqueeze",
                                                    "squeeze",
                                                    "slice",
                                                    "select",
                                                    "split",
                                                    "chunk",
                                                    "unbind",
                                                    "flatten",
                                                    "unflatten",
                                                    "movedim",
                                                    "detach",
                                                    "alias",
                                                    "as_strided",
                                                    "diagonal",
                                                    "narrow",
                                                    "unfold",
                                                    "contiguous",
                                                    "to",
                                                    "_to_copy",
                                                    "numpy_T",
                                                    "swapaxes",
                                                    "swapdims",
                                                    "view_as",
                                                    "mT",
                                                    "adjoint",
                                                    "split_with_sizes",
                                                    "lift_fresh",
                                                    "dropout",
                                                    "type_as",
                                                    "float",
                                                    "real",
                                                    "ravel",
                                                    "squeeze_",
                                                    "unsqueeze_",
                                                    "transpose_"};
  return kViews.contains(CallOf(node));
}

bool IsAssertion(const Node& node) {
  static const std::set<std::string_view> kChecks = {"_assert_scalar", "_assert_async", "sym_constrain_range",
                                                     "sym_constrain_range_for_size", "_assert_tensor_metadata"};
  return kChecks.contains(CallOf(node));
}

const Argument* ArgumentOf(const Node& node, std::string_view name) {
  for (const exported::NamedArgument& argument : node.inputs) {
    if (argument.name == name) return &argument.value;
  }
  return nullptr;
}

bool IsRandom(const Node& node) {
  static const std::set<std::string_view> kRandom = {"dropout",
                                                     "dropout_",
                                                     "native_dropout",
                                                     "feature_dropout",
                                                     "feature_dropout_",
                                                     "alpha_dropout",
                                                     "alpha_dropout_",
                                                     "feature_alpha_dropout",
                                                     "bernoulli",
                                                     "bernoulli_",
                                                     "rand",
                                                     "rand_like",
                                                     "randn",
                                                     "randn_like",
                                                     "randint",
                                                     "randint_like",
                                                     "randperm",
                                                     "normal",
                                                     "normal_",
                                                     "uniform",
                                                     "uniform_",
                                                     "multinomial",
                                                     "exponential_",
                                                     "rrelu",
                                                     "rrelu_",
                                                     "rrelu_with_noise"};
  return kRandom.contains(CallOf(node));
}

}  // namespace medley::worker::cut
