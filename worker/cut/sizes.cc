#include "worker/cut/sizes.h"

#include "common/base/status.h"
#include "worker/cut/cut.h"
#include "worker/cut/expression.h"

namespace medley::worker::cut {

absl::StatusOr<int64_t> Evaluate(const exported::SymInt& size, const std::string& symbol, int64_t samples) {
  if (size.expression.empty()) return size.value;
  MEDLEY_ASSIGN_OR_RETURN(const Expression expression, Expression::Parse(size.expression));
  return expression.At({{symbol, samples}});
}

absl::StatusOr<int64_t> Elements(const exported::TensorMeta& meta, const std::string& symbol, int64_t samples) {
  int64_t product = 1;
  for (const exported::SymInt& size : meta.sizes) {
    MEDLEY_ASSIGN_OR_RETURN(const int64_t value, Evaluate(size, symbol, samples));
    if (value < 0 || __builtin_mul_overflow(product, value, &product)) {
      return base::InvalidArgument("a tensor of {} samples has too many elements, or a negative size", samples);
    }
  }
  return product;
}

absl::StatusOr<std::vector<int64_t>> SizesOf(const Cut& cut, const std::string& value, int64_t samples) {
  std::vector<int64_t> sizes;
  for (const exported::SymInt& size : cut.program->tensors.at(value).sizes) {
    MEDLEY_ASSIGN_OR_RETURN(sizes.emplace_back(), Evaluate(size, cut.batch, samples));
  }
  return sizes;
}

absl::StatusOr<int64_t> NumberOf(const Cut& cut, const std::string& value, int64_t samples) {
  return Evaluate(cut.program->numbers.at(value), cut.batch, samples);
}

}  // namespace medley::worker::cut
