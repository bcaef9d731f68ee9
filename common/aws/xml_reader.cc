#include "common/aws/xml_reader.h"

#include <expat.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "common/base/status.h"

namespace medley::aws {
namespace {

constexpr size_t kChunk = 1 << 20;

struct Reader {
  XML_Parser parser;
  const std::function<absl::Status(const std::string&)>& on_start;
  const std::function<absl::Status(const std::string&, std::string_view)>& on_end;
  std::string path;
  std::vector<size_t> lengths;  // length of `path` before each open element
  std::string text;
  absl::Status status;

  void Fail(absl::Status why) {
    if (status.ok()) status = std::move(why);
    XML_StopParser(parser, XML_FALSE);
  }

  static Reader& Of(void* self) { return *static_cast<Reader*>(self); }

  static void Start(void* self_pointer, const XML_Char* name, const XML_Char**) {
    Reader& self = Of(self_pointer);
    if (!self.status.ok()) return;
    if (self.lengths.size() >= static_cast<size_t>(kMaxXmlDepth)) {
      return self.Fail(base::ResourceExhausted("XML nested deeper than {}", kMaxXmlDepth));
    }
    std::string_view local = name;
    if (const size_t colon = local.rfind(':'); colon != std::string_view::npos) local.remove_prefix(colon + 1);
    self.lengths.push_back(self.path.size());
    if (!self.path.empty()) self.path += '/';
    self.path += local.substr(0, 256);
    self.text.clear();
    if (absl::Status status = self.on_start(self.path); !status.ok()) self.Fail(std::move(status));
  }

  static void End(void* self_pointer, const XML_Char*) {
    Reader& self = Of(self_pointer);
    if (!self.status.ok()) return;
    std::string_view text = self.text;
    const size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
    text.remove_prefix(begin);
    text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
    if (absl::Status status = self.on_end(self.path, text); !status.ok()) return self.Fail(std::move(status));
    self.path.resize(self.lengths.back());
    self.lengths.pop_back();
    self.text.clear();
  }

  static void Text(void* self_pointer, const XML_Char* bytes, int size) {
    Reader& self = Of(self_pointer);
    if (!self.status.ok()) return;
    if (self.text.size() + static_cast<size_t>(size) > kMaxXmlText) {
      return self.Fail(base::ResourceExhausted("{}: more than {} bytes of text", self.path, kMaxXmlText));
    }
    self.text.append(bytes, static_cast<size_t>(size));
  }

  static void Doctype(void* self_pointer, const XML_Char*, const XML_Char*, const XML_Char*, int) {
    Of(self_pointer).Fail(base::InvalidArgument("XML: a document type declaration is not allowed"));
  }
};

}  // namespace

absl::Status ReadXml(std::string_view body, const std::function<absl::Status(const std::string&)>& on_start,
                     const std::function<absl::Status(const std::string&, std::string_view)>& on_end) {
  const std::unique_ptr<XML_ParserStruct, void (*)(XML_Parser)> parser(XML_ParserCreate(nullptr), &XML_ParserFree);
  MEDLEY_CHECK(parser != nullptr, "XML_ParserCreate failed");
  Reader reader{parser.get(), on_start, on_end, {}, {}, {}, {}};
  XML_SetUserData(parser.get(), &reader);
  XML_SetElementHandler(parser.get(), &Reader::Start, &Reader::End);
  XML_SetCharacterDataHandler(parser.get(), &Reader::Text);
  XML_SetStartDoctypeDeclHandler(parser.get(), &Reader::Doctype);
  for (bool last = false; !last;) {
    const std::string_view chunk = body.substr(0, kChunk);
    body.remove_prefix(chunk.size());
    last = body.empty();
    const XML_Status status =
        XML_Parse(parser.get(), chunk.data(), static_cast<int>(chunk.size()), last ? XML_TRUE : XML_FALSE);
    if (!reader.status.ok()) return reader.status;
    if (status != XML_STATUS_OK) {
      return base::InvalidArgument("not XML at line {}, column {}: {}", XML_GetCurrentLineNumber(parser.get()),
                                   XML_GetCurrentColumnNumber(parser.get()),
                                   XML_ErrorString(XML_GetErrorCode(parser.get())));
    }
  }
  return absl::OkStatus();
}

}  // namespace medley::aws
