#include "client/exit_codes.h"
#include "client/spec_input.h"
#include "client/verbs.h"
#include "common/spec/field_text.h"

namespace traind {

int RunValidate(const Arguments& arguments, Environment& environment) {
  SpecInput input;
  if (!LoadSpec(arguments, environment, "the spec cannot be submitted", input)) return kExitUsage;
  const std::string file = Printable(arguments.file == "-" ? "stdin" : arguments.file, 4096);
  environment.out << file << ": no mistakes\n";
  if (arguments.file != "-") SuggestNext(arguments, environment, {"plan " + file});
  return kExitOk;
}

}  // namespace traind
