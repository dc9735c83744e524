// The functions of XGBoost's C interface (include/xgboost/c_api.h of version 3.2) that we call.
// Each returns 0, or -1: GetLastError() then tells why. Arrays are given as texts in JSON.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>

namespace traind {

struct XgboostApi {
  using Matrix = void*;
  using Booster = void*;

  const char* (*GetLastError)();
  void (*Version)(int* major, int* minor, int* patch);
  int (*RegisterLogCallback)(void (*callback)(const char*));

  int (*MatrixCreateFromDense)(const char* data, const char* config, Matrix* out);
  int (*MatrixSetInfo)(Matrix matrix, const char* field, const char* data);
  int (*MatrixSetStrFeatureInfo)(Matrix matrix, const char* field, const char** features,
                                 uint64_t size);
  int (*MatrixFree)(Matrix matrix);

  int (*BoosterCreate)(const Matrix* matrices, uint64_t size, Booster* out);
  int (*BoosterFree)(Booster booster);
  int (*BoosterSetParam)(Booster booster, const char* name, const char* value);
  int (*BoosterUpdateOneIter)(Booster booster, int iteration, Matrix training);
  int (*BoosterTrainOneIter)(Booster booster, Matrix training, int iteration, const char* gradients,
                             const char* hessians);
  // The result belongs to the booster until its next call.
  int (*BoosterPredict)(Booster booster, Matrix matrix, const char* config, const uint64_t** shape,
                        uint64_t* dimensions, const float** out);
  int (*BoosterSaveModel)(Booster booster, const char* config, uint64_t* length, const char** out);
  int (*BoosterLoadModel)(Booster booster, const void* bytes, uint64_t length);
  int (*BoosterSlice)(Booster booster, int begin, int end, int step, Booster* out);
  int (*BoosterSetAttr)(Booster booster, const char* key, const char* value);
  int (*BoosterBoostedRounds)(Booster booster, int* rounds);
  int (*BoosterGetNumFeature)(Booster booster, uint64_t* columns);

  absl::Status Check(int result, absl::string_view what) const;
};

// Opens the library at the first call. Errors: those of OpenTreeLibrary and CheckTreeVersion.
// Threads: safe. Ownership: lives until the process ends.
absl::StatusOr<const XgboostApi*> LoadXgboost();

}  // namespace traind
