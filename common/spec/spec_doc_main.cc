// Prints docs/SPEC.md: spec_doc_main DESCRIPTOR_SET
#include <google/protobuf/descriptor.pb.h>

#include <fstream>
#include <iostream>

#include "common/spec/spec_doc.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: spec_doc_main DESCRIPTOR_SET\n";
    return 2;
  }
  std::ifstream in(argv[1], std::ios::binary);
  google::protobuf::FileDescriptorSet files;
  if (!in || !files.ParseFromIstream(&in)) {
    std::cerr << argv[1] << ": no descriptor set\n";
    return 1;
  }
  const auto reference = traind::SpecReference(files);
  if (!reference.ok()) {
    std::cerr << reference.status().message() << "\n";
    return 1;
  }
  std::cout << *reference;
  return std::cout.flush() ? 0 : 1;
}
