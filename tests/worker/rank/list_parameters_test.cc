// trainrank list-parameters lists the network that a Job trains.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>
#include <stdio.h>

#include <nlohmann/json.hpp>
#include <string>

#include "common/spec/spec_rules.h"

namespace traind {
namespace {

using google::protobuf::FieldDescriptor;
using Json = nlohmann::json;

// Returns the program's list of a model's parameters; text, images and volumes are small.
std::string ListOf(const Json& model, const std::string& needs) {
  const std::string shape = needs == "data.image"    ? " image=3,8,8"
                            : needs == "data.volume" ? " image=1,4,8,8"
                            : needs == "data.text"   ? " vocabulary=20 max_tokens=8"
                                                     : " numeric=3";
  const std::string command =
      absl::StrCat("worker/trainrank list-parameters '", model.dump(), "'", shape);
  FILE* const program = popen(command.c_str(), "r");
  std::string text;
  char part[4096];
  while (const size_t size = fread(part, 1, sizeof part, program)) text.append(part, size);
  EXPECT_EQ(pclose(program), 0) << command;
  return text;
}

// The model section of the spec as a Job would be accepted with it.
Json Resolved(const std::string& network) {
  const auto spec = SpecFromJson(
      absl::StrCat(R"({"api":"v1","task":{"type":"regression"},"data":{"train":"/t"},"model":{")",
                   network, R"(":{}}})"));
  EXPECT_TRUE(spec.ok()) << spec.status();
  return Json::parse(SpecToJson(ResolveSpec(*spec)))["model"];
}

TEST(ListParametersTest, DefaultsAreThoseOfAnAcceptedSpec) {
  const auto& networks = *v1::ModelSpec::descriptor()->FindOneofByName("architecture");
  for (int i = 0; i < networks.field_count(); ++i) {
    const FieldDescriptor& network = *networks.field(i);
    const auto& rules = network.options().GetExtension(v1::rules);
    if (network.name() == "script") continue;  // has no defaults, but a file
    if (rules.trees() || network.name() == "automatic" || network.name() == "command") {
      continue;  // no networks
    }
    const std::string& needs = rules.needs();
    const std::string open = ListOf({{network.name(), Json::object()}}, needs);
    EXPECT_TRUE(absl::StrContains(open, "weight")) << open;
    EXPECT_EQ(open, ListOf(Resolved(network.name()), needs)) << network.name();
  }
}

}  // namespace
}  // namespace traind
