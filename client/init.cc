// Looks at data and writes a spec for them, with comments.
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/exit_codes.h"
#include "client/verbs.h"
#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/base/suggest.h"
#include "common/data/image/image_folder.h"
#include "common/data/table/csv.h"
#include "common/data/table/decimal_commas.h"
#include "common/data/table/number.h"
#include "common/data/table/table_text.h"
#include "common/spec/field_text.h"
#include "common/wire/render_json.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostSeen = 1000;      // different values of a column that are remembered
constexpr size_t kMostClasses = 20;     // of whole numbers
constexpr size_t kTextCharacters = 40;  // a column with more in the mean holds texts
constexpr size_t kFilesLookedAt = 20;   // of a column that may name files

// The facts about a column in the sample.
struct Column {
  std::string name;
  size_t values = 0, numbers = 0, whole = 0, characters = 0, words = 0;
  std::set<std::string> seen;

  void Add(absl::string_view value) {
    value = absl::StripAsciiWhitespace(value);
    if (IsMissingNumber(value)) return;
    ++values;
    float number = 0;
    const bool is_number = ParseNumber(value, number) == NumberKind::kNumber;
    numbers += is_number;
    whole += is_number && number == std::trunc(number);
    characters += value.size();
    words += 1 + static_cast<size_t>(std::count(value.begin(), value.end(), ' '));
    if (seen.size() < kMostSeen) seen.emplace(value);
  }
  bool IsNumber() const { return values > 0 && numbers * 20 >= values * 19; }
  bool IsText() const {
    return !IsNumber() && values > 0 && characters > kTextCharacters * values && words > 5 * values;
  }
  bool AllDiffer() const { return seen.size() == std::min(values, kMostSeen); }
  // Whether traind would infer a classification.
  bool IsClass() const {
    return !IsNumber() || seen.size() == 2 ||
           (whole == values && seen.size() <= kMostClasses && values >= 10 * seen.size());
  }
};

struct Sample {
  std::vector<Column> columns;
  size_t rows = 0;
  bool whole = true;  // the file has no more rows

  const Column* Find(absl::string_view name) const {
    for (const Column& column : columns) {
      if (column.name == name) return &column;
    }
    return nullptr;
  }
};

// Errors: NotFound and the like; InvalidArgument: no table.
absl::StatusOr<Sample> LookAt(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", path, ": ", std::strerror(errno == 0 ? EIO : errno)));
  }
  std::string text(kStartBytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  const bool whole = text.size() < kStartBytes;
  ASSIGN_OR_RETURN(TableStart start, StartOfTable(std::move(text), whole, path));
  text = std::move(start.text);
  Sample sample;
  sample.whole = start.whole;
  // The last line of a part may be cut.
  if (!sample.whole) text.resize(text.rfind('\n') + 1);
  std::vector<std::string> repeated;
  ASSIGN_OR_RETURN(const std::vector<std::string> header,
                   ReadCsvHeader(text, start.name, &repeated));
  for (const std::string& name : header) sample.columns.emplace_back().name = name;
  const char delimiter = DelimiterOf(text, start.name);
  const auto points = WithDecimalPoints(text, delimiter);
  CsvReader reader(points ? absl::string_view(points->bytes) : text, path, delimiter);
  RETURN_IF_ERROR(reader.Next().status());  // the header
  while (true) {
    ASSIGN_OR_RETURN(const bool any, reader.Next());
    if (!any) return sample;
    if (reader.fields().size() != header.size()) {
      return RaggedRow(path, reader.rows() - 1, reader.line(), reader.fields().size(), header);
    }
    ++sample.rows;
    for (size_t i = 0; i < header.size(); ++i) sample.columns[i].Add(reader.fields()[i]);
  }
}

// Refuses a header of one column, and one that looks like a row of values.
absl::Status CheckHeader(const std::string& path, const Sample& sample) {
  if (sample.columns.size() == 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has one column, '", sample.columns[0].name, "'; ", kDelimiterHint));
  }
  for (const Column& column : sample.columns) {
    float value = 0;
    const bool number = ParseNumber(column.name, value) == NumberKind::kNumber;
    if (number && absl::StrContains(column.name, '.')) {
      return absl::InvalidArgumentError(absl::StrCat(path, " has a column called '", column.name,
                                                     "': is the row with the names missing?"));
    }
  }
  return absl::OkStatus();
}

