#include "client/version.h"

#include "client/exit_codes.h"
#include "client/verbs.h"
#include "common/wire/render_json.h"

namespace traind {

int RunVersion(const Arguments& arguments, Environment& environment) {
  if (arguments.json) {
    environment.out << "{\n  \"version\": " << JsonString(kClientVersion)
                    << ",\n  \"api\": \"traind.v1\"\n}\n";
  } else {
    environment.out << "trainctl " << kClientVersion << " (traind.v1)\n";
  }
  return kExitOk;
}

}  // namespace traind
