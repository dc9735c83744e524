// Every file name in a state folder is made here. Returned paths are relative to the state folder,
// so a state folder that is copied to another machine resumes there.
//
//   STATE/
//     traind.lock                 held by the running traind
//     worker.lock                 held by the standalone Worker
//     worker.sock                 traind listens here for the standalone Worker
//     traind.db                   the store
//     traind.db-mark              how far its acknowledged changes went (server/store/high_water.h)
//     on-end                      since when ends of Jobs are told to a program (--on-end)
//     cache/<key>.table           binary column caches (common/data/table/table.h)
//     cache/<key>.images          decoded images of that table's rows, if it has images
//                                 (common/data/image/image_cache.h)
//     cache/<key>.volumes         decoded volumes of that table's rows, if it has volumes
//                                 (common/data/volume/volume_set.h)
//     cache/<sha256>.pt           users' own models, as they were submitted
//     cache/<sha256>.safetensors  pretrained weights, as they were submitted
//     jobs/<job>/
//       folds.npy                 int16 [train_rows]: the fold that validates each row; -1: none
//       samples.json              window, horizon and split (common/data/table/sample_plan.h);
//                                 absent where samples are single rows, split at random
//       tokenizer-<fold>.model    the fold's SentencePiece model, if texts are tokenized so
//       predictions.json          how folds are combined and written (common/publish/
//                                 prediction_form.h); absent: a mean, as CSV
//       floor/oof.npy, test.npy   the floor's predictions (see below)
//       attempts/<attempt>/       all files of one Attempt; never shared between Attempts
//         oof.npy                 float32 [rows of the fold, C], rows in ascending order
//         test.npy                float32 [test_rows, C]; for volumes [voxels of all test rows, V]
//         checkpoint-<step>.safetensors, checkpoint-<step>.json   the state, then its manifest
//         model.json              what turns a row into this model's input (worker/predict/
//                                 model_file.h); the checkpoints beside it have its weights
//         rows.bin, ids.bin, values-<k>.npy   only while a Job predicts a file
//         results.json              of a program: which files it left
//         rank<r>.log
//       program/fold-<k>/         of a Job that runs a program (RunSpec), kept over Attempts:
//         work/                     the copy of the program's folder, in which it runs
//         origin.json               sizes and times of the files in work/ before it ran
//         checkpoints/, out/        TRAIND_CHECKPOINTS and TRAIND_OUT
//         kept-<n>/                 copies of what it resumes from (worker/program/
//                                   kept_checkpoints.h)
//         tries, attempt            how often it was started, and the last Attempt that did
//         stop                      TRAIND_STOP_FILE, there while the program is to stop
//       program/fold-<k>-<attempt>.pack   what the fold resumes from on another Worker
//                                 (common/transfer/program_pack.h)
//       results/                  what the program of an uploaded folder has left (RunSpec), of
//                                 several folds in fold-<k>/
//       reused/<attempt>/         files of another Job's Attempt, linked or copied from there:
//                                 oof.npy, test.npy and its model, or a checkpoint to resume from
//       publish.lock
//       ended                     once the Job is over: nobody publishes for it any more
//       end.json, end-told        the Job as it ended, and whether --on-end has been told
//       prediction-<n>/predictions.csv, manifest.json; on request predictions.npy or .zip; for
//                                 volumes masks/<id>.npy, .tiff or .nii.gz, and predictions.zip of
//                                 them
//       current                   symlink to the standing prediction-<n>
//
// C is the number of classes (probabilities; each row sums to 1), or of targets in regression and
// forecasting (values in each target's own unit). For volumes C is 1 out of fold: the score of each
// row's mask. V is 1 for a single foreground class (its probability), else the number of classes
// plus the background, which comes first (probabilities).
#pragma once

#include <cstdint>
#include <string>

