// Prints the OpenAPI file: openapi_main DESCRIPTOR_SET
#include <google/protobuf/descriptor.pb.h>

#include <fstream>
#include <iostream>

#include "server/http/openapi.h"

int main(int argc, char** argv) {
  google::protobuf::FileDescriptorSet files;
  std::ifstream in(argc == 2 ? argv[1] : "", std::ios::binary);
  if (!in || !files.ParseFromIstream(&in)) {
    std::cerr << "usage: openapi_main DESCRIPTOR_SET\n";
    return 2;
  }
  const auto json = traind::OpenApiJson(files);
  if (!json.ok()) {
    std::cerr << json.status().message() << "\n";
    return 1;
  }
  std::cout << *json << "\n";
  return std::cout.flush() ? 0 : 1;
}
