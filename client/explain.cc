// The verbs that describe the spec.
#include <absl/strings/str_cat.h>
#include <google/protobuf/descriptor.pb.h>

#include "client/exit_codes.h"
#include "client/verbs.h"
#include "common/spec/spec_descriptors.h"
#include "common/spec/spec_schema.h"

namespace traind {
namespace {

google::protobuf::FileDescriptorSet Files() {
  google::protobuf::FileDescriptorSet files;
  const absl::string_view bytes = SpecDescriptors();
  files.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  return files;
}

}  // namespace

int RunExplain(const Arguments& arguments, Environment& environment) {
  const auto text = ExplainField(Files(), arguments.field, arguments.recursive);
  if (!text.ok()) {
    environment.err << "trainctl: " << text.status().message() << "\n";
    return absl::IsNotFound(text.status()) ? kExitUsage : kExitError;
  }
  environment.out << *text;
  return kExitOk;
}

int RunSchema(const Arguments&, Environment& environment) {
  const auto schema = SpecSchema(Files());
  if (!schema.ok()) return ReportError(environment, schema.status());
  environment.out << *schema;
  return kExitOk;
}

}  // namespace traind