namespace traind {

inline constexpr char kLockFile[] = "traind.lock";
inline constexpr char kWorkerLockFile[] = "worker.lock";
// The lock of a Worker that is not standalone; several machines may share a state folder.
inline std::string WorkerLockFile(const std::string& host) { return "worker-" + host + ".lock"; }
inline constexpr char kWorkerSocket[] = "worker.sock";
inline constexpr char kDatabaseFile[] = "traind.db";

inline std::string CacheDir() { return "cache"; }
inline std::string TableCachePath(const std::string& key) { return "cache/" + key + ".table"; }
inline std::string ImageCachePath(const std::string& key) { return "cache/" + key + ".images"; }
// Returns the path of the images that belong to the table at this path.
inline std::string ImageCacheOf(const std::string& table) {
  return table.substr(0, table.rfind('.')) + ".images";
}
inline std::string ScriptCachePath(const std::string& sha256) { return "cache/" + sha256 + ".pt"; }
inline std::string WeightsCachePath(const std::string& sha256) {
  return "cache/" + sha256 + ".safetensors";
}
inline std::string VolumeCachePath(const std::string& key) { return "cache/" + key + ".volumes"; }
// Returns the path of the volumes that belong to the table at this path.
inline std::string VolumesOfTable(const std::string& table) {
  return table.substr(0, table.rfind('.')) + ".volumes";
}
// Files that clients have sent: uploads/<sha256>/<name>.
inline constexpr char kUploadsDir[] = "uploads";
inline std::string UploadPath(const std::string& sha256, const std::string& name) {
  return std::string(kUploadsDir) + "/" + sha256 + "/" + name;
}
inline std::string JobDir(const std::string& job) { return "jobs/" + job; }
inline std::string FoldsPath(const std::string& job) { return JobDir(job) + "/folds.npy"; }
inline std::string SamplesPath(const std::string& job) { return JobDir(job) + "/samples.json"; }
inline std::string TokenizerPath(const std::string& job, int fold) {
  return JobDir(job) + "/tokenizer-" + std::to_string(fold) + ".model";
}
inline std::string PredictionFormPath(const std::string& job) {
  return JobDir(job) + "/predictions.json";
}
inline std::string FloorDir(const std::string& job) { return JobDir(job) + "/floor"; }
inline std::string AttemptDir(const std::string& job, int64_t attempt) {
  return JobDir(job) + "/attempts/" + std::to_string(attempt);
}
inline std::string ReusedDir(const std::string& job, int64_t attempt) {
  return JobDir(job) + "/reused/" + std::to_string(attempt);
}
// The folders of a Job's user programs, and that of a fold and a trial.
inline std::string ProgramsDir(const std::string& job) { return JobDir(job) + "/program"; }
inline std::string ProgramDir(const std::string& job, int fold, int trial = 0) {
  const std::string of_trial = trial == 0 ? "" : "/trial-" + std::to_string(trial);
  return ProgramsDir(job) + of_trial + "/fold-" + std::to_string(fold);
}
// The folder to which the files of a Job's program go. named: run.results of its spec, which is
// empty where the Job keeps them itself, because its program's folder was uploaded.
inline constexpr char kResultsFolder[] = "results";
inline std::string ProgramResultsDir(const std::string& state_dir, const std::string& job,
                                     const std::string& named) {
  return named.empty() ? state_dir + "/" + JobDir(job) + "/" + kResultsFolder : named;
}
inline std::string RankLogPath(const std::string& job, int64_t attempt, int rank) {
  return AttemptDir(job, attempt) + "/rank" + std::to_string(rank) + ".log";
}
inline std::string PredictionDir(const std::string& job, int number) {
  return JobDir(job) + "/prediction-" + std::to_string(number);
}
inline std::string CurrentLink(const std::string& job) { return JobDir(job) + "/current"; }
inline std::string EndedMark(const std::string& job) { return JobDir(job) + "/ended"; }
inline std::string EndedJobFile(const std::string& job) { return JobDir(job) + "/end.json"; }
inline std::string EndToldMark(const std::string& job) { return JobDir(job) + "/end-told"; }
inline constexpr char kEndHookFile[] = "on-end";
inline std::string PublishLock(const std::string& job) { return JobDir(job) + "/publish.lock"; }
inline constexpr char kOofFile[] = "oof.npy";
inline constexpr char kTestFile[] = "test.npy";
inline constexpr char kModelFile[] = "model.json";      // in an Attempt's folder
inline constexpr char kResultsFile[] = "results.json";  // in an Attempt's folder, of a program
inline constexpr char kPredictionsFile[] = "predictions.csv";
inline constexpr char kPredictionsNpy[] = "predictions.npy";
inline constexpr char kPredictionsZip[] = "predictions.zip";
inline constexpr char kMasksDir[] = "masks";  // in a Prediction's folder
inline constexpr char kManifestFile[] = "manifest.json";

}  // namespace traind
