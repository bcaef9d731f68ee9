// What a value of a TorchScript graph is, in runs with batches of several sizes.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "worker/torchscript/torch.h"

namespace medley::worker::torchscript {

inline constexpr size_t kRuns = 3;
// Odd primes, so that few sizes of a model are multiples of one of them, and none of all.
inline constexpr std::array<int64_t, kRuns> kBatches = {5, 7, 11};

struct Item {
  enum class Kind {
    kConstant,  // equal in all runs
    kTensor,
    kNumber,  // an integer that depends on the batch
    kList,    // of items; also tuples, and the values of dictionaries
    kObject,  // a module
  };
  Kind kind = Kind::kConstant;
  c10::IValue constant;                      // kConstant, kObject
  std::array<at::Tensor, kRuns> tensors;     // kTensor
  std::array<int64_t, kRuns> numbers = {};   // kNumber
  std::string name;                          // kTensor, kNumber: of the value in the program
  std::shared_ptr<std::vector<Item>> items;  // kList; shared, as lists can be changed
  std::vector<c10::IValue> keys;             // kList: of a dictionary, in its order; else empty
  std::string path;                          // kObject: of the module; "" at the top
  bool as_tensor = false;                    // kConstant, kNumber: the script keeps it in a tensor (prim::NumToTensor)

  // Whether no value of it depends on the run.
  bool Fixed() const;
};

inline bool Item::Fixed() const {
  if (kind != Kind::kList) return kind == Kind::kConstant;
  for (const Item& item : *items) {
    if (!item.Fixed()) return false;
  }
  return true;
}

// The value in one run, as a list of `type` if it is a list.
c10::IValue At(const Item& item, size_t run, const c10::TypePtr& type);

}  // namespace medley::worker::torchscript