struct Guess {
  std::string column;
  std::string why;
};

// Returns whether the values that are looked at all name files, relative to the folder.
bool NamesFiles(const Column& column, const std::string& folder) {
  if (column.IsNumber() || column.seen.empty()) return false;
  size_t left = kFilesLookedAt;
  for (const std::string& name : column.seen) {
    if (left-- == 0) break;
    std::error_code error;
    if (name[0] == '/' || !fs::is_regular_file(fs::path(folder) / name, error)) return false;
  }
  return true;
}

// The columns that name files: of images, or of volumes or images with their masks.
struct MediaColumns {
  std::string image, mask;  // empty: there is none
  bool images = false;      // the files are JPEG or PNG by their names
};

MediaColumns FindMedia(const Sample& train, const std::string& folder) {
  MediaColumns found;
  const Column* of_image = nullptr;
  for (const Column& column : train.columns) {
    if (!NamesFiles(column, folder)) continue;
    const std::string name = absl::AsciiStrToLower(column.name);
    const bool mask = absl::StrContains(name, "mask") || absl::StrContains(name, "label") ||
                      absl::StrContains(name, "seg");
    if (found.mask.empty() && (mask || of_image != nullptr)) {
      found.mask = column.name;
    } else if (of_image == nullptr) {
      of_image = &column;
    }
  }
  if (of_image == nullptr) return MediaColumns();
  found.image = of_image->name;
  found.images = std::all_of(of_image->seen.begin(), of_image->seen.end(), HasImageName);
  if (found.mask.empty() && !found.images) return MediaColumns();
  return found;
}

Guess GuessTarget(const Sample& train, const Sample* test) {
  if (test != nullptr) {
    std::vector<std::string> lacking;
    for (const Column& column : train.columns) {
      if (test->Find(column.name) == nullptr) lacking.push_back(column.name);
    }
    if (lacking.size() == 1) return {lacking[0], "the test file lacks this column"};
  }
  for (const char* usual : {"target", "label", "class", "y"}) {
    for (const Column& column : train.columns) {
      if (absl::EqualsIgnoreCase(column.name, usual)) return {column.name, "by its name"};
    }
  }
  const auto last = std::find_if(train.columns.rbegin(), train.columns.rend(),
                                 [](const Column& column) { return column.values > 0; });
  const Column& column = last == train.columns.rend() ? train.columns.back() : *last;
  return {column.name, "the last column; --target names another"};
}

std::string GuessId(const Sample& train, const std::string& target) {
  for (const Column& column : train.columns) {
    const std::string name = absl::AsciiStrToLower(column.name);
    if (column.name != target && column.AllDiffer() &&
        (name == "id" || absl::EndsWith(name, "_id") || absl::EndsWith(name, " id"))) {
      return column.name;
    }
  }
  return "";
}

// A text as YAML writes it.
std::string Quoted(const std::string& text) {
  const bool plain =
      !text.empty() && absl::ascii_isalpha(text[0]) &&
      std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.' || c == '/';
      });
  return plain ? text : JsonString(text);
}

std::string PathFrom(const std::string& folder, const std::string& path) {
  std::error_code error;
  const fs::path relative = fs::relative(path, folder, error);
  return error || relative.empty() ? path : relative.string();
}

// Returns a name for the Job out of a file's name.
std::string JobName(const std::string& path) {
  fs::path file = fs::path(path).lexically_normal();
  const std::string packed = absl::AsciiStrToLower(file.extension().string());
  if (packed == ".gz" || packed == ".zip") file = file.stem();
  std::string name = file.stem().string();
  if (name == "train" || name.empty()) {
    name = fs::absolute(path).lexically_normal().parent_path().filename().string();
  }
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_') c = '-';
  }
  return name.empty() || !absl::ascii_isalnum(static_cast<unsigned char>(name[0]))
             ? "job"
             : name.substr(0, 63);
}

constexpr char kHead[] =
    "# Written by trainctl init. Every field: trainctl explain; one of them: trainctl explain "
    "train.epochs\napi: v1\n";
