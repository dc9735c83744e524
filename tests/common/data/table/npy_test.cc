#include "common/data/table/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "common/base/durable_file.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns the output of numpy.save for numpy.array([[1.5, -2], [0, 3]], dtype="<f4").
std::string NumpyBytes() {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
  header.append(118 - header.size() - 1, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00\x76\x00", 10);
  bytes += header;
  bytes += std::string("\0\0\xc0\x3f\0\0\0\xc0\0\0\0\0\0\0\x40\x40", 16);
  return bytes;
}

std::string WithHeader(std::string header, const std::string& data) {
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + data;
}

TEST(NpyTest, BytesAreThoseThatNumpyWrites) {
  const std::vector<float> values = {1.5f, -2, 0, 3};
  EXPECT_EQ(EncodeNpy({2, 2}, values), NumpyBytes());
  const auto array = ParseNpyFloat(NumpyBytes(), "a.npy");
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_THAT(array->shape, ElementsAre(2, 2));
  EXPECT_THAT(array->values, ElementsAre(1.5f, -2, 0, 3));
}

TEST(NpyTest, OneDimensionAndNoRowsAreShapesToo) {
  const std::vector<int16_t> values = {0, 2, 1};
  const auto array = ParseNpyInt16(EncodeNpy({3}, values), "folds.npy");
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_THAT(array->shape, ElementsAre(3));
  EXPECT_THAT(array->values, ElementsAre(0, 2, 1));
  const auto empty = ParseNpyFloat(EncodeNpy({0, 5}, std::vector<float>()), "test.npy");
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_THAT(empty->shape, ElementsAre(0, 5));
}

TEST(NpyTest, WrittenFilesAreReadBack) {
  std::string pattern = ::testing::TempDir() + "/npy.XXXXXX";
  const std::string dir = mkdtemp(pattern.data());
  ASSERT_TRUE(WriteNpy(dir + "/a.npy", {2, 1}, std::vector<float>{4, 5}).ok());
  EXPECT_THAT(ReadNpyFloat(dir + "/a.npy")->values, ElementsAre(4, 5));
  EXPECT_EQ(ReadNpyInt16(dir + "/a.npy").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadNpyFloat(dir + "/none.npy").status().code(), absl::StatusCode::kNotFound);
  std::filesystem::remove_all(dir);
}

TEST(NpyTest, EveryCutIsDataLoss) {
  const std::string bytes = NumpyBytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto status = ParseNpyFloat(bytes.substr(0, size), "a.npy").status();
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << size;
    EXPECT_THAT(std::string(status.message()), HasSubstr("a.npy"));
  }
  EXPECT_EQ(ParseNpyFloat(bytes + "x", "a").status().code(), absl::StatusCode::kDataLoss);
}

TEST(NpyTest, HostileHeadersAreRefusedBeforeAnythingIsAllocated) {
  for (const char* header : {
           "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 2), }",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1), }",
           "{'descr': '<f4', 'fortran_order': False, }",
           "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,), }",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), ",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } __import__('os')",
           "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
           "((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((",
           "",
       }) {
    const auto status = ParseNpyFloat(WithHeader(header, "\1\2\3\4"), "a.npy").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << header;
  }
}

TEST(NpyTest, OtherTypesAndOrdersAreNamed) {
  const auto wide = ParseNpyFloat(
      WithHeader("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", "12345678"), "a");
  EXPECT_EQ(wide.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(wide.status().message()), HasSubstr("<f8"));
  const auto objects = ParseNpyFloat(
      WithHeader("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "1234"), "a");
  EXPECT_EQ(objects.status().code(), absl::StatusCode::kInvalidArgument);
  const auto fortran = ParseNpyFloat(
      WithHeader("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }", "1234"), "a");
  EXPECT_EQ(fortran.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace traind
