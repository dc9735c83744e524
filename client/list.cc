#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>

#include "client/exit_codes.h"
#include "client/job_array.h"
#include "client/render_table.h"
#include "client/verbs.h"
#include "common/base/suggest.h"
#include "common/spec/field_text.h"
#include "common/wire/render_json.h"

namespace traind {
namespace {

bool AddStates(const Arguments& arguments, Environment& environment, v1::ListJobsRequest& request) {
  const auto& type = *v1::JobState_descriptor();
  for (absl::string_view word : absl::StrSplit(arguments.states, ',', absl::SkipEmpty())) {
    bool known = false;
    for (int i = 0; i < type.value_count() && !known; ++i) {
      known =
          type.value(i)->number() != 0 && absl::EqualsIgnoreCase(EnumWord(*type.value(i)), word);
      if (known) request.add_states(static_cast<v1::JobState>(type.value(i)->number()));
    }
    if (!known) {
      const std::vector<std::string> words = EnumWords(type);
      environment.err << "trainctl: --state '" << Printable(word)
                      << "' must be one of: " << absl::StrJoin(words, ", ")
                      << DidYouMean(word, words) << "\n";
      return false;
    }
  }
  return true;
}

}  // namespace

int RunList(const Arguments& arguments, Environment& environment) {
  v1::ListJobsRequest request;
  if (!AddStates(arguments, environment, request)) return kExitUsage;
  for (const std::string& label : arguments.labels) {
    std::string key, value;
    if (!SplitLabel(environment, label, key, value)) return kExitUsage;
    (*request.mutable_labels())[key] = value;
  }
  if (!arguments.array.empty()) (*request.mutable_labels())[kArrayLabel] = arguments.array;
  request.set_page_size(1000);
  TrainingClient client = MakeClient(arguments, environment);
  v1::ListJobsReply all;
  JobTable table(environment.clock.WallNow(), arguments.output == OutputFormat::kWide);
  bool any = false;
  const absl::Status status = client.EachPage(request, [&](v1::ListJobsReply page) {
    any = any || !page.jobs().empty();
    for (v1::Job& job : *page.mutable_jobs()) {
      arguments.json ? all.add_jobs()->Swap(&job) : table.Add(job);
    }
  });
  if (!status.ok()) return ReportError(environment, status);
  if (arguments.json) {
    environment.out << "{\n\"jobs\": " << ToJsonArray(all, "jobs") << "\n}\n";
  } else if (!any) {
    environment.err << "no jobs\n";
  } else {
    environment.out << table.ToString();
  }
  return kExitOk;
}

}  // namespace traind
