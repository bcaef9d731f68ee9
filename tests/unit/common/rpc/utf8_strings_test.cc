// A message of a member or a coordinator is readable whatever bytes are in its strings.
#include "common/rpc/utf8_strings.h"

#include <gmock/gmock.h>

#include <functional>

#include "common/base/rng.h"
#include "common/base/utf8.h"
#include "medley/job/v1/coordinator.pb.h"
#include "medley/job/v1/journal.pb.h"
#include "medley/scheduler/v1/scheduler.pb.h"

namespace medley::rpc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Puts bytes that are not UTF-8 into every string and map key of the message, three levels deep.
void Fill(Message& message, base::Rng& rng, int depth) {
  const auto bytes = [&] { return std::string("a\xe9") + static_cast<char>(0x80 + rng.Below(0x80)); };
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    if (field->containing_oneof() != nullptr && rng.Below(3) > 0) continue;
    if (field->type() == FieldDescriptor::TYPE_STRING || field->type() == FieldDescriptor::TYPE_BYTES) {
      if (field->is_repeated()) {
        reflection.AddString(&message, field, bytes());
      } else {
        reflection.SetString(&message, field, bytes());
      }
    }
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || depth == 0) continue;
    Message* child =
        field->is_repeated() ? reflection.AddMessage(&message, field) : reflection.MutableMessage(&message, field);
    Fill(*child, rng, depth - 1);
  }
}

template <typename T>
void CheckMany() {
  base::Rng rng(7);
  for (int i = 0; i < 50; ++i) {
    T message;
    Fill(message, rng, 4);
    T parsed;
    EXPECT_FALSE(parsed.ParseFromString(message.SerializeAsString())) << T::descriptor()->name();
    EscapeStrings(message);
    EXPECT_TRUE(parsed.ParseFromString(message.SerializeAsString())) << message.ShortDebugString();
    EXPECT_TRUE(base::IsUtf8(parsed.ShortDebugString()));
  }
}

TEST(EscapeStringsTest, EveryMessageWithStringsCanBeParsed) {
  CheckMany<job::v1::Hello>();
  CheckMany<job::v1::Fault>();
  CheckMany<job::v1::Observation>();
  CheckMany<job::v1::CoordinatorState>();
  CheckMany<job::v1::Prepare>();
}

TEST(EscapeStringsTest, BytesStayAsTheyAre) {
  job::v1::SessionRequest message;
  message.mutable_evaluated()->mutable_transform()->mutable_label()->add_classes("caf\xe9");
  (*message.mutable_evaluated()->mutable_sums())["recall of caf\xe9"] = 1;
  EscapeStrings(message);
  EXPECT_EQ(message.evaluated().transform().label().classes(0), "caf\xe9");
  EXPECT_EQ(message.evaluated().sums().count("recall of caf\\xe9"), 1);
}

}  // namespace
}  // namespace medley::rpc
