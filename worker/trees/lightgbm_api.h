// The functions of LightGBM's C interface (include/LightGBM/c_api.h of version 4.7) that we call,
// without their prefix LGBM_. Each returns 0, or -1: GetLastError() then tells why.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>

namespace traind {

struct LightgbmApi {
  using Dataset = void*;
  using Booster = void*;
  enum DataType { kFloat32 = 0, kFloat64 = 1 };
  enum PredictType { kNormal = 0, kRawScore = 1 };

  const char* (*GetLastError)();
  int (*RegisterLogCallback)(void (*callback)(const char*));

  int (*DatasetCreateFromMat)(const void* data, int data_type, int32_t rows, int32_t columns,
                              int is_row_major, const char* parameters, Dataset reference,
                              Dataset* out);
  int (*DatasetSetField)(Dataset dataset, const char* name, const void* data, int elements,
                         int data_type);
  int (*DatasetSetFeatureNames)(Dataset dataset, const char** names, int columns);
  int (*DatasetFree)(Dataset dataset);

  int (*BoosterCreate)(Dataset training, const char* parameters, Booster* out);
  int (*BoosterLoadModelFromString)(const char* text, int* iterations, Booster* out);
  int (*BoosterFree)(Booster booster);
  int (*BoosterAddValidData)(Booster booster, Dataset validation);
  int (*BoosterUpdateOneIter)(Booster booster, int* finished);
  int (*BoosterUpdateOneIterCustom)(Booster booster, const float* gradients, const float* hessians,
                                    int* finished);
  // data: 0 of the training rows, 1 of the validation rows. Class by class, not row by row.
  int (*BoosterGetPredict)(Booster booster, int data, int64_t* length, double* out);
  // Row by row.
  int (*BoosterPredictForMat)(Booster booster, const void* data, int data_type, int32_t rows,
                              int32_t columns, int is_row_major, int predict_type,
                              int start_iteration, int iterations, const char* parameters,
                              int64_t* length, double* out);
  int (*BoosterSaveModelToString)(Booster booster, int start_iteration, int iterations,
                                  int importance_type, int64_t buffer_length, int64_t* length,
                                  char* out);
  // The trees of `other` come before the booster's own.
  int (*BoosterMerge)(Booster booster, Booster other);
  int (*BoosterGetNumFeature)(Booster booster, int* columns);
  int (*BoosterGetNumClasses)(Booster booster, int* classes);

  // Returns the library's message about its last failure on this thread, or OK where result is 0.
  absl::Status Check(int result, absl::string_view what) const;
};

// Opens the library at the first call. Errors: those of OpenTreeLibrary and CheckTreeVersion.
// Threads: safe. Ownership: lives until the process ends.
absl::StatusOr<const LightgbmApi*> LoadLightgbm();

}  // namespace traind
