#include "common/data/volume/npy_bytes.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "common/base/data_roots.h"
#include "common/base/durable_file.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

constexpr size_t kBlock = 1 << 18;

absl::Status Wrong(const OpenFile& file, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(file.path(), what));
}

absl::Status ReadAll(const OpenFile& file, uint64_t at, absl::Span<char> out) {
  ASSIGN_OR_RETURN(const size_t read, file.Read(at, out));
  return read == out.size() ? absl::OkStatus() : Wrong(file, " was cut while it was read");
}

class FileBytes final : public NpyBytes {
 public:
  FileBytes(std::shared_ptr<const OpenFile> file, uint64_t begin)
      : file_(std::move(file)), begin_(begin) {}
  absl::Status Read(uint64_t at, absl::Span<char> out) override {
    return ReadAll(*file_, begin_ + at, out);
  }

 private:
  const std::shared_ptr<const OpenFile> file_;
  const uint64_t begin_;
};

class MemberBytes final : public NpyBytes {
 public:
  MemberBytes(std::shared_ptr<const OpenFile> file, uint64_t begin, const ZipMember& member)
      : file_(std::move(file)),
        begin_(begin),
        name_(member.name),
        stored_(member.stored.size()),
        size_(member.size),
        deflated_(member.deflated),
        crc_(member.crc32) {}
  ~MemberBytes() override { End(); }

  absl::Status Read(uint64_t at, absl::Span<char> out) override {
    if (!begun_ || at < at_) RETURN_IF_ERROR(Begin());
    while (at_ < at) {
      skipped_.resize(std::min<uint64_t>(kBlock, at - at_));
      RETURN_IF_ERROR(Next(absl::MakeSpan(skipped_)));
    }
    RETURN_IF_ERROR(Next(out));
    return at_ == size_ ? Finish() : absl::OkStatus();
  }

 private:
  absl::Status Damaged(absl::string_view what) const {
    return Wrong(*file_,
                 absl::StrCat(" is not a complete ZIP archive: member '", name_, "' ", what));
  }

  absl::Status Begin() {
    End();
    at_ = taken_ = 0;
    seen_crc_ = static_cast<uint32_t>(crc32(0, nullptr, 0));
    stream_ = {};
    if (deflated_ && inflateInit2(&stream_, -MAX_WBITS) != Z_OK) {
      return absl::ResourceExhaustedError("no memory to unpack");
    }
    begun_ = true;
    ended_ = false;
    return absl::OkStatus();
  }
  void End() {
    if (begun_ && deflated_) inflateEnd(&stream_);
    begun_ = false;
  }

  // Reads the next bytes.
  absl::Status Next(absl::Span<char> out) {
    if (deflated_) {
      RETURN_IF_ERROR(Inflate(out));
    } else {
      RETURN_IF_ERROR(ReadAll(*file_, begin_ + at_, out));
    }
    at_ += out.size();
    for (size_t i = 0; i < out.size(); i += kBlock) {
      const auto part = out.subspan(i, kBlock);
      seen_crc_ = static_cast<uint32_t>(crc32(
          seen_crc_, reinterpret_cast<const Bytef*>(part.data()), static_cast<uInt>(part.size())));
    }
    return absl::OkStatus();
  }

  // Refills the input if the stream has used all of it. At the member's end there is no more input,
  // which inflate reports as an error.
  absl::Status Refill() {
    if (stream_.avail_in > 0 || taken_ == stored_) return absl::OkStatus();
    packed_.resize(std::min<uint64_t>(kBlock, stored_ - taken_));
    RETURN_IF_ERROR(ReadAll(*file_, begin_ + taken_, absl::MakeSpan(packed_)));
    taken_ += packed_.size();
    stream_.next_in = reinterpret_cast<Bytef*>(packed_.data());
    stream_.avail_in = static_cast<uInt>(packed_.size());
    return absl::OkStatus();
  }

  absl::Status Inflate(absl::Span<char> out) {
    constexpr size_t kMost = 1 << 30;  // zlib counts in 32 bits
    size_t done = 0;
    while (done < out.size()) {
      RETURN_IF_ERROR(Refill());
      const size_t some = std::min(kMost, out.size() - done);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + done);
      stream_.avail_out = static_cast<uInt>(some);
      const int result = ended_ ? Z_BUF_ERROR : inflate(&stream_, Z_NO_FLUSH);
      done += some - stream_.avail_out;
      ended_ |= result == Z_STREAM_END;
      if (result != Z_OK && !(ended_ && done == out.size())) {
        return Damaged("does not decompress to the stated size");
      }
    }
    return absl::OkStatus();
  }

  // Called after the last byte: there must not be more, and the checksum must match.
  absl::Status Finish() {
    while (deflated_ && !ended_) {
      char beyond;
      RETURN_IF_ERROR(Refill());
      stream_.next_out = reinterpret_cast<Bytef*>(&beyond);
      stream_.avail_out = 1;
      const int result = inflate(&stream_, Z_NO_FLUSH);
      ended_ = result == Z_STREAM_END;
      if (stream_.avail_out == 0 || (result != Z_OK && !ended_)) {
        return Damaged("does not decompress to the stated size");
      }
    }
    return seen_crc_ == crc_ ? absl::OkStatus() : Damaged("has another checksum");
  }

  const std::shared_ptr<const OpenFile> file_;
  const uint64_t begin_;
  const std::string name_;
  const uint64_t stored_, size_;  // compressed and decompressed size
  const bool deflated_;
  const uint32_t crc_;

  bool begun_ = false, ended_ = false;  // ended_: the stream has reported its end
  uint64_t at_ = 0, taken_ = 0;         // decompressed and compressed bytes so far
  uint32_t seen_crc_ = 0;
  z_stream stream_ = {};
  std::vector<char> packed_, skipped_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const OpenFile>> OpenFile::Open(const std::string& path) {
  // O_NONBLOCK keeps a FIFO from blocking us; it has no effect on a regular file.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  absl::Status status = CheckUserFile(fd, path);
  struct stat info;
  if (status.ok() && (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))) {
    status = absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  }
  if (!status.ok()) {
    close(fd);
    return status;
  }
  return std::shared_ptr<const OpenFile>(
      new OpenFile(path, fd, static_cast<uint64_t>(info.st_size)));
}

OpenFile::~OpenFile() { close(fd_); }

absl::StatusOr<size_t> OpenFile::Read(uint64_t at, absl::Span<char> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n =
        pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", path_));
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

std::unique_ptr<NpyBytes> BytesOfFile(std::shared_ptr<const OpenFile> file, uint64_t begin) {
  return std::make_unique<FileBytes>(std::move(file), begin);
}

std::unique_ptr<NpyBytes> BytesOfMember(std::shared_ptr<const OpenFile> file, uint64_t begin,
                                        const ZipMember& member) {
  return std::make_unique<MemberBytes>(std::move(file), begin, member);
}

}  // namespace traind
