#include "worker/cut/modes.h"

#include <map>
#include <set>

#include "common/base/status.h"
#include "worker/cut/uses.h"

namespace medley::worker::cut {
namespace {

using exported::Node;

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// "torch.nn.modules.dropout.Dropout" -> "Dropout".
std::string_view ClassOf(const Node& node) {
  const std::string_view type = node.module_type;
  return type.substr(type.rfind('.') + 1);
}

bool DropsNothing(const Node& attention) {
  const exported::Argument* const probability = ArgumentOf(attention, "dropout_p");
  const auto* const value = probability == nullptr ? nullptr : std::get_if<double>(probability);
  return value == nullptr || *value == 0;
}

// The call shows that the model was exported after eval().
bool IsOfEvaluation(const Node& node) {
  if (Contains(CallOf(node), "batch_norm_legit_no_training")) return true;
  const bool drops = Contains(CallOf(node), "dropout"), normalizes = CallOf(node) == "batch_norm";
  if (!drops && !normalizes) return false;
  const exported::Argument* const training = ArgumentOf(node, drops ? "train" : "training");
  const auto* const value = training == nullptr ? nullptr : std::get_if<bool>(training);
  return value != nullptr && !*value;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CheckModes(const exported::Program& program) {
  struct Module {
    const Node* node = nullptr;  // one of them
    bool works = false;          // it has a call that does what its class is for
  };
  std::map<std::string, Module> dropouts, norms;  // by path
  std::set<std::string> attentions;               // paths of those that drop nothing
  bool of_evaluation = false;
  for (const Node& node : program.nodes) {
    of_evaluation = of_evaluation || IsOfEvaluation(node);
    if (Contains(node.module_type, "torch.nn.modules.dropout.")) {
      Module& module = dropouts[node.module_path];
      module.node = &node;
      module.works = module.works || Contains(CallOf(node), "dropout");
    } else if (Contains(node.module_type, "torch.nn.modules.batchnorm.")) {  // not those that are frozen on purpose
      Module& module = norms[node.module_path];
      module.node = &node;
      module.works = module.works || Contains(CallOf(node), "batch_norm");
    } else if (CallOf(node) == "scaled_dot_product_attention" && DropsNothing(node)) {
      attentions.insert(node.module_path.empty() ? "the model" : node.module_path);
    }
  }
  for (const auto& [path, module] : norms) {
    if (module.works) continue;
    return base::InvalidArgument(
        "the module '{}' ({}) was folded: it computes with its running statistics, which training cannot update. "
        "Export the model after model.train(), without run_decompositions()",
        path, ClassOf(*module.node));
  }
  std::vector<std::string> warnings;
  for (const auto& [path, module] : dropouts) {
    if (module.works) continue;
    of_evaluation = true;
    warnings.push_back(fmt::format(
        "the module '{}' ({}) drops nothing when training: its call was removed by an export after model.eval(). "
        "Export after model.train()",
        path, ClassOf(*module.node)));
  }
  for (const std::string& path : attentions) {
    if (!of_evaluation) break;
    warnings.push_back(
        fmt::format("the attention of '{}' drops nothing when training: the model was exported after model.eval(). If "
                    "it has dropout, export after model.train()",
                    path));
  }
  return warnings;
}

}  // namespace medley::worker::cut
