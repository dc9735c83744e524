#include "common/publish/dataset_publisher.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/data/table/mapped_file.h"
#include "common/data/table/npy.h"
#include "common/publish/ended_job.h"
#include "common/publish/ensemble.h"
#include "common/publish/mask_prediction.h"
#include "common/publish/publish_lock.h"
#include "common/publish/second_layer.h"
#include "common/publish/test_values.h"

namespace traind {
namespace {

constexpr size_t kRowsAtOnce = 4096;
constexpr size_t kBlocksBetweenProgress = 64;

// A member's values, mapped.
struct MappedValues {
  std::unique_ptr<MappedFile> file;
  const float* values = nullptr;
};

absl::StatusOr<MappedValues> Map(const std::string& path, int64_t rows, size_t outputs) {
  MappedValues mapped;
  ASSIGN_OR_RETURN(mapped.file, MappedFile::Open(path, MapUse::kStream));
  const absl::string_view bytes = mapped.file->bytes();
  ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(bytes, path));
  const std::vector<int64_t> shape = {rows, static_cast<int64_t>(outputs)};
  const size_t size = static_cast<size_t>(rows) * outputs * sizeof(float);
  if (header.dtype != "<f4" || header.fortran_order || header.shape != shape ||
      bytes.size() - header.data_begin != size) {
    return absl::DataLossError(absl::StrCat(path, " has a different number of rows or columns"));
  }
  mapped.values = reinterpret_cast<const float*>(bytes.data() + header.data_begin);
  return mapped;
}

// Reads the ids of a file in order.
class Ids {
 public:
  static absl::StatusOr<Ids> Open(const std::string& path) {
    Ids ids;
    if (path.empty()) return ids;
    ASSIGN_OR_RETURN(ids.file_, MappedFile::Open(path, MapUse::kStream));
    return ids;
  }
  // Each id is stored as its length in text, a colon, and the id.
  absl::StatusOr<absl::string_view> Next() {
    if (file_ == nullptr) return absl::string_view();
    const absl::string_view rest = file_->bytes().substr(at_);
    const size_t colon = rest.find(':');
    uint64_t size = 0;
    if (colon == absl::string_view::npos || !absl::SimpleAtoi(rest.substr(0, colon), &size) ||
        size > rest.size() - colon - 1) {
      return absl::DataLossError("the ids of the rows are damaged");
    }
    at_ += colon + 1 + size;
    return rest.substr(colon + 1, size);
  }

