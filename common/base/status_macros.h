// Macros that return early with the error of an absl::Status or absl::StatusOr.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <utility>

#define TRAIND_CONCAT_INNER_(a, b) a##b
#define TRAIND_CONCAT_(a, b) TRAIND_CONCAT_INNER_(a, b)

#define RETURN_IF_ERROR(expr)                                           \
  do {                                                                  \
    if (::absl::Status status_ = (expr); !status_.ok()) return status_; \
  } while (false)

// Usage: ASSIGN_OR_RETURN(auto x, MakeX());
#define ASSIGN_OR_RETURN(lhs, expr) \
  TRAIND_ASSIGN_OR_RETURN_(TRAIND_CONCAT_(status_or_, __LINE__), lhs, expr)
#define TRAIND_ASSIGN_OR_RETURN_(tmp, lhs, expr) \
  auto tmp = (expr);                             \
  if (!tmp.ok()) return std::move(tmp).status(); \
  lhs = *std::move(tmp)
