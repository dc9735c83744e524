#include "worker/prepare/volume_media.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "common/base/data_roots.h"
#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/data/table/csv.h"
#include "common/data/table/mapped_file.h"
#include "common/data/table/table_text.h"
#include "common/data/volume/file_pair.h"
#include "common/data/volume/spacing.h"
#include "common/data/volume/volume_set_writer.h"
#include "worker/prepare/image_media.h"

namespace traind {
namespace {

// Fraction of the training volumes that may be unreadable (one may be in any case).
constexpr double kMostBadShare = 0.05;
constexpr size_t kMostNamed = 5;
constexpr float kNoMask = std::numeric_limits<float>::quiet_NaN();

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

class VolumeMedia final : public RowMedia {
 public:
  explicit VolumeMedia(const PrepareSpec& spec) : spec_(spec) {}
  absl::Status Open();

  CsvFile train() const override { return train_.table; }
  CsvFile test() const override { return test_.table; }
  std::vector<std::string> text_columns() const override {
    return {spec_.volume->image, spec_.volume->mask};
  }
  std::string content() const override { return content_; }
  bool IsCached(const std::string& state_dir, const std::string& key) const override {
    return VolumeSet::Open(CachePath(state_dir, key)).ok();
  }
  absl::Status Add(const std::string& state_dir, const std::string& key,
                   TableRows& rows) const override;
  absl::Status CheckUnchanged() const override;

 private:
  struct Part {
    std::string root;      // folder of the manifest's paths
    std::string manifest;  // the memory behind `table`
    std::unique_ptr<MappedFile> file;
    std::unique_ptr<TableText> text;
    CsvFile table;
  };
  static std::string CachePath(const std::string& state_dir, const std::string& key) {
    return absl::StrCat(state_dir, "/", VolumeCachePath(key));
  }
  absl::Status OpenPart(const std::string& path, bool training, Part& part);
  absl::StatusOr<float> AddRow(VolumeSetWriter& writer, Split split,
                               const std::vector<TextRows>& texts, size_t row) const;
  absl::Status AddTraining(VolumeSetWriter& writer, TableRows& rows) const;
  VolumeTreatment TreatmentFor(TableRows& rows) const;

