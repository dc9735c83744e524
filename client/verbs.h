// The verbs of trainctl: one function each, in its own file. They print (data on stdout, the rest
// on stderr) and return the exit code.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <vector>

#include "client/arguments.h"
#include "client/environment.h"
#include "client/render_table.h"
#include "client/training_client.h"
#include "proto/job.pb.h"

namespace traind {

int RunSubmit(const Arguments& arguments, Environment& environment);
int RunPlan(const Arguments& arguments, Environment& environment);
int RunValidate(const Arguments& arguments, Environment& environment);
int RunProgramVerb(const Arguments& arguments, Environment& environment);
int RunPredict(const Arguments& arguments, Environment& environment);
int RunList(const Arguments& arguments, Environment& environment);
int RunGet(const Arguments& arguments, Environment& environment);
int RunWait(const Arguments& arguments, Environment& environment);
int RunWatch(const Arguments& arguments, Environment& environment);
int RunTrials(const Arguments& arguments, Environment& environment);
int RunPropose(const Arguments& arguments, Environment& environment);
int RunMetrics(const Arguments& arguments, Environment& environment);
int RunEvents(const Arguments& arguments, Environment& environment);
int RunFinish(const Arguments& arguments, Environment& environment);
int RunPause(const Arguments& arguments, Environment& environment);
int RunResume(const Arguments& arguments, Environment& environment);
int RunUpdate(const Arguments& arguments, Environment& environment);
int RunCancel(const Arguments& arguments, Environment& environment);
int RunDelete(const Arguments& arguments, Environment& environment);
int RunPin(const Arguments& arguments, Environment& environment);
int RunUnpin(const Arguments& arguments, Environment& environment);
int RunGc(const Arguments& arguments, Environment& environment);
int RunFetch(const Arguments& arguments, Environment& environment);
int RunWorkers(const Arguments& arguments, Environment& environment);
int RunQuota(const Arguments& arguments, Environment& environment);
int RunLogs(const Arguments& arguments, Environment& environment);
int RunTop(const Arguments& arguments, Environment& environment);
int RunDiff(const Arguments& arguments, Environment& environment);
int RunInit(const Arguments& arguments, Environment& environment);
int RunExplain(const Arguments& arguments, Environment& environment);
int RunSchema(const Arguments& arguments, Environment& environment);
int RunConfig(const Arguments& arguments, Environment& environment);
int RunDoctor(const Arguments& arguments, Environment& environment);
int RunCompletion(const Arguments& arguments, Environment& environment);
int RunMan(const Arguments& arguments, Environment& environment);
int RunVersion(const Arguments& arguments, Environment& environment);

// ---- Shared by them ---------------------------------------------------------

TrainingClient MakeClient(const Arguments& arguments, Environment& environment);

bool UsesColor(const Arguments& arguments, const Environment& environment);

// Prints "trainctl: ..." to stderr, with a hint where one helps; returns the exit code.
int ReportError(Environment& environment, const absl::Status& status);

// Prints commands that may be the next ones to stderr, each without "trainctl"; nothing with a form
// for scripts, or --quiet.
void SuggestNext(const Arguments& arguments, Environment& environment,
                 const std::vector<std::string>& commands);

// How the Job is shown. Asks for its spec where there may be advice on time that it left.
JobStyle StyleOf(const Arguments& arguments, const Environment& environment, TrainingClient& client,
                 const v1::Job& job);

// Prints a Job to stdout, as JSON or as a report; returns kExitOk.
int PrintJob(const Arguments& arguments, Environment& environment, TrainingClient& client,
             const v1::Job& job);

// Reads a flag by the rules of the budget's field of that name. Returns false, after an error
// message, if it is invalid.
bool ReadBudgetField(Environment& environment, const char* flag, const char* field,
                     const std::string& text, v1::BudgetSpec& budget);

// Splits "k=v". Returns false, after an error message, if the text has no such form.
bool SplitLabel(Environment& environment, const std::string& text, std::string& key,
                std::string& value);

}  // namespace traind
