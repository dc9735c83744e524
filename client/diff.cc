#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <nlohmann/json.hpp>

#include "client/exit_codes.h"
#include "client/render_table.h"
#include "client/verbs.h"
#include "common/base/duration.h"
#include "common/spec/field_text.h"
#include "common/wire/render_json.h"

namespace traind {
namespace {

using Json = nlohmann::ordered_json;

// One Job of the two.
struct Side {
  std::string id;
  Json values;  // path -> value
};

void Flatten(const Json& value, const std::string& path, Json& into) {
  if (value.is_null()) return;
  if (!value.is_object()) {
    into[path] = value;
    return;
  }
  for (const auto& [key, below] : value.items()) {
    Flatten(below, path.empty() ? key : absl::StrCat(path, ".", key), into);
  }
}

// The results of a Job by which two Jobs can be compared.
Json Result(const v1::Job& job) {
  const Json all = Json::parse(ToJson(job));
  Json result = Json::object();
  for (const char* key : {"state", "quality", "end_reason"}) result[key] = all[key];
  for (const char* key : {"metric", "oof", "test", "floor"}) {
    result[absl::StrCat("score.", key)] = all["scores"].is_null() ? Json() : all["scores"][key];
  }
  if (job.has_finished_at()) {
    result["took"] = DurationToText(ToTime(job.finished_at()) - ClockStart(job));
  }
  if (!all["report"].is_null()) {
    for (const char* key : {"folds_done", "epochs_done", "models_trained", "device_s"}) {
      result[key] = all["report"][key];
    }
  }
  return result;
}

absl::StatusOr<Side> SideOf(const std::string& name, TrainingClient& client) {
  auto job = client.GetJob(name);
  if (!job.ok()) return job.status();
  auto spec = client.GetSpec(job->id());
  if (!spec.ok()) return spec.status();
  Side side;
  side.id = job->id();
  side.values = Json::object();
  Flatten(Json::parse(ToJson(spec->resolved())), "spec", side.values);
  Flatten(Result(*job), "result", side.values);
  return side;
}

std::string Cell(const Json& values, const std::string& path) {
  if (!values.contains(path)) return "";
  return values[path].is_string() ? values[path].get<std::string>() : values[path].dump();
}

// Returns the paths at which the Jobs differ: {"path", "a", "b"}.
Json Differences(const Side& a, const Side& b) {
  Json paths = a.values;
  paths.update(b.values);
  Json found = Json::array();
  for (const auto& [path, unused] : paths.items()) {
    const Json left = a.values.contains(path) ? a.values[path] : Json();
    const Json right = b.values.contains(path) ? b.values[path] : Json();
    if (left != right) found.push_back({{"path", path}, {"a", left}, {"b", right}});
  }
  return found;
}

}  // namespace

int RunDiff(const Arguments& arguments, Environment& environment) {
  TrainingClient client = MakeClient(arguments, environment);
  const auto a = SideOf(arguments.jobs[0], client);
  if (!a.ok()) return ReportError(environment, a.status());
  const auto b = SideOf(arguments.jobs[1], client);
  if (!b.ok()) return ReportError(environment, b.status());
  const Json found = Differences(*a, *b);
  if (arguments.json) {
    const Json document = {{"a", a->id}, {"b", b->id}, {"differences", found}};
    environment.out << document.dump(2) << "\n";
    return kExitOk;
  }
  TextTable table({"FIELD", a->id, b->id});
  for (const Json& item : found) {
    const std::string path = item["path"];
    table.Add({path, Cell(a->values, path), Cell(b->values, path)});
  }
  if (found.empty()) {
    environment.err << "the specs and the results are equal\n";
  } else {
    environment.out << table.ToString();
  }
  return kExitOk;
}

}  // namespace traind