  const PrepareSpec& spec_;
  Part train_, test_;
  std::string content_ =  // with the digests of all files
      absl::StrCat("volumes ", kVolumeReaderVersion, "\n");
};

absl::Status VolumeMedia::Open() {
  for (const std::string& name : spec_.volume->classes) {
    absl::StrAppend(&content_, "class ", CsvField(name), "\n");
  }
  const VolumeTreatment& treatment = spec_.volume->treatment;
  if (treatment.largest_component) absl::StrAppend(&content_, "components largest\n");
  if (treatment.choose_components) absl::StrAppend(&content_, "components auto\n");
  if (spec_.volume->median_spacing) absl::StrAppend(&content_, "spacing auto\n");
  if (treatment.spacing.has_value()) {
    const Spacing& spacing = *treatment.spacing;
    absl::StrAppendFormat(&content_, "spacing %.17g %.17g %.17g\n", spacing[0], spacing[1],
                          spacing[2]);
  }
  RETURN_IF_ERROR(OpenPart(spec_.train, /*training=*/true, train_));
  if (spec_.test.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(OpenPart(spec_.test, /*training=*/false, test_));
  if (test_.table.name == train_.table.name) {
    train_.table.name = spec_.train;
    test_.table.name = spec_.test;
  }
  return absl::OkStatus();
}

absl::Status VolumeMedia::OpenPart(const std::string& path, bool training, Part& part) {
  ASSIGN_OR_RETURN(part.file, MappedFile::Open(path));
  ASSIGN_OR_RETURN(part.text, TableText::Of(part.file->bytes(), BaseName(path), spec_.scratch));
  const std::string name = part.text->csv().name;
  const absl::string_view bytes = part.text->csv().bytes;
  part.root = path.substr(0, path.rfind('/'));
  std::vector<std::string> repeated;
  ASSIGN_OR_RETURN(const std::vector<std::string> header, ReadCsvHeader(bytes, name, &repeated));
  const auto find = [&header](const std::string& column) {
    return static_cast<size_t>(std::find(header.begin(), header.end(), column) - header.begin());
  };
  const size_t image = find(spec_.volume->image), mask = find(spec_.volume->mask);
  for (const auto& [at, column, field] :
       {std::make_tuple(image, spec_.volume->image, "data.volume.image"),
        std::make_tuple(mask, spec_.volume->mask, "data.volume.mask")}) {
    if (at < header.size() || (column == spec_.volume->mask && !training)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": there is no column '", column, "' (", field, ")"));
  }
  if (find(kForegroundColumn) < header.size()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": the column '", kForegroundColumn,
                                                   "' has the name of the predicted column"));
  }
  CsvReader reader(bytes, name, DelimiterOf(bytes, name));
  for (int64_t row = -1;; ++row) {
    ASSIGN_OR_RETURN(const bool more, reader.Next());
    if (!more) break;
    const std::vector<absl::string_view>& fields = reader.fields();
    if (fields.size() != header.size()) {
      return RaggedRow(name, row + 1, reader.line(), fields.size(), header);
    }
    std::vector<std::string> out;
    for (const absl::string_view field : fields) out.push_back(CsvField(field));
    if (mask == header.size()) out.push_back(row < 0 ? CsvField(spec_.volume->mask) : "");
    // Distinct numbers, until the masks have been read.
    out.push_back(row < 0 ? kForegroundColumn : absl::StrCat(row));
    absl::StrAppend(&part.manifest, absl::StrJoin(out, ","), "\n");
    for (const size_t at : {image, mask}) {
      if (row < 0 || at >= fields.size() || IsMissing(fields[at])) continue;
      ASSIGN_OR_RETURN(const std::string file, FileBelow(part.root, fields[at], name));
      for (const std::string& part_of : {file, OtherOfPair(file)}) {
        if (part_of.empty()) continue;
        const absl::StatusOr<FileDigest> digest = DigestFile(part_of);
        absl::StrAppend(&content_, digest.ok() ? digest->sha256 : "not there", "\n");
      }
    }
  }
  part.table = {name, part.manifest, part.text->csv().warnings};
  absl::StrAppend(&content_, "\n");
  return absl::OkStatus();
}

// Returns the fraction of foreground in the row's mask; NaN without a mask.
absl::StatusOr<float> VolumeMedia::AddRow(VolumeSetWriter& writer, Split split,
                                          const std::vector<TextRows>& texts, size_t row) const {
  const Part& part = split == Split::kTrain ? train_ : test_;
  std::string mask;
  ASSIGN_OR_RETURN(const std::string image, FileBelow(part.root, texts[0][row], part.table.name));
  if (!texts[1][row].empty()) {
    ASSIGN_OR_RETURN(mask, FileBelow(part.root, texts[1][row], part.table.name));
  } else if (split == Split::kTrain) {
    return absl::InvalidArgumentError(absl::StrCat(image, ": there is no mask"));
  }
  ASSIGN_OR_RETURN(const StoredVolume volume, writer.Add(split, image, mask));
  return volume.has_mask ? static_cast<float>(volume.share()) : kNoMask;
}

