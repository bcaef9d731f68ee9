#include "worker/arrow/convert_array.h"

#include <arrow/array/array_binary.h>
#include <arrow/array/array_decimal.h>
#include <arrow/array/array_dict.h>
#include <arrow/array/array_primitive.h>
#include <arrow/extension_type.h>
#include <arrow/type.h>
#include <arrow/util/float16.h>

#include <algorithm>
#include <limits>

#include "worker/arrow/time_text.h"
#include "worker/columns/column_value.h"

namespace medley::worker {
namespace {

using arrow::Type;

bool IsTextType(Type::type type) {
  switch (type) {
    case Type::NA:
    case Type::STRING:
    case Type::LARGE_STRING:
    case Type::STRING_VIEW:
    case Type::BINARY:
    case Type::LARGE_BINARY:
    case Type::BINARY_VIEW:
    case Type::FIXED_SIZE_BINARY:
    case Type::DECIMAL32:
    case Type::DECIMAL64:
    case Type::DECIMAL128:
    case Type::DECIMAL256:
    case Type::DATE32:
    case Type::DATE64:
    case Type::TIME32:
    case Type::TIME64:
    case Type::TIMESTAMP:
      return true;
    default:
      return false;
  }
}

bool IsWholeType(Type::type type) { return type == Type::BOOL || (type >= Type::UINT8 && type <= Type::INT64); }
bool IsRealType(Type::type type) { return type >= Type::HALF_FLOAT && type <= Type::DOUBLE; }

template <typename ArrayType, typename To>
void CopyNumbers(const arrow::Array& array, To* to) {
  const auto& numbers = static_cast<const ArrayType&>(array);
  const auto* const from = numbers.raw_values();
  for (int64_t i = 0; i < array.length(); ++i) to[i] = static_cast<To>(from[i]);
}

// Texts that lie in the array. Its offsets may point anywhere.
template <typename ArrayType>
arrow::Status ViewTexts(const arrow::Array& array, std::vector<std::string_view>& texts) {
  const auto& binary = static_cast<const ArrayType&>(array);
  const int64_t size = binary.value_data() == nullptr ? 0 : binary.value_data()->size();
  for (int64_t i = 0; i < array.length(); ++i) {
    const int64_t begin = binary.value_offset(i), end = binary.value_offset(i + 1);
    if (begin < 0 || end < begin || end > size) return arrow::Status::Invalid("the offsets of the texts are damaged");
    if (begin < end && !array.IsNull(i)) texts[static_cast<size_t>(i)] = binary.GetView(i);
  }
  return arrow::Status::OK();
}

// Codes below `different`; -1: missing. Returns whether there are no others.
template <typename ArrayType>
bool CopyCodes(const arrow::Array& array, int64_t different, std::vector<int32_t>& codes) {
  const auto* const from = static_cast<const ArrayType&>(array).raw_values();
  const auto most = static_cast<uint64_t>(std::min<int64_t>(different, std::numeric_limits<int32_t>::max()));
  bool known = true;
  if (array.null_count() == 0) {
    for (int64_t i = 0; i < array.length(); ++i) {
      known &= static_cast<uint64_t>(from[i]) < most;
      codes[static_cast<size_t>(i)] = static_cast<int32_t>(from[i]);
    }
    return known;
  }
  for (int64_t i = 0; i < array.length(); ++i) {
    const bool missing = array.IsNull(i);
    known &= missing || static_cast<uint64_t>(from[i]) < most;
    codes[static_cast<size_t>(i)] = missing ? -1 : static_cast<int32_t>(from[i]);
  }
  return known;
}

arrow::Result<bool> CopyCodes(const arrow::Array& array, int64_t different, std::vector<int32_t>& codes) {
  switch (array.type_id()) {
    case Type::INT8:
      return CopyCodes<arrow::Int8Array>(array, different, codes);
    case Type::UINT8:
      return CopyCodes<arrow::UInt8Array>(array, different, codes);
    case Type::INT16:
      return CopyCodes<arrow::Int16Array>(array, different, codes);
    case Type::UINT16:
      return CopyCodes<arrow::UInt16Array>(array, different, codes);
    case Type::INT32:
      return CopyCodes<arrow::Int32Array>(array, different, codes);
    case Type::UINT32:
      return CopyCodes<arrow::UInt32Array>(array, different, codes);
    case Type::INT64:
      return CopyCodes<arrow::Int64Array>(array, different, codes);
    case Type::UINT64:
      return CopyCodes<arrow::UInt64Array>(array, different, codes);
    default:
      return arrow::Status::Invalid("the codes of a dictionary are no whole numbers");
  }
}

template <typename ArrayType, typename Format>
void MakeTexts(const arrow::Array& array, std::vector<std::string>& made, Format format) {
  const auto& values = static_cast<const ArrayType&>(array);
  for (int64_t i = 0; i < array.length(); ++i) {
    if (!array.IsNull(i)) made[static_cast<size_t>(i)] = format(values, i);
  }
}

}  // namespace

bool IsReadable(const arrow::DataType& type) {
  if (type.id() == Type::EXTENSION) return IsReadable(*static_cast<const arrow::ExtensionType&>(type).storage_type());
  if (type.id() == Type::DICTIONARY) {
    const auto& values = *static_cast<const arrow::DictionaryType&>(type).value_type();
    return values.id() != Type::DICTIONARY && IsReadable(values);
  }
  return IsTextType(type.id()) || IsWholeType(type.id()) || IsRealType(type.id());
}

void ArrayConverter::MarkPresent(const arrow::Array& array, ColumnValues& values) {
  if (array.null_count() == 0) return;
  present_.resize(static_cast<size_t>(array.length()));
  for (int64_t i = 0; i < array.length(); ++i) present_[static_cast<size_t>(i)] = array.IsNull(i) ? 0 : 1;
  values.present = present_.data();
}

arrow::Status ArrayConverter::ConvertReals(const arrow::Array& array, ColumnValues& values) {
  reals_.resize(static_cast<size_t>(array.length()));
  if (array.type_id() == Type::HALF_FLOAT) {
    const auto& halves = static_cast<const arrow::HalfFloatArray&>(array);
    for (int64_t i = 0; i < array.length(); ++i) {
      reals_[static_cast<size_t>(i)] = arrow::util::Float16::FromBits(halves.Value(i)).ToDouble();
    }
  } else if (array.type_id() == Type::FLOAT) {
    CopyNumbers<arrow::FloatArray>(array, reals_.data());
  } else {
    CopyNumbers<arrow::DoubleArray>(array, reals_.data());
  }
  if (array.null_count() > 0) {
    for (int64_t i = 0; i < array.length(); ++i) {
      if (array.IsNull(i)) reals_[static_cast<size_t>(i)] = std::numeric_limits<double>::quiet_NaN();
    }
  }
  values.kind = ColumnKind::kReal;
  values.reals = reals_.data();
  return arrow::Status::OK();
}

arrow::Status ArrayConverter::ConvertWholes(const arrow::Array& array, ColumnValues& values) {
  wholes_.resize(static_cast<size_t>(array.length()));
  switch (array.type_id()) {
    case Type::BOOL: {
      const auto& truths = static_cast<const arrow::BooleanArray&>(array);
      for (int64_t i = 0; i < array.length(); ++i) wholes_[static_cast<size_t>(i)] = truths.Value(i) ? 1 : 0;
      break;
    }
    case Type::INT8:
      CopyNumbers<arrow::Int8Array>(array, wholes_.data());
      break;
    case Type::UINT8:
      CopyNumbers<arrow::UInt8Array>(array, wholes_.data());
      break;
    case Type::INT16:
      CopyNumbers<arrow::Int16Array>(array, wholes_.data());
      break;
    case Type::UINT16:
      CopyNumbers<arrow::UInt16Array>(array, wholes_.data());
      break;
    case Type::INT32:
      CopyNumbers<arrow::Int32Array>(array, wholes_.data());
      break;
    case Type::UINT32:
      CopyNumbers<arrow::UInt32Array>(array, wholes_.data());
      break;
    case Type::INT64:
      CopyNumbers<arrow::Int64Array>(array, wholes_.data());
      break;
    default: {  // UINT64: those that are too large are texts, and so is then the whole array
      const auto& numbers = static_cast<const arrow::UInt64Array&>(array);
      for (int64_t i = 0; i < array.length(); ++i) {
        if (!array.IsNull(i) && numbers.Value(i) > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
          ARROW_RETURN_NOT_OK(ConvertTexts(array));
          values.texts = texts_.data();
          return arrow::Status::OK();
        }
        wholes_[static_cast<size_t>(i)] = static_cast<int64_t>(numbers.Value(i));
      }
    }
  }
  values.kind = ColumnKind::kWhole;
  values.wholes = wholes_.data();
  MarkPresent(array, values);
  return arrow::Status::OK();
}

arrow::Status ArrayConverter::ConvertTexts(const arrow::Array& array) {
  texts_.assign(static_cast<size_t>(array.length()), {});
  const arrow::DataType& type = *array.type();
  switch (type.id()) {
    case Type::NA:
      return arrow::Status::OK();
    case Type::STRING:
    case Type::BINARY:
      return ViewTexts<arrow::BinaryArray>(array, texts_);
    case Type::LARGE_STRING:
    case Type::LARGE_BINARY:
      return ViewTexts<arrow::LargeBinaryArray>(array, texts_);
    case Type::STRING_VIEW:
    case Type::BINARY_VIEW: {
      ARROW_RETURN_NOT_OK(array.ValidateFull());
      const auto& views = static_cast<const arrow::BinaryViewArray&>(array);
      for (int64_t i = 0; i < array.length(); ++i) {
        if (!array.IsNull(i)) texts_[static_cast<size_t>(i)] = views.GetView(i);
      }
      return arrow::Status::OK();
    }
    case Type::FIXED_SIZE_BINARY: {
      const auto& fixed = static_cast<const arrow::FixedSizeBinaryArray&>(array);
      for (int64_t i = 0; i < array.length(); ++i) {
        if (!array.IsNull(i)) texts_[static_cast<size_t>(i)] = fixed.GetView(i);
      }
      return arrow::Status::OK();
    }
    default:
      break;
  }
  made_.assign(static_cast<size_t>(array.length()), {});
  switch (type.id()) {
    case Type::DECIMAL32:
      MakeTexts<arrow::Decimal32Array>(array, made_, [](const auto& a, int64_t i) { return a.FormatValue(i); });
      break;
    case Type::DECIMAL64:
      MakeTexts<arrow::Decimal64Array>(array, made_, [](const auto& a, int64_t i) { return a.FormatValue(i); });
      break;
    case Type::DECIMAL128:
      MakeTexts<arrow::Decimal128Array>(array, made_, [](const auto& a, int64_t i) { return a.FormatValue(i); });
      break;
    case Type::DECIMAL256:
      MakeTexts<arrow::Decimal256Array>(array, made_, [](const auto& a, int64_t i) { return a.FormatValue(i); });
      break;
    case Type::UINT64:
      MakeTexts<arrow::UInt64Array>(array, made_, [](const auto& a, int64_t i) { return std::to_string(a.Value(i)); });
      break;
    case Type::DATE32:
      MakeTexts<arrow::Date32Array>(array, made_, [](const auto& a, int64_t i) { return DateText(a.Value(i)); });
      break;
    case Type::DATE64:
      MakeTexts<arrow::Date64Array>(array, made_,
                                    [](const auto& a, int64_t i) { return TimestampText(a.Value(i), 1000, false); });
      break;
    case Type::TIME32:
      MakeTexts<arrow::Time32Array>(array, made_, [&](const auto& a, int64_t i) {
        return TimeText(a.Value(i), UnitsOfSecond(static_cast<const arrow::Time32Type&>(type).unit()));
      });
      break;
    case Type::TIME64:
      MakeTexts<arrow::Time64Array>(array, made_, [&](const auto& a, int64_t i) {
        return TimeText(a.Value(i), UnitsOfSecond(static_cast<const arrow::Time64Type&>(type).unit()));
      });
      break;
    case Type::TIMESTAMP: {
      const auto& stamp = static_cast<const arrow::TimestampType&>(type);
      MakeTexts<arrow::TimestampArray>(array, made_, [&](const auto& a, int64_t i) {
        return TimestampText(a.Value(i), UnitsOfSecond(stamp.unit()), !stamp.timezone().empty());
      });
      break;
    }
    default:
      return arrow::Status::NotImplemented("values of the type ", type.ToString());
  }
  std::ranges::copy(made_, texts_.begin());
  return arrow::Status::OK();
}

arrow::Status ArrayConverter::ConvertDictionary(const arrow::Array& array, ColumnValues& values) {
  const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
  if (array.data()->dictionary != kept_dictionary_) {
    const arrow::Array& dictionary = *coded.dictionary();
    ARROW_RETURN_NOT_OK(dictionary.Validate());
    if (IsTextType(dictionary.type_id())) {
      ARROW_RETURN_NOT_OK(ConvertTexts(dictionary));
    } else {
      ArrayConverter numbers;
      ARROW_ASSIGN_OR_RAISE(const ColumnValues converted, numbers.Convert(dictionary));
      made_.assign(static_cast<size_t>(dictionary.length()), {});
      for (int64_t i = 0; i < dictionary.length(); ++i) AppendValue(converted, i, made_[static_cast<size_t>(i)]);
      texts_.assign(made_.begin(), made_.end());
    }
    kept_dictionary_ = array.data()->dictionary;
  }
  const auto different = static_cast<int64_t>(texts_.size());
  codes_.resize(static_cast<size_t>(array.length()));
  ARROW_ASSIGN_OR_RAISE(const bool known, CopyCodes(*coded.indices(), different, codes_));
  if (!known) return arrow::Status::Invalid("a value is outside of the dictionary");
  values.texts = texts_.data();
  values.codes = codes_.data();
  values.different = different;
  return arrow::Status::OK();
}

arrow::Result<ColumnValues> ArrayConverter::Convert(const arrow::Array& array) {
  ColumnValues values;
  if (array.type_id() == Type::EXTENSION) {
    return Convert(*static_cast<const arrow::ExtensionArray&>(array).storage());
  }
  if (array.type_id() == Type::DICTIONARY) {
    ARROW_RETURN_NOT_OK(ConvertDictionary(array, values));
    return values;
  }
  kept_dictionary_.reset();
  if (IsRealType(array.type_id())) {
    ARROW_RETURN_NOT_OK(ConvertReals(array, values));
  } else if (IsWholeType(array.type_id())) {
    ARROW_RETURN_NOT_OK(ConvertWholes(array, values));
  } else {
    ARROW_RETURN_NOT_OK(ConvertTexts(array));
    values.texts = texts_.data();
  }
  return values;
}

}  // namespace medley::worker
