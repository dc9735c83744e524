#include "worker/prepare/python_modules.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace traind {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

TEST(ImportedModules, ThoseOfTheTopAreFound) {
  EXPECT_EQ(*ImportedModules("import os, numpy.linalg as la\nfrom torch.nn import (\n  Linear)\n"
                             "from .beside import x\ntry:\n    import cupy\nexcept E: pass\n"
                             "from sklearn import svm  # and; more\nimportant = 3\n"),
            (Names{"os", "numpy", "torch", "sklearn"}));
  EXPECT_EQ(*ImportedModules(""), Names());
}

TEST(ImportedModules, LinesThatAreNotUnderstoodAreLeftToPython) {
  for (const char* text : {"import os; import numpy\n", "import os, \\\n  numpy\n",
                           "x = 1; import numpy\n", "from the first line (of a text) on\nimport ,\n"}) {
    EXPECT_FALSE(ImportedModules(text).has_value()) << text;
  }
}

// A Python of empty files.
class ModulesThere : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/python-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    Make("base/bin/python3.11");
    Make("base/lib/python3.11/os.py");
    Make("base/lib/python3.11/json/__init__.py");
    Make("base/lib/python3.11/lib-dynload/_ssl.cpython-311-x86_64-linux-gnu.so");
    Make("base/lib/python3.11/site-packages/numpy/__init__.py");
    Make("base/lib/python3.11/site-packages/notes.txt");
    Make("base/lib/python3.9/site-packages/old.py");
    Make("venv/lib/python3.11/site-packages/torch/__init__.py");
    fs::create_directories(root_ + "/venv/bin");
    fs::create_symlink(root_ + "/base/bin/python3.11", root_ + "/venv/bin/python");
    Make("script/helper.py");
    Make("more/extra.py");
  }
  void TearDown() override { fs::remove_all(root_); }
  void Make(const std::string& name, const std::string& text = "") {
    fs::create_directories(fs::path(root_ + "/" + name).parent_path());
    std::ofstream(root_ + "/" + name) << text;
  }
  bool There(const Names& modules, const std::string& interpreter = "base/bin/python3.11",
             const std::string& python_path = "") {
    return AllModulesThere(modules, {root_ + "/" + interpreter, root_ + "/script", python_path});
  }
  std::string root_;
};

TEST_F(ModulesThere, TheLibraryAndPackagesAndTheScriptsFolderCount) {
  EXPECT_TRUE(There({"os", "json", "_ssl", "numpy", "helper", "sys"}));
  for (const char* none : {"torch", "notes", "old", "extra", "nothing"}) {
    EXPECT_FALSE(There({"os", none})) << none;
  }
  EXPECT_TRUE(There({"extra"}, "base/bin/python3.11", "/no/such:" + root_ + "/more"));
}

TEST_F(ModulesThere, AVirtualEnvironmentHasItsOwnPackages) {
  Make("venv/pyvenv.cfg", "home = /x\ninclude-system-site-packages = false\n");
  EXPECT_TRUE(There({"os", "torch"}, "venv/bin/python"));
  EXPECT_FALSE(There({"numpy"}, "venv/bin/python"));
  Make("venv/pyvenv.cfg", "include-system-site-packages = true\n");
  EXPECT_TRUE(There({"numpy"}, "venv/bin/python"));
}

TEST_F(ModulesThere, WithoutAnInterpreterNothingIsSure) {
  EXPECT_FALSE(There({"os"}, "none/bin/python"));
}

}  // namespace
}  // namespace traind
