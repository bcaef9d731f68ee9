// Reads a layer table of examples/models. For tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/model.h"
#include "common/model/text.h"
#include "medley/profile/v1/profile.pb.h"

namespace medley::sched {

inline model::Model LoadModel(const std::string& name) {
  const std::string path = std::string(std::getenv("MEDLEY_SOURCE_DIR")) + "/examples/models/" + name + ".yaml";
  const auto text = base::ReadFile(path);
  EXPECT_TRUE(text.ok()) << path;
  profile::v1::Model message;
  const absl::Status parsed = model::ParseText(text.ok() ? *text : "", message);
  EXPECT_TRUE(parsed.ok()) << base::ToString(parsed);
  auto model = model::FromProto(message);
  EXPECT_TRUE(model.ok());
  return *std::move(model);
}

}  // namespace medley::sched
