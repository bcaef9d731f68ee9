// ./dev fuzz 60 object_wire
// What an object store answers: listings, errors, ids of uploads, ranges; and addresses.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/status.h"
#include "common/object_store/location.h"
#include "common/object_store/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using medley::object_store::ErrorText;
  using medley::object_store::ListedObject;
  using medley::object_store::Scheme;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto page = medley::object_store::ParseListing(text); page.ok()) {
    MEDLEY_CHECK(page->objects.size() + page->prefixes.size() <= medley::object_store::kMostListed,
                 "a page is bounded");
    for (const ListedObject& object : page->objects) {
      MEDLEY_CHECK(!object.key.empty() && object.bytes >= 0, "an object has a name and a length");
    }
  }
  if (const auto page = medley::object_store::ParseUploads(text); page.ok()) {
    for (const auto& upload : page->uploads) {
      MEDLEY_CHECK(!upload.key.empty() && !upload.id.empty(), "an upload has a name and an id");
    }
  }
  const ErrorText error = medley::object_store::ParseError(text);
  MEDLEY_CHECK(error.message.size() <= 300, "a message is bounded");
  (void)medley::object_store::ParseUploadId(text);
  if (const auto range = medley::object_store::ParseContentRange(text); range.ok() && range->last >= range->first) {
    MEDLEY_CHECK(range->first >= 0 && range->last < range->size, "a range lies within the object");
  }
  if (const auto at = medley::object_store::ParseLocation(text); at.ok() && at->scheme != Scheme::kHttps) {
    MEDLEY_CHECK(*medley::object_store::ParseLocation(medley::object_store::NameOf(*at)) == *at,
                 "a name means the same again");
  }
  return 0;
}
