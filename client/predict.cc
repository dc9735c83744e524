#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <absl/time/clock.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>
#include <optional>

#include "client/exit_codes.h"
#include "client/fetch_file.h"
#include "client/follow.h"
#include "client/render_table.h"
#include "client/request_id.h"
#include "client/upload.h"
#include "client/verbs.h"
#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/table/csv.h"
#include "common/data/table/table_text.h"
#include "common/spec/field_text.h"
#include "common/wire/render_json.h"

namespace traind {
namespace {

constexpr size_t kMostRowBytes = 1 << 20;

std::string Absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

bool FillRequest(const Arguments& arguments, Environment& environment,
                 v1::PredictRequest& request) {
  v1::BudgetSpec budget;
  if (arguments.budget) {
    if (!ReadBudgetField(environment, "--budget", "time", *arguments.budget, budget)) return false;
    *request.mutable_budget() = budget.time();
  }
  if (arguments.deadline) {
    if (!ReadBudgetField(environment, "--deadline", "deadline", *arguments.deadline, budget)) {
      return false;
    }
    *request.mutable_deadline() = budget.deadline();
  }
  for (const std::string& label : arguments.labels) {
    std::string key, value;
    if (!SplitLabel(environment, label, key, value)) return false;
    (*request.mutable_labels())[key] = value;
  }
  request.set_data(Absolute(arguments.data));
  if (arguments.name) request.set_name(*arguments.name);
  if (arguments.min_members) request.set_min_members(*arguments.min_members);
  if (!arguments.format.empty()) request.mutable_predictions()->set_format(arguments.format);
  if (arguments.no_probabilities) request.mutable_predictions()->set_probabilities(false);
  request.set_request_id(arguments.request_id.empty() ? RandomRequestId() : arguments.request_id);
  return true;
}

int PredictFile(const Arguments& arguments, Environment& environment, TrainingClient& client,
                const v1::Job& source) {
  v1::PredictRequest request;
  request.set_id(source.id());
  if (!FillRequest(arguments, environment, request)) return kExitUsage;
  if (!arguments.to.empty()) {
    const absl::Status writable = CheckCanWrite(arguments.to);
    if (!writable.ok()) return ReportError(environment, writable);
  }
  if (arguments.upload) {
    const auto learnt = client.GetSpec(source.id());
    if (!learnt.ok()) return ReportError(environment, learnt.status());
    auto there =
        UploadData("--data", request.data(), learnt->resolved().data(), client, environment);
    if (!there.ok()) return ReportError(environment, there.status());
    request.set_data(*std::move(there));
  }
  auto reply = client.Predict(request);
  if (!reply.ok()) return ReportError(environment, reply.status());
  for (const std::string& warning : reply->warnings()) {
    environment.err << "warning: " << Printable(warning, 400) << "\n";
  }
  const std::string id = reply->job().id();
  environment.err << Printable(id) << "\n" << std::flush;
  const bool csv = arguments.format.empty() || arguments.format == "csv";
  const int exit_code =
      FollowToTheEnd(arguments, environment, client, std::move(*reply->mutable_job()),
                     csv ? arguments.to : "", arguments.follow);
  if (exit_code != kExitOk || csv || arguments.to.empty()) return exit_code;
  const auto file = FetchToFile(client, id, "predictions." + arguments.format, arguments.to,
                                absl::InfiniteDuration());
  return file.ok() ? kExitOk : ReportError(environment, file.status());
}

std::optional<std::string> ReadRows(const Arguments& arguments, Environment& environment) {
  std::ifstream file;
  std::istream* in = &environment.in;
  if (arguments.rows != "-") {
    errno = 0;
    file.open(arguments.rows, std::ios::binary);
    in = &file;
    if (!file.is_open()) {
      environment.err << "trainctl: cannot read " << Printable(arguments.rows, 4096) << ": "
                      << std::strerror(errno == 0 ? EIO : errno) << "\n";
      return std::nullopt;
    }
  }
  std::string text(kMostRowBytes + 1, '\0');
  in->read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in->gcount()));
  if (text.size() > kMostRowBytes) {
    environment.err << "trainctl: more than 1 MiB of rows; predict them as a file: --data\n";
    return std::nullopt;
  }
  return text;
}