constexpr char kModels[] =
    R"(# model: auto                 # several kinds are tried; or lightgbm: {}, mlp: {hidden: [256, 256]}, ...
# train: {epochs: 40}         # at most; folds stop earlier where they get no better
)";
constexpr char kEnd[] =
    R"(budget: {time: 60s}           # an answer is there within seconds, and gets better until then
output: predictions.csv       # copied there by submit --wait or --follow
)";

std::string Line(const std::string& text, const std::string& comment) {
  if (comment.empty()) return text + "\n";
  return absl::StrCat(text, std::string(text.size() < 28 ? 28 - text.size() : 1, ' '), "  # ",
                      comment, "\n");
}

// The lines that name the files and say how many rows they have.
std::string FileLines(const InitArguments& init, const std::string& folder, const Sample& train,
                      const Sample* test) {
  std::string text = Line(absl::StrCat("  train: ", Quoted(PathFrom(folder, init.data))),
                          absl::StrCat(train.rows, " rows", train.whole ? "" : " were looked at",
                                       ", ", train.columns.size(), " columns"));
  if (test == nullptr) return text + Line("  # test: test.csv", "the rows to predict");
  return text + Line(absl::StrCat("  test: ", Quoted(PathFrom(folder, init.test))),
                     absl::StrCat(test->rows, " rows", test->whole ? "" : " were looked at"));
}

// The line of the id; empty: there is none.
std::string IdLine(const Sample& train, const std::string& target, const Sample* test) {
  const std::string id = GuessId(train, target);
  if (id.empty() || (test != nullptr && test->Find(id) == nullptr)) return "";
  return Line(absl::StrCat("  id: ", Quoted(id)), "names the rows of predictions.csv");
}

// For volumes or images with masks.
std::string MaskSpec(const InitArguments& init, const std::string& folder, const Sample& train,
                     const MediaColumns& media, const Sample* test) {
  std::string text = absl::StrCat(kHead, "name: ", Quoted(JobName(init.data)), "\ndata:\n");
  text += FileLines(init, folder, train, test) + IdLine(train, media.mask, test);
  text += Line(
      absl::StrCat("  volume: {image: ", Quoted(media.image), ", mask: ", Quoted(media.mask), "}"),
      "columns of files; the masks are learnt");
  text += "  # classes of masks with the values 1, 2, ...: volume: {classes: [NAME, NAME]}\n";
  text += Line("  folds: 5", "models, each validated on the files that it has not seen");
  text += media.images ? Line("train: {patches: {size: [1, 64, 64]}}",
                              "of an image; a patch should hold the object")
                       : Line("train: {patches: {size: [16, 32, 32]}}",
                              "depth, height, width; a patch should hold the object");
  return absl::StrCat(text, kEnd);
}

std::string TableSpec(const InitArguments& init, const std::string& folder, const Sample& train,
                      const Guess& target, const MediaColumns& media, const Sample* test) {
  const Column& column = *train.Find(target.column);
  std::string text = absl::StrCat(kHead, "name: ", Quoted(JobName(init.data)), "\n");
  absl::StrAppend(
      &text, column.IsClass()
                 ? Line("# task: {type: classification}",
                        absl::StrCat("traind infers it: ", column.seen.size(),
                                     column.seen.size() == kMostSeen ? " or more" : "", " classes"))
                 : Line("# task: {type: regression}", "traind infers it: the target is a number"));
  text += "data:\n";
  text += FileLines(init, folder, train, test);
  text += Line(absl::StrCat("  target: ", Quoted(target.column)), target.why);
  text += IdLine(train, target.column, test);
  if (!media.image.empty()) {
    text += Line(absl::StrCat("  image: {column: ", Quoted(media.image), ", size: 64}"),
                 "a column of files; pixels of a side");
    text += Line("  folds: 5", "models, each validated on the images that it has not seen");
    return absl::StrCat(text, kModels, kEnd);
  }
  const std::string id = GuessId(train, target.column);
  std::string texts;
  for (const Column& each : train.columns) {
    if (each.name != target.column && each.name != id && each.IsText()) {
      absl::StrAppend(&texts, texts.empty() ? "" : ", ", Quoted(each.name));
    }
  }
  if (!texts.empty()) {
    text += Line(absl::StrCat("  text: {columns: [", texts, "]}"), "read word by word");
  }
  text += Line("  folds: 5", "models, each validated on the rows that it has not seen");
  return absl::StrCat(text, kModels, kEnd);
}

