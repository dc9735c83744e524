#include "client/exit_codes.h"
#include "client/verbs.h"
#include "common/spec/field_text.h"

namespace traind {

int RunUpdate(const Arguments& arguments, Environment& environment) {
  v1::UpdateJobRequest request;
  v1::BudgetSpec budget;
  if (arguments.budget) {
    if (!ReadBudgetField(environment, "--budget", "time", *arguments.budget, budget)) {
      return kExitUsage;
    }
    *request.mutable_budget() = budget.time();
  }
  if (arguments.deadline) {
    if (!ReadBudgetField(environment, "--deadline", "deadline", *arguments.deadline, budget)) {
      return kExitUsage;
    }
    *request.mutable_deadline() = budget.deadline();
  }
  if (arguments.priority) request.set_priority(*arguments.priority);
  for (const std::string& label : arguments.labels) {
    std::string key, value;
    if (!SplitLabel(environment, label, key, value)) return kExitUsage;
    (*request.mutable_set_labels())[key] = value;
  }
  for (const std::string& key : arguments.unlabels) request.add_remove_labels(key);
  TrainingClient client = MakeClient(arguments, environment);
  const auto job = client.GetJob(arguments.job);
  if (!job.ok()) return ReportError(environment, job.status());
  request.set_id(job->id());
  const auto changed = client.UpdateJob(request);
  if (!changed.ok()) return ReportError(environment, changed.status());
  return PrintJob(arguments, environment, client, *changed);
}

}  // namespace traind
