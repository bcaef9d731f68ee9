// Tensors that torch.save pickled, without executing anything.
//
// A pickle is a program for a machine that may call any function of Python. This reader knows the opcodes and names
// with which torch.save writes dictionaries of tensors, and builds only those: dictionaries, lists, tuples, text,
// numbers, tensors and parameters. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>
#include <string_view>

#include "worker/exported/program.h"

namespace medley::worker::exported {

struct PickledTensor {
  StoredTensor tensor;   // without storage and bytes
  std::string key;       // of the storage: the entry data/KEY beside the pickle
  int64_t elements = 0;  // of the storage
};

// The tensors of the dictionary that the pickle is, by name; other values of it are left out. Errors: InvalidArgument
// for an unknown opcode, a name that is not on the list ("the pickle wants to call 'posix.system'"), a stack that does
// not fit the opcode, text beyond the end, more than a million values, nesting that is too deep.
absl::StatusOr<std::map<std::string, PickledTensor>> ReadPickledTensors(std::string_view pickle);

}  // namespace medley::worker::exported
