// The fuzz target of what a client sends to the embedded API server: protobuf bodies, patches, field sets, selectors.
//
// The first byte chooses the decoder. Two JSON documents are separated by a NUL byte.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/document/parse.h"
#include "kube/object.h"
#include "localcluster/apiserver/builtin_schemas.h"
#include "localcluster/apiserver/fieldset.h"
#include "localcluster/apiserver/patch.h"
#include "localcluster/apiserver/protobuf_body.h"

namespace medley::localcluster::apiserver {
namespace {

constexpr document::Limits kLimits{.bytes = 1 << 16, .depth = 32, .values = 10'000};
constexpr char kPod[] = "io.k8s.api.core.v1.Pod";

void FuzzPatches(std::string_view input, const kube::Definitions& definitions, bool by_schema) {
  const size_t end = std::min(input.find('\0'), input.size());
  const auto document = document::Parse(input.substr(0, end), kLimits);
  const auto patch = document::Parse(input.substr(std::min(end + 1, input.size())), kLimits);
  if (!document.ok() || !patch.ok()) return;
  const kube::Schema schema = definitions.Find(kPod);
  if (!by_schema) {
    static_cast<void>(JsonPatch(*document, *patch));
    return;
  }
  static_cast<void>(StrategicMergePatch(*document, *patch, schema));
  const FieldSet set = FromFieldsV1(*patch);
  MEDLEY_CHECK(FromFieldsV1(ToFieldsV1(set)) == set, "a set of fields did not read back as itself");
  kube::Json merged = MergeByStructure(*document, *patch, schema);
  for (const FieldPath& path : set) RemovePath(&merged, schema, path);
  static_cast<void>(DiffFields(*document, merged, schema));
}

void FuzzApiBody(std::string_view input) {
  if (input.empty()) return;
  const auto choice = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  static const kube::Definitions kDefinitions = BuiltinDefinitions();
  switch (choice % 4) {
    case 0:
      static_cast<void>(DecodeProtobuf(input, kDefinitions, kPod));
      break;
    case 1:
      static_cast<void>(kube::LabelSelector::Parse(input));
      break;
    default:
      FuzzPatches(input, kDefinitions, choice % 4 == 3);
  }
}

}  // namespace
}  // namespace medley::localcluster::apiserver

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  medley::localcluster::apiserver::FuzzApiBody({reinterpret_cast<const char*>(data), size});
  return 0;
}
