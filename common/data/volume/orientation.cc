#include "common/data/volume/orientation.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "common/base/durable_file.h"
#include "common/base/nameless_file.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

using Matrix = std::array<std::array<double, 3>, 3>;

// The transposed inverse; none where the matrix has (nearly) none.
std::optional<Matrix> TransposedInverse(const Matrix& m) {
  Matrix cofactors;
  for (size_t r = 0; r < 3; ++r) {
    for (size_t c = 0; c < 3; ++c) {
      const size_t r1 = (r + 1) % 3, r2 = (r + 2) % 3, c1 = (c + 1) % 3, c2 = (c + 2) % 3;
      cofactors[r][c] = m[r1][c1] * m[r2][c2] - m[r1][c2] * m[r2][c1];
    }
  }
  double determinant = 0;
  for (size_t c = 0; c < 3; ++c) determinant += m[0][c] * cofactors[0][c];
  if (!(std::abs(determinant) > 1e-6)) return std::nullopt;
  for (auto& row : cofactors) {
    for (double& value : row) value /= determinant;
  }
  return cofactors;
}

// Columns of length 1: the direction of each axis of the file.
std::optional<Matrix> DirectionsOf(const Affine& affine) {
  Matrix directions;
  for (size_t axis = 0; axis < 3; ++axis) {
    const double length = std::hypot(affine[0][axis], affine[1][axis], affine[2][axis]);
    if (!(length > 0)) return std::nullopt;
    for (size_t r = 0; r < 3; ++r) directions[r][axis] = affine[r][axis] / length;
  }
  return directions;
}

// The nearest rotation (or reflection), by Newton's iteration. The axes of a sheared file are
// compared with those of the room in it, as nibabel does by a singular value decomposition.
std::optional<Matrix> WithoutShear(Matrix m) {
  for (int i = 0; i < 40; ++i) {
    const std::optional<Matrix> other = TransposedInverse(m);
    if (!other.has_value()) return std::nullopt;
    double change = 0;
    for (size_t r = 0; r < 3; ++r) {
      for (size_t c = 0; c < 3; ++c) {
        const double next = 0.5 * (m[r][c] + (*other)[r][c]);
        change = std::max(change, std::abs(next - m[r][c]));
        m[r][c] = next;
      }
    }
    if (change < 1e-14) break;
  }
  return m;
}

Affine BySform(const NiftiGeometry& geometry) {
  Affine affine;
  for (size_t r = 0; r < 3; ++r) {
    for (size_t c = 0; c < 4; ++c) affine[r][c] = geometry.srow[4 * r + c];
  }
  return affine;
}

Affine ByQform(const NiftiGeometry& geometry) {
  double b = geometry.quatern[0], c = geometry.quatern[1], d = geometry.quatern[2];
  double a = 0;
  const double squares = b * b + c * c + d * d;
  if (squares > 1) {
    const double length = std::sqrt(squares);
    b /= length;
    c /= length;
    d /= length;
  } else {
    a = std::sqrt(1 - squares);
  }
  const Matrix rotation = {
      {{a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)},
       {2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b)},
       {2 * (b * d - a * c), 2 * (c * d + a * b), a * a + d * d - b * b - c * c}}};
  Affine affine;
  for (size_t r = 0; r < 3; ++r) {
    for (size_t axis = 0; axis < 3; ++axis) {
      affine[r][axis] = rotation[r][axis] * geometry.pixdim[axis + 1];
    }
    if (geometry.pixdim[0] < 0) affine[r][2] = -affine[r][2];
    affine[r][3] = geometry.quatern[3 + r];
  }
  return affine;
}

std::array<double, 3> InRoom(const Affine& affine, const Place3& place) {
  std::array<double, 3> room;
  for (size_t r = 0; r < 3; ++r) {
    room[r] = affine[r][3];
    for (size_t axis = 0; axis < 3; ++axis) {
      room[r] += affine[r][axis] * static_cast<double>(place[2 - axis]);
    }
  }
  return room;
}

Place3 ExtentOf(const VolumeShape& shape) { return {shape.depth, shape.height, shape.width}; }

}  // namespace

