#include "common/spec/media_rules.h"

#include <absl/strings/str_cat.h>

namespace traind {
namespace {

constexpr int kMostStages = 8;

}  // namespace

void CheckMedia(const v1::JobSpec& spec, bool partial,
                const std::function<void(const std::string&, const std::string&)>& add) {
  const v1::DataSpec& data = spec.data();
  const v1::ModelSpec& model = spec.model();
  const bool has_model = model.architecture_case() != v1::ModelSpec::ARCHITECTURE_NOT_SET;
  if (data.has_image()) {
    if (spec.task().type() == "forecasting") {
      add("data.image", "is of no use to forecasting");
    }
    if (data.image().channels() == 2) add("data.image.channels", "'2' is neither 1 nor 3");
    const std::string column = data.image().column().empty() ? "file" : data.image().column();
    if (column == data.target()) {
      add("data.image.column", absl::StrCat("'", column, "' is the target, too"));
    }
    if (has_model && !model.has_cnn()) {
      add("model", "takes no images; use model.cnn, or leave it out");
    }
  } else if (!partial) {
    if (model.has_cnn()) add("model.cnn", "needs data.image");
    if (spec.train().has_augment()) add("train.augment", "needs data.image");
  }
  if (model.cnn().blocks_size() > kMostStages) {
    add("model.cnn.blocks",
        absl::StrCat("has ", model.cnn().blocks_size(), " stages; ", kMostStages, " are the most"));
  }
}

void ChooseModel(v1::JobSpec& spec) {
  if (spec.model().architecture_case() != v1::ModelSpec::ARCHITECTURE_NOT_SET) return;
  if (spec.data().has_image()) {
    spec.mutable_model()->mutable_cnn();
  } else {
    spec.mutable_model()->mutable_mlp();
  }
}

}  // namespace traind
