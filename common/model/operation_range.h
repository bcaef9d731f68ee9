// A range of a model's operations. Immutable value.
#pragma once

namespace medley::model {

struct OperationRange {
  int first = 0;
  int end = 0;  // exclusive
  bool Contains(int operation) const { return operation >= first && operation < end; }
  bool operator==(const OperationRange&) const = default;
};

}  // namespace medley::model
