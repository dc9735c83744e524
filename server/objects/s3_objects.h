// The objects of a bucket of an S3-compatible store.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "server/objects/object_store.h"
#include "server/objects/s3_location.h"

namespace traind {

// text: s3://BUCKET[/PREFIX]. Asks the store whether it keeps If-None-Match, without which two
// trainds could have one archive. Errors: InvalidArgument (the text, the environment),
// FailedPrecondition (credentials, rights, the bucket, a store that ignores the condition),
// Unavailable.
absl::StatusOr<std::shared_ptr<const ObjectStore>> OpenS3Objects(const std::string& text,
                                                                 const Environ& environ);

// Of s3://..., or of a folder.
absl::StatusOr<std::shared_ptr<const ObjectStore>> OpenObjects(const std::string& artifacts);

}  // namespace traind
