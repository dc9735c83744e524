"""Writes spec_descriptors.cc: embed_descriptors.py DESCRIPTOR_SET >spec_descriptors.cc"""
import sys


def main(path):
    with open(path, "rb") as f:
        data = f.read()
    rows = [",".join(map(str, data[i:i + 24])) for i in range(0, len(data), 24)]
    print('#include "common/spec/spec_descriptors.h"\n\nnamespace traind {\nnamespace {\n')
    print("constexpr unsigned char kBytes[] = {\n" + ",\n".join(rows) + "};\n")
    print("}  // namespace\n\nabsl::string_view SpecDescriptors() {")
    print("  return {reinterpret_cast<const char*>(kBytes), sizeof kBytes};\n}\n\n}  // namespace traind")


if __name__ == "__main__":
    main(sys.argv[1])
