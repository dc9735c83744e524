#include "common/base/host_name.h"

#include <unistd.h>

namespace traind {

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name[0] != '\0' ? name : "localhost";
}

}  // namespace traind
