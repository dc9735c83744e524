// How two specs differ, and the spec that goes on from another's.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>

#include "common/base/field_path.h"
#include "common/spec/field_text.h"
#include "common/spec/media_rules.h"
#include "common/spec/spec_rules.h"

namespace traind {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

bool FieldEquals(const Message& a, const Message& b, const FieldDescriptor& field) {
  google::protobuf::util::MessageDifferencer differencer;
  differencer.set_message_field_comparison(google::protobuf::util::MessageDifferencer::EQUIVALENT);
  return differencer.CompareWithFields(a, b, {&field}, {&field});
}

void CollectDifferences(const Message& a, const Message& b, const std::string& path,
                        std::vector<std::string>& paths) {
  const Descriptor& type = *a.GetDescriptor();
  const Reflection& access = *a.GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string field_path = FieldPath(path, field.name());
    if (FieldEquals(a, b, field)) continue;
    if (!IsScalarField(field) && !field.is_repeated()) {
      const size_t before = paths.size();
      CollectDifferences(access.GetMessage(a, &field), access.GetMessage(b, &field), field_path,
                         paths);
      // Only its presence differs.
      if (paths.size() == before) paths.push_back(field_path);
    } else {
      paths.push_back(field_path);
    }
  }
}

}  // namespace

std::vector<std::string> DifferingFields(const v1::JobSpec& a, const v1::JobSpec& b) {
  std::vector<std::string> paths;
  CollectDifferences(a, b, "", paths);
  return paths;
}

v1::JobSpec GoOnFrom(v1::JobSpec source, const v1::JobSpec& spec) {
  source.clear_budget();
  source.clear_after();
  source.clear_preset();  // what it stood for is in the other fields
  // A list is replaced, not made longer.
  if (spec.model().mlp().hidden_size() > 0) source.mutable_model()->mutable_mlp()->clear_hidden();
  if (spec.data().targets_size() > 0) source.mutable_data()->clear_targets();
  if (Resamples(spec.data().volume())) {
    source.mutable_data()->mutable_volume()->clear_spacing();
    source.mutable_data()->mutable_volume()->clear_spacings();
  }
  if (spec.model().automatic().kinds_size() > 0) {
    source.mutable_model()->mutable_automatic()->clear_kinds();
  }
  if (spec.train().loss().weights_size() > 0) {
    source.mutable_train()->mutable_loss()->clear_weights();
  }
  if (spec.model().unet3d().mirror_size() > 0) {
    source.mutable_model()->mutable_unet3d()->clear_mirror();
  }
  MergeSpec(spec, source);
  if (!source.model().has_automatic()) source.clear_trials();
  return source;
}

std::vector<std::string> FieldsAgainstSource(const v1::JobSpec& source, const v1::JobSpec& spec) {
  static constexpr absl::string_view kFree[] = {"name",
                                                "predictions",
                                                "output",
                                                "labels",
                                                "priority",
                                                "preset",
                                                "cache",
                                                "from",
                                                "budget",
                                                "after",
                                                "resources",
                                                "train.epochs",
                                                "train.patience",
                                                "model.automatic.trials",
                                                "search.trials",
                                                "search.method",
                                                "train.seeds",
                                                "train.checkpoint_every",
                                                "train.checkpoint_epochs",
                                                "train.keep_best",
                                                "train.gradient_norm"};
  std::vector<std::string> against = DifferingFields(source, spec);
  const auto is_free = [&source](const std::string& path) {
    // The folds of a Job without a search are those of the first trial.
    if (!source.has_search() && absl::StartsWith(path, "search")) return true;
    return std::any_of(std::begin(kFree), std::end(kFree), [&path](absl::string_view free) {
      return path == free || absl::StartsWith(path, absl::StrCat(free, "."));
    });
  };
  against.erase(std::remove_if(against.begin(), against.end(), is_free), against.end());
  return against;
}

}  // namespace traind
