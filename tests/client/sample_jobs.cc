#include "tests/client/sample_jobs.h"

#include <google/protobuf/text_format.h>

#include <cstdlib>

namespace traind {
namespace {

constexpr char kRunning[] = R"pb(
  id: "digits-7f3k2a"
  name: "digits"
  owner: "local"
  state: JOB_STATE_RUNNING
  quality: QUALITY_FLOOR
  accepted_at { seconds: 1796148000 nanos: 120000000 }
  started_at { seconds: 1796148001 }
  deadline { seconds: 1796148060 nanos: 120000000 }
  predictions {
    path: "/state/jobs/digits-7f3k2a/current/predictions.csv"
    rows: 355
    quality: QUALITY_FLOOR
    number: 1
    at { seconds: 1796148001 }
    sha256: "00ff"
    bytes: 12345678901
  }
  folds {
    index: 0
    state: TASK_STATE_DONE
    progress { unit: PROGRESS_UNIT_EPOCH planned: 40 done: 40 }
    score: 0.975
    attempt: 2
    attempts: 1
  }
  folds {
    index: 1
    state: TASK_STATE_PENDING
    progress { unit: PROGRESS_UNIT_EPOCH planned: 40 }
  }
  folds {
    index: 2
    state: TASK_STATE_DONE
    progress { unit: PROGRESS_UNIT_EPOCH planned: 40 done: 22 }
    score: 0.9812
    attempt: 3
    attempts: 1
  }
  folds {
    index: 3
    state: TASK_STATE_RUNNING
    progress { unit: PROGRESS_UNIT_EPOCH planned: 40 done: 12.4 }
    attempt: 4
    attempts: 2
    live {
      step: 620
      loss: 0.2142
      learning_rate: 0.0008
      steps_per_s: 60.04
      samples_per_s: 3842.6
      data_wait: 0.01
      precision: "bf16"
      batch: 64
      steps_per_epoch: 50
      resolved_settings: "precision=bf16 threads=1"
    }
  }
  folds { index: 4 state: TASK_STATE_DROPPED message: "cut from the Plan" }
  decisions {
    at { seconds: 1796148003 }
    rule: "B2"
    cause: "estimate 93 s of 48 s"
    from: "5 folds"
    to: "4 folds"
  }
  scores { metric: "accuracy" floor: 0.9312 }
  plan {
    revision: 2
    folds: 4
    epochs: 40
    ranks: 1
    parallel_folds: 2
    step_s: 0.0166
    estimate { seconds: 36 nanos: 500000000 }
    reserve { seconds: 9 }
    at { seconds: 1796148003 }
    row_share: 1
  }
  attempts {
    id: 4
    task: "fold-3"
    worker: "w1"
    started_at { seconds: 1796148009 nanos: 120000000 }
    first_step: 248
  }
  estimated_finish { seconds: 1796148045 }
  warnings: "column \"x\" is constant"
  labels { key: "team" value: "blue" }
  labels { key: "b" value: "2" }
  version: 17
  train_rows: 1442
  test_rows: 355
  remaining_s: 41
  results_dir: "/state/jobs/digits-7f3k2a"
)pb";

}  // namespace

v1::Job RunningJob() {
  v1::Job job;
  if (!google::protobuf::TextFormat::ParseFromString(kRunning, &job)) std::abort();
  return job;
}

v1::Job EndedJob() {
  v1::Job job = RunningJob();
  job.set_state(v1::JOB_STATE_SUCCEEDED);
  job.set_quality(v1::QUALITY_DEGRADED);
  job.set_end_reason(v1::JOB_END_REASON_COMPLETED);
  job.mutable_finished_at()->set_seconds(1796148041);
  job.mutable_finished_at()->set_nanos(620000000);
  job.clear_estimated_finish();
  job.clear_remaining_s();
  job.mutable_scores()->set_oof(0.97641);
  job.mutable_scores()->set_test(0.97183);
  job.mutable_predictions()->set_quality(v1::QUALITY_DEGRADED);
  job.mutable_predictions()->set_number(5);
  for (int fold : {0, 1, 2, 3}) {
    job.mutable_predictions()->add_folds(fold);
    job.mutable_folds(fold)->set_state(v1::TASK_STATE_DONE);
    job.mutable_folds(fold)->clear_live();
    job.mutable_folds(fold)->mutable_progress()->set_done(40);
  }
  job.mutable_folds(1)->set_score(0.97);
  job.mutable_folds(3)->set_score(0.98);
  job.set_version(30);
  return job;
}

}  // namespace traind
