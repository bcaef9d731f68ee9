// Collects the nodes, values and weights of a lowered model, and writes them as torch.export does.
//
// Source of the fields: torch._export.serde.schema of PyTorch 2.9.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "worker/torchscript/item.h"
#include "worker/torchscript/lower.h"

namespace medley::worker::torchscript {

// Where a call is in the user's program.
struct Place {
  std::string module_path;  // "encoder.layers.0"
  std::string module_type;
  std::string file;
  std::string line;  // its text
  int line_number = 0;
  std::string Describe() const;  // "module 'encoder', export.py:12: x = self.norm(x)"
};

class ProgramWriter {
 public:
  // A new name of a value, from the operator's.
  std::string NewName(const std::string& base);
  // A tensor of the program. Errors: InvalidArgument for a size that does not follow from the batch.
  absl::Status AddTensor(const Item& tensor, const Place& place);
  absl::Status AddNumber(const Item& number, const Place& place);
  void AddUserInput(const Item& tensor);
  // A parameter or buffer, with its name in the module.
  void AddStored(const Item& tensor, const std::string& name, bool parameter);
  // A tensor that the script holds, of which the program has no name.
  void AddConstant(const Item& tensor);
  void AddOutput(const Item& tensor);
  void AddMutation(const Item& tensor, const std::string& buffer);
  // `target`: "aten.linear.default". `arguments`: names and values; `results`: items or lists of them.
  absl::Status AddNode(const std::string& target, const std::vector<std::pair<std::string, Item>>& arguments,
                       const std::vector<Item>& results, const Place& place);
  size_t nodes() const { return nodes_.size(); }

  Entries Write() const;

 private:
  void AddWeight(const Item& tensor, const std::string& name, bool parameter, nlohmann::json& config,
                 const std::string& prefix);

  std::map<std::string, int> names_;
  nlohmann::json tensors_ = nlohmann::json::object(), numbers_ = nlohmann::json::object();
  nlohmann::json nodes_ = nlohmann::json::array(), inputs_ = nlohmann::json::array();
  nlohmann::json user_inputs_ = nlohmann::json::array(), outputs_ = nlohmann::json::array();
  nlohmann::json mutations_ = nlohmann::json::array();
  nlohmann::json weights_ = nlohmann::json::object(), constants_ = nlohmann::json::object();
  Entries files_;
};

}  // namespace medley::worker::torchscript
