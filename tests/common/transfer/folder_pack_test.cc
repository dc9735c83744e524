#include "common/transfer/folder_pack.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/base/durable_file.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

class FolderPackTest : public testing::Test {
 protected:
  FolderPackTest() {
    root_ = absl::StrCat(testing::TempDir(), "/pack.XXXXXX");
    EXPECT_NE(mkdtemp(root_.data()), nullptr);
    root_ = fs::canonical(root_).string();
    Write("from/a.png", std::string(3000, 'a'));
    Write("from/b c/d.png", "dd");
    Write("from/b c/empty.png", "");
    Write("from/é.png", std::string(1 << 21, 'e'));
    Write("outside.txt", "secret");
  }
  ~FolderPackTest() override { fs::remove_all(root_); }

  std::string At(const std::string& path) const { return absl::StrCat(root_, "/", path); }
  void Write(const std::string& path, const std::string& bytes) const {
    fs::create_directories(fs::path(At(path)).parent_path());
    std::ofstream(At(path), std::ios::binary) << bytes;
  }
  std::unique_ptr<FolderPack> Pack(const std::vector<std::string>& files,
                                   std::vector<std::string> names = {}) const {
    auto pack = FolderPack::Open(At("from"), files, std::move(names));
    EXPECT_TRUE(pack.ok()) << pack.status();
    return *std::move(pack);
  }
  static std::string BytesOf(FolderPack& pack) {
    return pack.Read(0, static_cast<size_t>(pack.bytes())).value();
  }
  absl::Status Unpack(const std::string& bytes) const {
    Write("to/folder.pack", bytes);
    return UnpackFolder(At("to/folder.pack"), At("to/folder"));
  }
  std::string Unpacked(const std::string& path) const {
    return ReadFile(At("to/folder/" + path)).value_or("is not there");
  }

  const std::vector<std::string> all_ = {"é.png", "a.png", "b c/empty.png", "b c/d.png"};
  std::string root_;
};

TEST_F(FolderPackTest, AFolderComesBackAsItWas) {
  const auto pack = Pack(all_, {"class/", "notes.txt"});
  ASSERT_TRUE(Unpack(BytesOf(*pack)).ok());
  EXPECT_EQ(Unpacked("a.png"), std::string(3000, 'a'));
  EXPECT_EQ(Unpacked("b c/d.png"), "dd");
  EXPECT_EQ(Unpacked("b c/empty.png"), "");
  EXPECT_EQ(Unpacked("é.png"), std::string(1 << 21, 'e'));
  EXPECT_EQ(Unpacked("notes.txt"), "");
  EXPECT_TRUE(fs::is_directory(At("to/folder/class")));
  EXPECT_FALSE(fs::exists(At("to/folder.pack")));
}

TEST_F(FolderPackTest, FilesBelowAFolderAreListedWithoutLinksAndTemporaryOnes) {
  Write("from/b c/half.csv.tmp-12-0", "h");
  fs::create_symlink(At("outside.txt"), At("from/link.txt"));
  fs::create_directory_symlink(At("from/b c"), At("from/folder"));
  const std::vector<std::string> listed = {"a.png", "b c/d.png", "b c/empty.png", "é.png"};
  EXPECT_EQ(FilesBelow(At("from")).value(), listed);
  EXPECT_TRUE(absl::IsAborted(FilesBelow(At("none")).status()));
}

TEST_F(FolderPackTest, AProgramCanBeStartedWhereItComesTo) {
  fs::permissions(At("from/a.png"), fs::perms::owner_exec, fs::perm_options::add);
  const auto pack = Pack(all_);
  const std::string bytes = BytesOf(*pack);
  EXPECT_EQ(bytes.rfind("traind-pack 1\n3000x a.png\n2 b c/d.png\n", 0), 0u) << bytes.substr(0, 60);
  ASSERT_TRUE(Unpack(bytes).ok());
  EXPECT_EQ(access(At("to/folder/a.png").c_str(), X_OK), 0);
  EXPECT_NE(fs::status(At("to/folder/b c/d.png")).permissions() & fs::perms::owner_exec,
            fs::perms::owner_exec);
}

TEST_F(FolderPackTest, AWrittenPackHasAllOfItsBytes) {
  const auto pack = Pack(all_);
  fs::create_directories(At("to"));
  ASSERT_TRUE(pack->WriteTo(At("to/written")).ok());
  EXPECT_EQ(ReadFile(At("to/written")).value(), BytesOf(*pack));
}

