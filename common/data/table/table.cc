#include "common/data/table/table.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/table/table_header.h"

namespace traind {
namespace {

size_t Index(Split split) { return split == Split::kTrain ? 0 : 1; }

template <typename T>
absl::Span<const T> View(absl::string_view file, const ArrayPlace& place) {
  return absl::Span<const T>(reinterpret_cast<const T*>(file.data() + place.offset),
                             place.bytes / sizeof(T));
}

// Whether the ends of consecutive texts are valid for `bytes` bytes of text.
bool EndsAreSound(absl::Span<const uint64_t> ends, uint64_t bytes) {
  return std::is_sorted(ends.begin(), ends.end()) && (ends.empty() || ends.back() <= bytes);
}

bool AllWithin(absl::Span<const int32_t> codes, int32_t low, int64_t size) {
  int32_t smallest = 0;
  int32_t largest = -1;
  for (const int32_t code : codes) {
    smallest = std::min(smallest, code);
    largest = std::max(largest, code);
  }
  return smallest >= low && largest < size;
}

}  // namespace

struct Table::Impl {
  std::string path;
  absl::string_view file;  // mapped
  TableHeader header;

  ~Impl() {
    if (!file.empty()) munmap(const_cast<char*>(file.data()), file.size());
  }
  absl::Status Damaged(absl::string_view what) const {
    return absl::DataLossError(absl::StrCat(path, " is not a complete table: ", what));
  }
  absl::Status CheckCodes() const;
  absl::Status CheckIds() const;
  absl::Status CheckTexts() const;
  absl::Status CheckOrder() const;
};

absl::Status Table::Impl::CheckCodes() const {
  const TableSchema& schema = header.schema;
  for (size_t i = 0; i < schema.features.size(); ++i) {
    const Column& column = schema.features[i];
    if (column.kind != ColumnKind::kCategorical) continue;
    const auto size = static_cast<int64_t>(column.categories.size());
    if (!AllWithin(View<int32_t>(file, header.features[i][0]), kUnseenCode, size) ||
        !AllWithin(View<int32_t>(file, header.features[i][1]), kUnseenCode, size)) {
      return Damaged(absl::StrCat("a code of '", column.name, "' is out of range"));
    }
  }
  if (schema.target_kind == TargetKind::kClasses) {
    const auto size = static_cast<int64_t>(schema.classes.size());
    if (!AllWithin(View<int32_t>(file, header.target[0]), 0, size) ||
        !AllWithin(View<int32_t>(file, header.target[1]), kUnseenCode, size)) {
      return Damaged("a code of the target is out of range");
    }
  }
  return absl::OkStatus();
}

absl::Status Table::Impl::CheckIds() const {
  if (!EndsAreSound(View<uint64_t>(file, header.id_ends), header.id_text.bytes)) {
    return Damaged("an id is out of range");
  }
  return absl::OkStatus();
}

absl::Status Table::Impl::CheckTexts() const {
  for (const auto& column : header.texts) {
    for (const TableHeader::Texts& texts : column) {
      if (!EndsAreSound(View<uint64_t>(file, texts.ends), texts.text.bytes)) {
        return Damaged("a text is out of range");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Table::Impl::CheckOrder() const {
  const std::array<int64_t, 2> rows = {header.schema.train_rows, header.schema.test_rows};
  for (size_t split = 0; split < 2; ++split) {
    const auto ends = View<uint64_t>(file, header.series_ends[split]);
    if (ends.empty()) continue;
    if (!std::is_sorted(ends.begin(), ends.end()) ||
        ends.back() != static_cast<uint64_t>(rows[split])) {
      return Damaged("the ends of its series are wrong");
    }
  }
  std::vector<bool> seen(static_cast<size_t>(header.schema.test_rows));
  for (const int64_t place : View<int64_t>(file, header.test_order)) {
    if (place < 0 || place >= header.schema.test_rows || seen[static_cast<size_t>(place)]) {
      return Damaged("the order of its test rows is wrong");
    }
    seen[static_cast<size_t>(place)] = true;
  }
  return absl::OkStatus();
}

Table::Table(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Table::~Table() = default;

absl::StatusOr<std::shared_ptr<const Table>> Table::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  absl::Cleanup closer = [fd] { close(fd); };
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  const auto size = static_cast<size_t>(info.st_size);
  if (!S_ISREG(info.st_mode) || size == 0) return impl->Damaged("it is empty, or not a file");
  void* const bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (bytes == MAP_FAILED) return ErrnoStatus(errno, absl::StrCat("cannot map ", path));
  impl->file = absl::string_view(static_cast<const char*>(bytes), size);
  ASSIGN_OR_RETURN(impl->header, ParseTableHeader(impl->file, size, path));
  RETURN_IF_ERROR(impl->CheckCodes());
  RETURN_IF_ERROR(impl->CheckIds());
  RETURN_IF_ERROR(impl->CheckTexts());
  RETURN_IF_ERROR(impl->CheckOrder());
  return std::shared_ptr<const Table>(new Table(std::move(impl)));
}

const TableSchema& Table::schema() const { return impl_->header.schema; }

int64_t Table::rows(Split split) const {
  return split == Split::kTrain ? schema().train_rows : schema().test_rows;
}

absl::Span<const float> Table::Numeric(int feature, Split split) const {
  return View<float>(impl_->file,
                     impl_->header.features[static_cast<size_t>(feature)][Index(split)]);
}

absl::Span<const int32_t> Table::Codes(int feature, Split split) const {
  return View<int32_t>(impl_->file,
                       impl_->header.features[static_cast<size_t>(feature)][Index(split)]);
}

absl::Span<const int32_t> Table::TargetClass(Split split) const {
  return View<int32_t>(impl_->file, impl_->header.target[Index(split)]);
}

absl::Span<const float> Table::TargetValue(Split split, size_t target) const {
  const auto& places = target == 0 ? impl_->header.target : impl_->header.more_targets[target - 1];
  return View<float>(impl_->file, places[Index(split)]);
}

absl::Span<const uint64_t> Table::SeriesEnds(Split split) const {
  return View<uint64_t>(impl_->file, impl_->header.series_ends[Index(split)]);
}

absl::Span<const double> Table::Times() const {
  return View<double>(impl_->file, impl_->header.times);
}

absl::Span<const int64_t> Table::TestOrder() const {
  return View<int64_t>(impl_->file, impl_->header.test_order);
}

absl::Span<const int32_t> Table::Groups() const {
  return View<int32_t>(impl_->file, impl_->header.groups);
}

absl::Span<const int32_t> Table::GivenFolds() const {
  return View<int32_t>(impl_->file, impl_->header.given_folds);
}

std::vector<std::string> Table::TestIds() const {
  std::vector<std::string> ids;
  const absl::string_view text = impl_->file.substr(impl_->header.id_text.offset);
  uint64_t begin = 0;
  for (const uint64_t end : View<uint64_t>(impl_->file, impl_->header.id_ends)) {
    ids.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return ids;
}

absl::string_view Table::Text(size_t column, Split split, int64_t row) const {
  const TableHeader::Texts& texts = impl_->header.texts[column][Index(split)];
  const auto ends = View<uint64_t>(impl_->file, texts.ends);
  const auto at = static_cast<size_t>(row);
  const uint64_t begin = at == 0 ? 0 : ends[at - 1];
  return impl_->file.substr(texts.text.offset + begin, ends[at] - begin);
}

std::string Table::RowText(Split split, int64_t row) const {
  std::string text;
  for (size_t i = 0; i < schema().text_columns.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : "\n", Text(i, split, row));
  }
  return text;
}

absl::Status Table::VerifyDigest() const {
  uint64_t json_bytes = 0;
  std::copy_n(impl_->file.data() + kTableMagic.size(), sizeof json_bytes,
              reinterpret_cast<char*>(&json_bytes));
  const std::string digest = Sha256Hex(impl_->file.substr(TableDataBegin(json_bytes)));
  if (digest != impl_->header.data_sha256) return impl_->Damaged("its digest differs");
  return absl::OkStatus();
}

}  // namespace traind
