#include "kube/client/watch_decoder.h"

#include "common/base/testing/status_matchers.h"

namespace medley::kube {
namespace {

const std::string kTwo =
    "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}}\n"
    "{\"type\":\"DELETED\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"b\"}}}\n";

TEST(WatchDecoderTest, LinesCutAnywhereGiveTheSameEvents) {
  for (size_t cut = 0; cut <= kTwo.size(); ++cut) {
    WatchDecoder decoder;
    std::vector<std::string> names;
    const auto sink = [&](WatchEvent event) {
      names.push_back(event.object.key().name);
      return true;
    };
    ASSERT_THAT(decoder.Feed(kTwo.substr(0, cut), sink), base::IsOk());
    ASSERT_THAT(decoder.Feed(kTwo.substr(cut), sink), base::IsOk());
    EXPECT_EQ(names, (std::vector<std::string>{"a", "b"})) << cut;
    EXPECT_FALSE(decoder.partial());
  }
}

TEST(WatchDecoderTest, TypesAndEmptyLines) {
  WatchDecoder decoder;
  std::vector<WatchEvent::Type> types;
  std::string text = "\n\r\n";
  for (const char* type : {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "NEW"}) {
    text += fmt::format("{{\"type\":\"{}\",\"object\":{{}}}}\n", type);
  }
  ASSERT_THAT(decoder.Feed(text,
                           [&](WatchEvent event) {
                             types.push_back(event.type);
                             return true;
                           }),
              base::IsOk());
  using Type = WatchEvent::Type;
  EXPECT_EQ(types, (std::vector<Type>{Type::kAdded, Type::kModified, Type::kDeleted, Type::kBookmark, Type::kError,
                                      Type::kUnknown}));
}

TEST(WatchDecoderTest, HalfALineIsPartial) {
  WatchDecoder decoder;
  ASSERT_THAT(decoder.Feed("{\"type\":\"ADD", [](WatchEvent) { return true; }), base::IsOk());
  EXPECT_TRUE(decoder.partial());
}

TEST(WatchDecoderTest, GarbageIsDataLoss) {
  for (const char* bad : {"<html>\n", "[]\n", "{}\n", "{\"type\":1,\"object\":{}}\n", "{\"type\":\"ADDED\"}\n",
                          "{\"type\":\"ADDED\",\"object\":[]}\n"}) {
    WatchDecoder decoder;
    EXPECT_THAT(decoder.Feed(bad, [](WatchEvent) { return true; }), base::StatusIs(absl::StatusCode::kDataLoss)) << bad;
  }
}

TEST(WatchDecoderTest, LinesAreBounded) {
  WatchDecoder decoder(10);
  const auto sink = [](WatchEvent) { return true; };
  ASSERT_THAT(decoder.Feed("123456", sink), base::IsOk());
  EXPECT_THAT(decoder.Feed("78901", sink), base::StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(WatchDecoderTest, FalseEndsTheStreamInTheMiddleOfAChunk) {
  WatchDecoder decoder;
  int events = 0;
  ASSERT_THAT(decoder.Feed(kTwo,
                           [&](WatchEvent) {
                             ++events;
                             return false;
                           }),
              base::IsOk());
  EXPECT_EQ(events, 1);
  EXPECT_TRUE(decoder.stopped());
}

}  // namespace
}  // namespace medley::kube