TEST_F(FolderPackTest, AnyPartMayBeReadFirst) {
  const auto pack = Pack(all_);
  const std::string whole = BytesOf(*pack);
  EXPECT_EQ(pack->Digest().value().sha256, Sha256Hex(whole));
  EXPECT_EQ(pack->Digest().value().bytes, pack->bytes());
  for (int64_t offset = 0; offset < 3200; ++offset) {
    ASSERT_EQ(pack->Read(offset, 7).value(), whole.substr(static_cast<size_t>(offset), 7));
  }
  EXPECT_EQ(pack->Read(pack->bytes() - 3, 100).value(), "eee");
  EXPECT_EQ(pack->Read(pack->bytes(), 100).value(), "");
}

TEST_F(FolderPackTest, TheOrderOfTheListDoesNotCount) {
  const auto one = Pack({"a.png", "b c/d.png"}),
             other = Pack({"b c/../b c/d.png", "./a.png", "a.png"});
  EXPECT_EQ(BytesOf(*one), BytesOf(*other));
}

TEST_F(FolderPackTest, WhatIsMissingOrOutsideIsLeftOut) {
  fs::create_symlink("../outside.txt", At("from/link.png"));
  fs::create_symlink("a.png", At("from/inside.png"));
  const auto pack = Pack(
      {"a.png", "none.png", "link.png", "../outside.txt", At("outside.txt"), "b c", "inside.png"});
  const std::string bytes = BytesOf(*pack);
  EXPECT_THAT(bytes, testing::Not(testing::HasSubstr("secret")));
  EXPECT_THAT(bytes, testing::StartsWith("traind-pack 1\n3000 a.png\n3000 inside.png\n\n"));
}

TEST_F(FolderPackTest, AFileThatChangesIsNamed) {
  const auto pack = Pack({"a.png", "é.png"});
  Write("from/a.png", "shorter");
  const absl::Status status = pack->Digest().status();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(status.message(), testing::HasSubstr("a.png has changed"));
}

TEST_F(FolderPackTest, ANameThatIsNoLineIsRefused) {
  Write("from/new\nline.png", "x");
  const auto pack = FolderPack::Open(At("from"), {"new\nline.png"}, {});
  EXPECT_TRUE(absl::IsInvalidArgument(pack.status())) << pack.status();
}

TEST_F(FolderPackTest, OtherBytesMakeNoFolder) {
  const std::string begin = "traind-pack 1\n";
  for (const std::string& bytes : {
           std::string(),
           std::string("traind-pack 2\n\n"),
           begin,
           begin + "1 a",
           begin + "1 a\n\n",
           begin + "1 a\n\nxy",
           begin + "-1 a\n\n",
           begin + "x a\n\n",
           begin + "1a\n\nx",
           begin + "1 ../a\n\nx",
           begin + "1 /a\n\nx",
           begin + "1 b/../../a\n\nx",
           begin + "1 a/\n\nx",
           begin + "1 a\n1 a\n\nxy",
           begin + "1 a\n1 a/b\n\nxy",
           begin + "9223372036854775807 a\n9223372036854775807 b\n\nx",
           begin + "1 " + std::string(5000, 'a') + "\n\nx",
       }) {
    EXPECT_FALSE(Unpack(bytes).ok()) << bytes.substr(0, 100);
    EXPECT_FALSE(fs::exists(At("to/folder"))) << bytes.substr(0, 100);
    EXPECT_FALSE(fs::exists(At("to/folder.part"))) << bytes.substr(0, 100);
    EXPECT_FALSE(fs::exists(At("a")) || fs::exists(At("to/a"))) << bytes.substr(0, 100);
  }
}

TEST_F(FolderPackTest, WhatSomebodyLeftWhoDiedIsReplaced) {
  Write("to/folder.part/a.png", "half");
  Write("to/folder.part/other.png", "x");
  ASSERT_TRUE(Unpack(BytesOf(*Pack({"a.png"}))).ok());
  EXPECT_EQ(Unpacked("a.png"), std::string(3000, 'a'));
  EXPECT_FALSE(fs::exists(At("to/folder/other.png")));
  // Somebody else was first.
  EXPECT_TRUE(UnpackFolder(At("to/folder.pack"), At("to/folder")).ok());
  EXPECT_FALSE(UnpackFolder(At("to/folder.pack"), At("to/none")).ok());
}

}  // namespace
}  // namespace traind
