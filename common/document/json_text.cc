// JSON text to a tree, by the parser of nlohmann/json.
#include <algorithm>
#include <iterator>

#include "common/base/status.h"
#include "common/document/place.h"
#include "common/document/tree_builder.h"

namespace medley::document {
namespace {

using nlohmann::json;

// Runs over the text and notes how far the parser has read: its events do not say where they are.
struct NotingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  reference operator*() const { return *at; }
  NotingIterator& operator++() {
    *furthest = ++at;
    return *this;
  }
  bool operator==(const NotingIterator& other) const { return at == other.at; }
  bool operator!=(const NotingIterator& other) const { return at != other.at; }

  const char* at;
  const char** furthest;
};

class JsonEvents final : public nlohmann::json_sax<json> {
 public:
  explicit JsonEvents(TreeBuilder& builder) : builder_(builder) {}

  bool null() override { return builder_.Put(nullptr); }
  bool boolean(bool value) override { return builder_.Put(value); }
  bool number_integer(number_integer_t value) override { return builder_.Put(value); }
  bool number_unsigned(number_unsigned_t value) override { return builder_.Put(value); }
  bool number_float(number_float_t value, const string_t&) override { return builder_.Put(value); }
  bool string(string_t& value) override { return builder_.Put(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return builder_.Open(json::object()); }
  bool end_object() override { return builder_.Close(); }
  bool start_array(size_t) override { return builder_.Open(json::array()); }
  bool end_array() override { return builder_.Close(); }
  bool key(string_t& name) override { return builder_.Key(std::move(name)); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    error_at_ = position;
    error_ = error.what();
    return false;
  }

  size_t error_at() const { return error_at_; }
  // What the library says, without its own codes, on one line. It quotes the text, which may hold anything.
  std::string Why() const {
    const size_t parsing = error_.find("syntax error while ");
    const size_t code = error_.find("] ");
    std::string why = parsing != std::string::npos ? error_.substr(parsing + 19)
                      : code != std::string::npos  ? error_.substr(code + 2)
                                                   : error_;
    if (why.size() > 120) why.resize(120);
    for (char& c : why) {
      if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = ' ';
    }
    return why;
  }

 private:
  TreeBuilder& builder_;
  size_t error_at_ = 0;
  std::string error_;
};

}  // namespace

absl::StatusOr<json> ParseJson(std::string_view text, const Limits& limits, std::vector<std::string>* duplicates) {
  MEDLEY_RETURN_IF_ERROR(CheckSize(text, limits));
  TreeBuilder builder(limits, text.size(), duplicates);
  JsonEvents events(builder);
  const char* furthest = text.data();
  const NotingIterator begin{text.data(), &furthest}, end{text.data() + text.size(), &furthest};
  if (json::sax_parse(begin, end, &events)) return builder.Take();
  if (builder.failure().empty()) {
    return base::InvalidArgument("broken JSON at {}: {}", Place(text, events.error_at()), events.Why());
  }
  return base::InvalidArgument("{}, at {}", builder.failure(),
                               Place(text, static_cast<size_t>(furthest - text.data())));
}

}  // namespace medley::document