// Returns the file's bytes in base64. Paths are relative to the table that names them.
absl::StatusOr<std::string> FileInBase64(const std::string& table, absl::string_view path) {
  const std::filesystem::path whole =
      std::filesystem::path(table).parent_path() / std::string(path);
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(whole.string()));
  return absl::Base64Escape(bytes);
}

// files_column: empty, or a column whose values are files.
absl::Status AddRows(std::string bytes, const std::string& name, const std::string& files_column,
                     v1::PredictRowsRequest& request) {
  ASSIGN_OR_RETURN(const TableStart start, StartOfTable(std::move(bytes), /*whole=*/true, name));
  if (!start.whole)
    return absl::InvalidArgumentError("more than 1 MiB of rows; predict them as a file: --data");
  const std::string& text = start.text;
  std::vector<std::string> repeated;
  ASSIGN_OR_RETURN(const std::vector<std::string> header, ReadCsvHeader(text, name, &repeated));
  const auto files =
      static_cast<size_t>(std::find(header.begin(), header.end(), files_column) - header.begin());
  if (!files_column.empty() && files == header.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": there is no column '", files_column, "' (--files)"));
  }
  request.mutable_columns()->Add(header.begin(), header.end());
  CsvReader reader(text, name, DelimiterOf(text, name));
  RETURN_IF_ERROR(reader.Next().status());  // the header
  while (true) {
    ASSIGN_OR_RETURN(const bool any, reader.Next());
    if (!any) return absl::OkStatus();
    if (reader.fields().size() != header.size()) {
      return RaggedRow(name, reader.rows() - 1, reader.line(), reader.fields().size(), header);
    }
    v1::RowValues& row = *request.add_rows();
    for (const absl::string_view field : reader.fields()) {
      std::string value(field);
      if (static_cast<size_t>(row.values_size()) == files && !field.empty()) {
        ASSIGN_OR_RETURN(value, FileInBase64(name, field));
      }
      row.add_values(std::move(value));
    }
  }
}

std::string AnswerCsv(const v1::PredictRowsReply& reply) {
  std::vector<std::string> line;
  for (const std::string& target : reply.targets()) line.push_back(CsvField(target));
  for (const std::string& name : reply.classes()) line.push_back(CsvField("p_" + name));
  for (const std::string& name : reply.quantile_columns()) line.push_back(CsvField(name));
  std::string text = absl::StrJoin(line, ",") + "\n";
  for (const v1::RowAnswer& row : reply.rows()) {
    line.clear();
    for (const std::string& value : row.values()) line.push_back(CsvField(value));
    for (const float p : row.probabilities()) line.push_back(absl::StrFormat("%.6g", p));
    for (const float q : row.quantiles()) line.push_back(absl::StrFormat("%.7g", q));
    absl::StrAppend(&text, absl::StrJoin(line, ","), "\n");
  }
  return text;
}

int PredictRows(const Arguments& arguments, Environment& environment, TrainingClient& client,
                const v1::Job& source) {
  auto text = ReadRows(arguments, environment);
  if (!text) return kExitUsage;
  v1::PredictRowsRequest request;
  request.set_id(source.id());
  const std::string name = arguments.rows == "-" ? "stdin" : arguments.rows;
  const absl::Status read = AddRows(*std::move(text), name, arguments.files_column, request);
  if (!read.ok()) return ReportError(environment, read);
  const auto reply = client.PredictRows(request);
  if (!reply.ok()) return ReportError(environment, reply.status());
  if (arguments.json) {
    environment.out << ToJson(*reply) << "\n";
    return kExitOk;
  }
  environment.out << AnswerCsv(*reply);
  environment.err << v1::Quality_Name(reply->quality()).substr(sizeof("QUALITY_") - 1) << ", "
                  << reply->members_size() << " models of " << Printable(source.id())
                  << ", served by " << Printable(reply->job()) << "\n";
  return kExitOk;
}

}  // namespace

int RunPredict(const Arguments& arguments, Environment& environment) {
  TrainingClient client = MakeClient(arguments, environment);
  const auto source = client.GetJob(arguments.job);
  if (!source.ok()) return ReportError(environment, source.status());
  return arguments.rows.empty() ? PredictFile(arguments, environment, client, *source)
                                : PredictRows(arguments, environment, client, *source);
}

}  // namespace traind
