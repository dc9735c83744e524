#include "common/spec/spec_doc.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>
#include <google/protobuf/descriptor.h>

#include <vector>

#include "common/base/status_macros.h"
#include "common/spec/field_doc.h"
#include "common/spec/field_text.h"
#include "common/spec/short_forms.h"

namespace traind {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr char kIntroduction[] = R"(# The job spec

<!-- Made from proto/job.proto: bazel run //common/spec:spec_doc_main -->

What a user submits: YAML, or JSON. `trainctl submit -f job.yaml` reads it strictly: an unknown or
repeated key, a wrong type or a value out of range is an error with its line and column, and
nothing is submitted. A key that is left out, or empty, has its default. The shortest spec is

```yaml
data: adult_train.csv
target: income
budget: 60s
```

and a longer one

```yaml
api: v1
name: adult
task: {type: classification, metric: accuracy}
data: {train: adult_train.csv, test: adult_test.csv, target: income, id: row_id, folds: 5, seed: 7}
model: {mlp: {hidden: [256, 256], dropout: 0.1}}
train: {epochs: 20, batch: auto, precision: auto, patience: 5}
resources: {slots: 1, device: auto}
budget: {time: 60s}
output: predictions.csv
```

How values are written:

- **duration**: `90s`, `15m`, `1h30m`, `2d`, `500ms` (units d h m s ms, or words such as `minutes`), or `HH:MM:SS` and
  `D-HH:MM:SS`. Blanks may stand before a unit (`20 s`). A number without unit is refused.
- **time**: RFC 3339 with a zone, `2026-12-01T18:00:00Z`; or `+2h`, from now.
- **path**: relative to the folder of the spec file; over gRPC absolute, or `sha256:<digest>`.
- **number**: decimal and without quotes; `true` and `false` are the only booleans.
- **short forms**, at the top of a spec: @SHORT@.
- Anchors, aliases and `<<` merges work. At most 1 MiB, 32 levels deep.

`--set section.key=value` sets one field from the command line, as though it stood in the file
(relative paths, too); a value that begins with `[`, `{` or a quote is read as YAML. `--budget`,
`--deadline`, `--name` and `-l key=value` are short for `budget.time`, `budget.deadline`, `name`
and `labels.key`.
)";

std::string ShortForms() {
  std::vector<std::string> forms;
  for (const ShortForm& form : kShortForms) {
    forms.push_back(
        absl::StrCat("`", form.key, ": X` for `", form.section, ": {", form.field, ": X}`"));
  }
  return absl::StrJoin(forms, ", ");
}

class ReferenceWriter {
 public:
  void WriteSection(const std::string& path, const Descriptor& type, const std::string& about) {
    absl::StrAppend(&text_, "\n## ", path.empty() ? "The whole spec" : "`" + path + "`", "\n\n");
    if (!about.empty()) absl::StrAppend(&text_, about, "\n\n");
    absl::StrAppend(&text_, "| key | type | default | allowed | meaning |\n",
                    "| --- | --- | --- | --- | --- |\n");
    std::vector<const FieldDescriptor*> sections;
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      if (RulesOf(field).internal()) continue;
      const bool section = !IsScalarField(field) && !field.is_map();
      const FieldDoc doc = DocOf(field);
      std::string meaning = doc.meaning;
      if (section) {
        sections.push_back(&field);
        if (meaning.empty()) meaning = "see below";
      }
      if (const auto* oneof = field.real_containing_oneof(); oneof && oneof->field_count() > 1) {
        absl::StrAppend(&meaning, " (one ", oneof->name(), " only)");
      }
      if (meaning.empty()) undescribed_.push_back(field.full_name());
      absl::StrAppend(&text_, "| `", field.name(), "` | ", doc.type, " | ", doc.default_value,
                      " | ", doc.allowed, " | ", absl::StrReplaceAll(meaning, {{"|", "\\|"}}),
                      " |\n");
    }
    for (const FieldDescriptor* field : sections) {
      const Descriptor& below = *field->message_type();
      WriteSection(path.empty() ? field->name() : path + "." + field->name(), below,
                   CommentOf(below));
    }
  }

  const std::string& text() const { return text_; }
  const std::vector<std::string>& undescribed() const { return undescribed_; }

 private:
  std::string text_ = absl::StrReplaceAll(kIntroduction, {{"@SHORT@", ShortForms()}});
  std::vector<std::string> undescribed_;
};

}  // namespace

absl::StatusOr<std::string> SpecReference(const google::protobuf::FileDescriptorSet& files) {
  google::protobuf::DescriptorPool pool;
  ASSIGN_OR_RETURN(const Descriptor* const spec, BuildSpec(files, pool));
  ReferenceWriter writer;
  writer.WriteSection("", *spec, CommentOf(*spec));
  if (!writer.undescribed().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no comment at ", absl::StrJoin(writer.undescribed(), ", ")));
  }
  return writer.text();
}

}  // namespace traind