absl::Status VolumeMedia::AddTraining(VolumeSetWriter& writer, TableRows& rows) const {
  TableSchema& schema = rows.schema;
  const auto count = static_cast<size_t>(schema.train_rows);
  std::vector<bool> bad(count);
  std::vector<std::string> named;
  size_t wrong = 0;
  for (size_t row = 0; row < count; ++row) {
    const absl::StatusOr<float> share = AddRow(writer, Split::kTrain, rows.train_texts, row);
    rows.train_target.numbers[row] = share.value_or(kNoMask);
    if (share.ok()) continue;
    const absl::Status& status = share.status();
    if (!absl::IsInvalidArgument(status) && !absl::IsNotFound(status) &&
        !absl::IsPermissionDenied(status)) {
      return status;
    }
    bad[row] = true;
    if (++wrong <= kMostNamed) named.push_back(std::string(status.message()));
  }
  if (wrong == 0) return absl::OkStatus();
  const std::string which =
      absl::StrCat(train_.table.name, ": ", wrong, " of ", count,
                   " volumes are left out: ", absl::StrJoin(named, "; "),
                   wrong > kMostNamed ? absl::StrCat("; and ", wrong - kMostNamed, " more") : "");
  const double most = std::max(1.0, kMostBadShare * static_cast<double>(count));
  if (static_cast<double>(wrong) > most || wrong == count || schema.ordered) {
    return absl::InvalidArgumentError(which);
  }
  schema.warnings.push_back(which);
  DropTrainRows(bad, rows);
  return absl::OkStatus();
}

// Fills in the median spacing of the training volumes, where it is asked for, and tells it in a
// warning. Volumes without a spacing are left to AddTraining, which names them.
VolumeTreatment VolumeMedia::TreatmentFor(TableRows& rows) const {
  VolumeTreatment treatment = spec_.volume->treatment;
  if (!spec_.volume->median_spacing) return treatment;
  std::vector<Spacing> spacings;
  for (size_t row = 0; row < rows.train_texts[0].ends.size(); ++row) {
    const absl::StatusOr<std::string> path =
        FileBelow(train_.root, rows.train_texts[0][row], train_.table.name);
    if (!path.ok()) continue;
    const absl::StatusOr<std::unique_ptr<VolumeReader>> reader = OpenVolume(*path);
    if (!reader.ok()) continue;
    const std::optional<NiftiGeometry>& geometry = (*reader)->geometry();
    const absl::StatusOr<Spacing> spacing = SpacingOf(geometry);
    if (!spacing.ok()) continue;
    const Orientation orientation = OrientationOf(*geometry, (*reader)->shape());
    spacings.push_back(orientation.SpacingOf(*spacing));
  }
  constexpr Spacing kOfNone = {1, 1, 1};
  treatment.spacing = spacings.empty() ? kOfNone : MedianOf(std::move(spacings));
  rows.schema.warnings.push_back(
      absl::StrCat("data.volume.spacing: ", ToString(*treatment.spacing),
                   ", the median of the training volumes (depth, height, width)"));
  return treatment;
}

absl::Status VolumeMedia::Add(const std::string& state_dir, const std::string& key,
                              TableRows& rows) const {
  ASSIGN_OR_RETURN(const std::unique_ptr<VolumeSetWriter> writer,
                   VolumeSetWriter::Create(CachePath(state_dir, key), spec_.volume->classes,
                                           TreatmentFor(rows)));
  RETURN_IF_ERROR(AddTraining(*writer, rows));
  rows.test_target.numbers.clear();
  bool any_mask = false;
  for (size_t row = 0; row < static_cast<size_t>(rows.schema.test_rows); ++row) {
    ASSIGN_OR_RETURN(const float share, AddRow(*writer, Split::kTest, rows.test_texts, row));
    rows.test_target.numbers.push_back(share);
    any_mask |= !std::isnan(share);
  }
  rows.schema.test_has_target = any_mask;
  if (!any_mask) rows.test_target.numbers.clear();
  return writer->Commit().status();
}

absl::Status VolumeMedia::CheckUnchanged() const {
  if (train_.file != nullptr) RETURN_IF_ERROR(train_.file->CheckUnchanged());
  if (test_.file != nullptr) RETURN_IF_ERROR(test_.file->CheckUnchanged());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowMedia>> OpenVolumeMedia(const PrepareSpec& spec) {
  auto media = std::make_unique<VolumeMedia>(spec);
  RETURN_IF_ERROR(media->Open());
  return std::unique_ptr<RowMedia>(std::move(media));
}

}  // namespace traind
