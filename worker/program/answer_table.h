// Predictions as a program of a user writes them, in a CSV file.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>
#include <vector>

namespace traind {

// The rows that a file of predictions is about.
struct AnswerRows {
  size_t count = 0;
  // The column that names rows, and their names, all different. Without names the file's rows are
  // in order, or have a column `row` with their numbers from 0.
  std::string id;
  std::vector<std::string> ids;
  std::string target;
  std::vector<std::string> classes;  // empty: one value for each row
};

// Reads predictions for all rows and returns them in the order of `rows`: [count, classes] of
// probabilities, or [count] of values.
//
// Classes: a column for each class, called as the class is or with p_ before it; each row's
// probabilities sum to 1 within a fiftieth, and are scaled to sum to it. Or a column of classes,
// which become probabilities of 1. Such a column, and that of values, has the name of the target or
// `prediction`, or is the only one besides the id.
//
// Errors: InvalidArgument names file, row and column: a column that is missing, or of an unknown
// class; an id that is missing, unknown or there twice; too few or too many rows; a prediction that
// is missing, no finite number, no probability or no class.
absl::StatusOr<std::vector<float>> ReadAnswerTable(absl::string_view bytes, const std::string& name,
                                                   const AnswerRows& rows);

// Whether both texts name one class: they are equal, or are equal numbers.
bool SameClass(absl::string_view a, absl::string_view b);

}  // namespace traind