 private:
  std::unique_ptr<MappedFile> file_;
  size_t at_ = 0;
};

// Returns one weight for each member; they sum to 1.
std::vector<double> WeightsOf(const DatasetAnswer& answer) {
  std::vector<double> weights;
  for (const MemberValues& values : answer.members) weights.push_back(values.member.weight);
  ScaleToOne(weights);
  return weights;
}

PredictionManifest Describe(const DatasetAnswer& answer, absl::Span<const double> weights,
                            absl::Time now) {
  PredictionManifest manifest;
  manifest.job = answer.job;
  manifest.metric = answer.metric;
  manifest.models_from = answer.models_from;
  PublishedPrediction& p = manifest.prediction;
  for (size_t k = 0; k < weights.size(); ++k) {
    const Member& member = answer.members[k].member;
    if (member.fold < 0) {
      p.floor_weight = weights[k];
      continue;
    }
    p.members.push_back(member);
    p.members.back().weight = weights[k];
  }
  const bool all =
      static_cast<int>(answer.members.size()) == answer.members_wanted && !answer.stand_in;
  p.quality = p.members.empty() || answer.stand_in ? Quality::kFloor
              : all                                ? answer.quality
                                                   : Quality::kDegraded;
  if (all) {
    p.oof_score = answer.oof_score;
    p.comparable = answer.comparable;
  }
  p.ensemble = EnsembleName(answer.form.ensemble);
  p.tuned = answer.tuned;
  p.quantiles = answer.columns.quantiles;
  p.at = now;
  p.changed = true;
  return manifest;
}

size_t CountMembers(const PublishedPrediction& p) {
  if (p.quality == Quality::kFloor) return 0;
  return p.members.size() + (p.floor_weight > 0 ? 1 : 0);
}

AnswerJoin JoinOf(const DatasetAnswer& answer, absl::Span<const double> weights) {
  std::vector<AnswerPart> parts;
  for (size_t k = 0; k < weights.size(); ++k) {
    const Member& member = answer.members[k].member;
    parts.push_back({member.fold, member.fold < 0 ? -1 : member.trial, weights[k]});
  }
  return AnswerJoin(std::move(parts), answer.tuned.powers);
}

absl::Status WriteRows(const DatasetAnswer& answer, absl::Span<const double> weights,
                       PredictionWriter& writer) {
  const size_t outputs = answer.columns.outputs();
  std::vector<MappedValues> members;
  for (const MemberValues& values : answer.members) {
    ASSIGN_OR_RETURN(MappedValues mapped, Map(values.path, answer.rows, outputs));
    members.push_back(std::move(mapped));
  }
  ASSIGN_OR_RETURN(Ids ids, Ids::Open(answer.ids));
  const AnswerJoin join = JoinOf(answer, weights);
  std::vector<absl::Span<const float>> parts(members.size());
  std::vector<float> joined;
  const auto rows = static_cast<size_t>(answer.rows);
  for (size_t begin = 0; begin < rows; begin += kRowsAtOnce) {
    const size_t count = std::min(kRowsAtOnce, rows - begin);
    if (answer.progress && begin / kRowsAtOnce % kBlocksBetweenProgress == 0) answer.progress();
    for (size_t k = 0; k < members.size(); ++k) {
      parts[k] = {members[k].values + begin * outputs, count * outputs};
    }
    joined.resize(count * outputs);
    join.Join(parts, outputs, absl::MakeSpan(joined));
    ApplyTemperature(answer.tuned.temperature, outputs, absl::MakeSpan(joined));
    for (size_t i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(const absl::string_view id, ids.Next());
      RETURN_IF_ERROR(writer.Add(id, absl::MakeConstSpan(joined).subspan(i * outputs, outputs),
                                 answer.columns.StepOf(begin + i)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PredictionWriter>> WriteTable(const DatasetAnswer& answer,
                                                             absl::Span<const double> weights) {
  ASSIGN_OR_RETURN(std::unique_ptr<PredictionWriter> writer,
                   PredictionWriter::Begin(answer.state_dir, answer.job, answer.columns,
                                           answer.form, answer.rows));
  RETURN_IF_ERROR(WriteRows(answer, weights, *writer));
  return writer;
}

absl::StatusOr<std::unique_ptr<PredictionWriter>> WriteVolumes(const DatasetAnswer& answer,
                                                               absl::Span<const double> weights) {
  const VolumeSet& set = *answer.volumes;
  std::vector<std::shared_ptr<const TestValues>> parts;
  for (const MemberValues& member : answer.members) {
    ASSIGN_OR_RETURN(auto values, TestValues::Open(member.path, member.member.test_sha256));
    if (static_cast<int64_t>(values->values().size()) != set.TestVoxels() * set.values()) {
      return absl::DataLossError(absl::StrCat(member.path, " has a different number of voxels"));
    }
    parts.push_back(std::move(values));
  }
  std::vector<std::string> ids;
  if (!answer.ids.empty()) {
    ASSIGN_OR_RETURN(Ids read, Ids::Open(answer.ids));
    for (int64_t row = 0; row < answer.rows; ++row) {
      ASSIGN_OR_RETURN(const absl::string_view id, read.Next());
      ids.emplace_back(id);
    }
  }
  const JoinedValues joined(std::move(parts), JoinOf(answer, weights),
                            static_cast<size_t>(set.values()));
  return WriteMaskPrediction(answer.state_dir, answer.job, answer.columns, answer.form, set, ids,
                             joined, answer.tuned.largest);
}

}  // namespace

absl::Status AdoptDataset(const std::string& state_dir, const std::string& job,
                          const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kManifestFile);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(PredictionManifest next, ParseManifest(text, path));
  if (next.job != job) return absl::DataLossError(absl::StrCat(path, " is of another Job"));
  ASSIGN_OR_RETURN(const JobPublishLock lock,
                   JobPublishLock::Acquire(state_dir, job, PublishLockTimeout()));
  RETURN_IF_ERROR(CheckNotEnded(state_dir, job));
  const auto standing = ReadStandingPrediction(state_dir, job);
  if (standing.ok() && CountMembers(*standing) >= CountMembers(next.prediction)) {
    return absl::OkStatus();
  }
  return MakeStanding(state_dir, job, folder, next);
}

absl::StatusOr<PublishedPrediction> PublishDataset(const DatasetAnswer& answer, absl::Time now) {
  if (answer.members.empty()) return absl::InvalidArgumentError("no model has answered");
  ASSIGN_OR_RETURN(const JobPublishLock lock,
                   JobPublishLock::Acquire(answer.state_dir, answer.job, PublishLockTimeout()));
  RETURN_IF_ERROR(CheckNotEnded(answer.state_dir, answer.job));
  const std::vector<double> weights = WeightsOf(answer);
  PredictionManifest next = Describe(answer, weights, now);
  const auto standing = ReadStandingPrediction(answer.state_dir, answer.job);
  if (standing.ok() && CountMembers(*standing) >= CountMembers(next.prediction)) return *standing;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<PredictionWriter> writer,
      answer.volumes != nullptr ? WriteVolumes(answer, weights) : WriteTable(answer, weights));
  RETURN_IF_ERROR(writer->Commit(next));
  return next.prediction;
}

}  // namespace traind