bool HasFolders(const std::string& path) {
  std::error_code error;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    if (at->is_directory(error)) return true;
  }
  return false;
}

std::string ImageSpec(const InitArguments& init, const std::string& folder) {
  std::string text = absl::StrCat(kHead, "name: ", Quoted(JobName(init.data)), "\ndata:\n");
  text += Line(absl::StrCat("  train: ", Quoted(PathFrom(folder, init.data))),
               "a folder of images per class");
  text += init.test.empty() ? Line("  # test: test", "a folder of images to predict")
                            : Line(absl::StrCat("  test: ", Quoted(PathFrom(folder, init.test))),
                                   "the images to predict");
  text += Line(absl::StrCat("  target: ", init.target.empty() ? "class" : Quoted(init.target)),
               "the name that the class gets");
  text += Line("  image: {size: 64}", "pixels of a side");
  text += Line("  folds: 5", "models, each validated on the images that it has not seen");
  return absl::StrCat(text, kModels, kEnd);
}

absl::StatusOr<std::string> SpecFor(const InitArguments& init, const std::string& folder) {
  std::error_code error;
  if (fs::is_directory(init.data, error)) {
    if (HasFolders(init.data)) return ImageSpec(init, folder);
    return absl::InvalidArgumentError(
        absl::StrCat(init.data, " has no folder in it; images lie in a folder for each class"));
  }
  ASSIGN_OR_RETURN(const Sample train, LookAt(init.data));
  RETURN_IF_ERROR(CheckHeader(init.data, train));
  if (train.columns.empty() || train.rows == 0) {
    return absl::InvalidArgumentError(absl::StrCat(init.data, " has no rows"));
  }
  std::optional<Sample> test;
  if (!init.test.empty()) {
    ASSIGN_OR_RETURN(test, LookAt(init.test));
  }
  const Sample* const seen = test ? &*test : nullptr;
  MediaColumns media =
      FindMedia(train, fs::absolute(init.data, error).lexically_normal().parent_path().string());
  if (!media.mask.empty() && (init.target.empty() || init.target == media.mask)) {
    return MaskSpec(init, folder, train, media, seen);
  }
  const Guess target =
      init.target.empty() ? GuessTarget(train, seen) : Guess{init.target, "as --target says"};
  if (!media.images || target.column == media.image) media = MediaColumns();
  if (train.Find(target.column) == nullptr) {
    std::vector<std::string> names;
    for (const Column& column : train.columns) names.push_back(column.name);
    return absl::InvalidArgumentError(absl::StrCat(init.data, " has no column '", target.column,
                                                   "'", DidYouMean(target.column, names)));
  }
  return TableSpec(init, folder, train, target, media, seen);
}

}  // namespace

int RunInit(const Arguments& arguments, Environment& environment) {
  const InitArguments& init = arguments.init;
  std::error_code error;
  const fs::path data = fs::absolute(init.data, error).lexically_normal();
  const std::string to =
      arguments.to.empty() ? (data.parent_path() / "job.yaml").string() : arguments.to;
  const std::string folder =
      to == "-" ? fs::current_path(error).string()
                : fs::absolute(to, error).lexically_normal().parent_path().string();
  const auto spec = SpecFor(init, folder);
  if (!spec.ok()) {
    environment.err << "trainctl: " << Printable(spec.status().message(), 1000) << "\n";
    return absl::IsNotFound(spec.status()) ? kExitNotFound : kExitUsage;
  }
  if (to == "-") {
    environment.out << *spec;
    return kExitOk;
  }
  if (!init.force && fs::exists(to, error)) {
    environment.err << "trainctl: " << Printable(to, 4096) << " exists; to replace it: --force\n";
    return kExitUsage;
  }
  const absl::Status written = WriteFileDurably(to, *spec);
  if (!written.ok()) return ReportError(environment, written);
  environment.out << Printable(to, 4096) << "\n";
  SuggestNext(arguments, environment, {"plan -f " + to, "submit -f " + to + " --follow"});
  return kExitOk;
}

}  // namespace traind