Orientation Orientation::Inverse() const {
  Orientation inverse;
  for (size_t axis = 0; axis < 3; ++axis) {
    inverse.axes[axes[axis]] = axis;
    inverse.flipped[axes[axis]] = flipped[axis];
  }
  return inverse;
}

VolumeShape Orientation::ShapeOf(const VolumeShape& file) const {
  const Place3 extent = ExtentOf(file);
  return {extent[axes[0]], extent[axes[1]], extent[axes[2]], file.channels};
}

Spacing Orientation::SpacingOf(const Spacing& file) const {
  return {file[axes[0]], file[axes[1]], file[axes[2]]};
}

Place3 Orientation::InFile(const Place3& turned, const VolumeShape& file) const {
  const Place3 extent = ExtentOf(file);
  Place3 place;
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t at = turned[axis];
    place[axes[axis]] = flipped[axis] ? extent[axes[axis]] - 1 - at : at;
  }
  return place;
}

std::optional<Affine> AffineOf(const NiftiGeometry& geometry) {
  if (geometry.sform_code <= 0 && geometry.qform_code <= 0) return std::nullopt;
  const Affine affine = geometry.sform_code > 0 ? BySform(geometry) : ByQform(geometry);
  const std::optional<Matrix> directions = DirectionsOf(affine);
  if (!directions.has_value() || !WithoutShear(*directions).has_value()) return std::nullopt;
  return affine;
}

Orientation OrientationOf(const NiftiGeometry& geometry, const VolumeShape& file) {
  Orientation orientation;
  const std::optional<Affine> affine = AffineOf(geometry);
  if (!affine.has_value()) return orientation;
  const Matrix directions = *WithoutShear(*DirectionsOf(*affine));
  // The axes of the file choose in the order of how well they fit one of the room.
  const auto fit = [&directions](size_t axis) {
    double best = 0;
    for (size_t r = 0; r < 3; ++r) best = std::max(best, std::abs(directions[r][axis]));
    return best;
  };
  std::array<size_t, 3> order = {0, 1, 2};
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return fit(a) > fit(b); });
  std::array<bool, 3> taken = {};
  for (const size_t axis : order) {
    size_t best = 3;
    for (size_t r = 0; r < 3; ++r) {
      if (taken[r]) continue;
      if (best == 3 || std::abs(directions[r][axis]) > std::abs(directions[best][axis])) best = r;
    }
    taken[best] = true;
    // x is the header's first axis, and an array's last one.
    orientation.axes[2 - best] = 2 - axis;
    orientation.flipped[2 - best] = directions[best][axis] < 0;
  }
  if (file.depth > 1) return orientation;
  const auto slices = std::find(orientation.axes.begin(), orientation.axes.end(), size_t{0});
  const auto at = slices - orientation.axes.begin();
  std::rotate(orientation.axes.begin(), slices, slices + 1);
  std::rotate(orientation.flipped.begin(), orientation.flipped.begin() + at,
              orientation.flipped.begin() + at + 1);
  orientation.flipped[0] = false;
  return orientation;
}

bool LieAlike(const NiftiGeometry& a, const VolumeShape& shape_a, const NiftiGeometry& b,
              const VolumeShape& shape_b) {
  const std::optional<Affine> affine_a = AffineOf(a), affine_b = AffineOf(b);
  if (!affine_a.has_value() || !affine_b.has_value()) return false;
  const Orientation of_a = OrientationOf(a, shape_a), of_b = OrientationOf(b, shape_b);
  const VolumeShape turned = of_a.ShapeOf(shape_a);
  if (of_b.ShapeOf(shape_b) != turned) return false;
  double voxel = HUGE_VAL;
  for (size_t axis = 0; axis < 3; ++axis) {
    voxel = std::min(voxel,
                     std::hypot((*affine_a)[0][axis], (*affine_a)[1][axis], (*affine_a)[2][axis]));
  }
  for (int corner = 0; corner < 8; ++corner) {
    const Place3 place = {(corner & 1) != 0 ? turned.depth - 1 : 0,
                          (corner & 2) != 0 ? turned.height - 1 : 0,
                          (corner & 4) != 0 ? turned.width - 1 : 0};
    const auto at_a = InRoom(*affine_a, of_a.InFile(place, shape_a));
    const auto at_b = InRoom(*affine_b, of_b.InFile(place, shape_b));
    if (std::hypot(at_a[0] - at_b[0], at_a[1] - at_b[1], at_a[2] - at_b[2]) > voxel / 2) {
      return false;
    }
  }
  return true;
}

