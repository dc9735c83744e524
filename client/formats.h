// The forms of a document besides JSON: YAML, JSON lines, CSV, names.
// Threads: safe, pure.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>

namespace traind {

enum class OutputFormat { kTable, kWide, kJson, kJsonLines, kYaml, kCsv, kName };

// Returns the format of that name, as -o takes it. REQUIRES: it is one of the names.
OutputFormat OutputFormatOf(absl::string_view name);

// Turns a JSON document into another form.
//
// kYaml takes any document. The others take a list: an array, or the one array of an object.
// kJsonLines writes an element per line. kCsv has a column for each number, word and truth of the
// elements, with the path of its keys ("scores.oof"); lists are left out. kName writes the `id` of
// each element, else its `name`, else the first value that is a word; a document that is an object
// with an `id`, such as a Job, is one element, and so is the one section of a document without
// lists.
// Errors: InvalidArgument: the document is no list.
absl::StatusOr<std::string> FormatDocument(absl::string_view json, OutputFormat format);

}  // namespace traind
