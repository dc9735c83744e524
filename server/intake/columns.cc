#include "server/intake/columns.h"

#include <absl/algorithm/container.h>
#include <absl/strings/str_cat.h>

#include "common/data/table/csv.h"

namespace traind {
namespace {

// The columns that a spec names, by their role.
struct NamedColumns {
  explicit NamedColumns(const v1::DataSpec& data)
      : targets(data.targets().begin(), data.targets().end()) {
    if (!data.target().empty()) targets.push_back(data.target());
    no_features = targets;
    for (const std::string& column :
         {data.id(), data.group(), data.fold_column(), data.image().column(), data.volume().image(),
          data.volume().mask()}) {
      if (!column.empty()) no_features.push_back(column);
    }
  }
  std::vector<std::string> targets;
  std::vector<std::string> no_features;
};

// Checks that the files have the columns that the spec names.
void CheckNamed(const v1::DataSpec& data, const NamedColumns& named, const DataFile& train,
                const DataFile* test, Mistakes& mistakes) {
  const auto require = [&](const DataFile& file, absl::string_view which, absl::string_view field,
                           const std::string& column) {
    if (absl::c_linear_search(file.repeated, column)) {
      mistakes.Add(
          field, absl::StrCat("several columns of the ", which, " file are called '", column, "'"));
    }
    if (column.empty() || absl::c_linear_search(file.header, column)) return;
    mistakes.Add(field, MissingColumn(which, column, file.header));
  };
  for (const std::string& target : named.targets) {
    require(train, "training", "data.target", target);
  }
  require(train, "training", "data.time", data.time());
  require(train, "training", "data.series", data.series());
  for (const std::string& column : data.known_ahead()) {
    require(train, "training", "data.known_ahead", column);
  }
  require(train, "training", "data.group", data.group());
  require(train, "training", "data.fold_column", data.fold_column());
  for (const std::string& column : data.text().columns()) {
    require(train, "training", "data.text.columns", column);
  }
  if (absl::c_linear_search(train.header, data.id())) {
    require(train, "training", "data.id", data.id());
  }
  require(train, "training", "data.image.column", data.image().column());
  require(train, "training", "data.volume.image", data.volume().image());
  require(train, "training", "data.volume.mask", data.volume().mask());
  if (test == nullptr) return;
  for (const std::string& target : named.targets) {
    if (absl::c_linear_search(test->header, target)) {
      require(*test, "test", "data.target", target);
    }
  }
  require(*test, "test", "data.image.column", data.image().column());
  require(*test, "test", "data.volume.image", data.volume().image());
  require(*test, "test", "data.id", data.id());
}

}  // namespace

void CheckColumns(const v1::JobSpec& spec, const DataFile& train, const DataFile* test,
                  Mistakes& mistakes, std::vector<std::string>* warnings) {
  const v1::DataSpec& data = spec.data();
  // The columns of arrays are known only when they are read.
  if (train.arrays || (test != nullptr && test->arrays)) return;
  const NamedColumns named(data);
  CheckNamed(data, named, train, test, mistakes);
  if (!data.id().empty() && absl::c_linear_search(named.targets, data.id())) {
    mistakes.Add("data.id", "the target cannot be the id");
  }
  const auto is_feature = [&](const std::string& column) {
    return !absl::c_linear_search(named.no_features, column);
  };
  // A forecast can learn from the target's own past, without other columns.
  const bool past = spec.task().type() == "forecasting" && spec.data().horizon() > 0;
  if (!past && !data.has_image() && !data.has_volume() &&
      absl::c_none_of(train.header, is_feature)) {
    mistakes.Add("data.train", "there is no column besides the target and the id");
  }
  // Without the target it is unknown which columns are features.
  const bool targets = absl::c_all_of(named.targets, [&](const std::string& target) {
    return absl::c_linear_search(train.header, target);
  });
  if (test == nullptr || !targets) return;
  const auto has = [](const DataFile& file, const std::string& column) {
    return absl::c_linear_search(file.header, column);
  };
  if (data.rolling() && !has(*test, named.targets.front())) {
    warnings->push_back(absl::StrCat("data.rolling: the test file has no column '",
                                     named.targets.front(),
                                     "', so predictions stand for its past values"));
  }
  std::vector<std::string> missing, extra;
  for (size_t i = 0; i < train.header.size(); ++i) {
    const std::string& column = train.header[i];
    // Whether a column without a name holds anything is seen when the file is read.
    const bool has_name = column != UnnamedColumn(i);
    if (has_name && is_feature(column) && !has(*test, column)) missing.push_back(column);
  }
  for (const std::string& column : test->header) {
    if (is_feature(column) && !has(train, column)) extra.push_back(column);
  }
  if (!missing.empty()) {
    mistakes.Add("data.test", absl::StrCat("the test file lacks columns of the training file: ",
                                           SomeOf(missing)));
  }
  if (!extra.empty()) {
    warnings->push_back(absl::StrCat(
        "data.test: columns that the training file lacks are ignored: ", SomeOf(extra)));
  }
}

}  // namespace traind