SliceTurner::SliceTurner(const VolumeShape& from, const Orientation& orientation,
                         size_t voxel_bytes)
    : to_(orientation.ShapeOf(from)),
      height_(static_cast<size_t>(from.height)),
      width_(static_cast<size_t>(from.width)),
      voxel_bytes_(voxel_bytes),
      keeps_slices_(orientation.keeps_slices()) {
  const Place3 to_strides = {to_.height * to_.width, to_.width, 1}, extent = ExtentOf(to_);
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t stride = keeps_slices_ && axis == 0 ? 0 : to_strides[axis];
    const bool back = orientation.flipped[axis];
    strides_[orientation.axes[axis]] = back ? -stride : stride;
    if (back) origin_ += (extent[axis] - 1) * stride;
  }
}

SliceTurner::~SliceTurner() {
  if (!keeps_slices_ && voxels_ != nullptr) munmap(voxels_, bytes_);
}

absl::StatusOr<std::unique_ptr<SliceTurner>> SliceTurner::Create(const VolumeShape& from,
                                                                 const Orientation& orientation,
                                                                 size_t voxel_bytes,
                                                                 const std::string& scratch) {
  std::unique_ptr<SliceTurner> turner(new SliceTurner(from, orientation, voxel_bytes));
  if (turner->keeps_slices_) {
    turner->one_.resize(turner->height_ * turner->width_ * voxel_bytes);
    turner->voxels_ = turner->one_.data();
  } else {
    RETURN_IF_ERROR(turner->Map(scratch));
  }
  return turner;
}

absl::Status SliceTurner::Map(const std::string& scratch) {
  ASSIGN_OR_RETURN(const int fd, OpenNamelessFile(scratch));
  const absl::Cleanup closer = [fd] { close(fd); };
  bytes_ = static_cast<size_t>(to_.voxels()) * voxel_bytes_;
  // The space is taken now: a write to a map of a full disk would end the process.
  if (const int error = posix_fallocate(fd, 0, static_cast<off_t>(bytes_)); error != 0) {
    return ErrnoStatus(error, absl::StrCat("cannot write ", bytes_, " bytes below ", scratch));
  }
  void* const map = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED)
    return ErrnoStatus(errno, absl::StrCat("cannot map a file below ", scratch));
  voxels_ = static_cast<char*>(map);
  return absl::OkStatus();
}

void SliceTurner::Put(int64_t z, const char* slice) {
  const auto voxel_bytes = static_cast<int64_t>(voxel_bytes_);
  for (size_t y = 0; y < height_; ++y) {
    char* to =
        voxels_ + (origin_ + z * strides_[0] + static_cast<int64_t>(y) * strides_[1]) * voxel_bytes;
    for (size_t x = 0; x < width_; ++x, slice += voxel_bytes_, to += strides_[2] * voxel_bytes) {
      std::memcpy(to, slice, voxel_bytes_);
    }
  }
  // The map's pages stay in the file, and need not stay in this process.
  constexpr int64_t kBetweenReleases = 16;
  if (!keeps_slices_ && z % kBetweenReleases == 0) madvise(voxels_, bytes_, MADV_DONTNEED);
}

void SliceTurner::Read(int64_t z, char* slice) const {
  const size_t plane = static_cast<size_t>(to_.height * to_.width) * voxel_bytes_;
  const size_t at = keeps_slices_ ? 0 : static_cast<size_t>(z) * plane;
  std::memcpy(slice, voxels_ + at, plane);
}

}  // namespace traind
