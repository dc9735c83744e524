// The objects of a bucket of an S3-compatible store.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "server/objects/object_store.h"
#include "server/objects/s3_location.h"

namespace traind {

// kOwn: for an archive that is continued; then the store is asked whether it keeps If-None-Match,
// without which two trainds could have one archive.
enum class ObjectUse { kRead, kOwn };

// text: s3://BUCKET[/PREFIX]. Errors: InvalidArgument (the text, the environment),
// FailedPrecondition (credentials, rights, the bucket, a store that ignores the condition),
// Unavailable.
absl::StatusOr<std::shared_ptr<const ObjectStore>> OpenS3Objects(const std::string& text,
                                                                 ObjectUse use,
                                                                 const Environ& environ);

// Of s3://..., or of a folder.
absl::StatusOr<std::shared_ptr<const ObjectStore>> OpenObjects(const std::string& artifacts,
                                                               ObjectUse use);

}  // namespace traind
