// A bucket for a test: that of TRAIND_TEST_S3 (s3://BUCKET; where it is and who may use it stand in
// the usual variables), or one of tests/s3/bucket.py, which it starts.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

namespace traind {

class TestBucket {
 public:
  TestBucket() {
    static std::atomic<int> counter{0};
    const std::string prefix =
        "/t" + std::to_string(getpid()) + "-" + std::to_string(counter.fetch_add(1));
    if (const char* const given = std::getenv("TRAIND_TEST_S3"); given != nullptr) {
      place_ = given + prefix;
      return;
    }
    int out[2], in[2];
    if (pipe(out) != 0 || pipe(in) != 0) std::abort();
    child_ = fork();
    if (child_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      for (const int fd : {out[0], out[1], in[0], in[1]}) close(fd);
      // Pages of three, so that lists have several.
      execlp("python3", "python3", "tests/s3/bucket.py", "--page", "3", nullptr);
      _exit(127);
    }
    close(out[1]);
    close(in[0]);
    to_child_ = in[1];
    std::string port;
    for (char c = 0; read(out[0], &c, 1) == 1 && c != '\n';) port += c;
    close(out[0]);
    EXPECT_FALSE(port.empty()) << "tests/s3/bucket.py did not start";
    endpoint_ = "http://127.0.0.1:" + port;
    setenv("AWS_ENDPOINT_URL", endpoint_.c_str(), 1);
    setenv("AWS_ACCESS_KEY_ID", "test-key", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "test-secret", 1);
    setenv("AWS_REGION", "us-east-1", 1);
    place_ = "s3://bucket" + prefix;
  }
  ~TestBucket() {
    if (child_ <= 0) return;
    close(to_child_);
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  TestBucket(const TestBucket&) = delete;
  TestBucket& operator=(const TestBucket&) = delete;

  const std::string& place() const { return place_; }
  // Whether faults can be asked for.
  bool is_stand_in() const { return child_ > 0; }
  // See bucket.py. REQUIRES: is_stand_in().
  void Ask(const std::string& faults) const {
    const std::string python =
        "python3 -c \"import sys,urllib.request as u;u.urlopen(sys.argv[1]+'/faults',"
        "data=sys.argv[2].encode())\" " +
        endpoint_ + " '" + faults + "'";
    EXPECT_EQ(std::system(python.c_str()), 0);
  }

 private:
  std::string place_, endpoint_;
  pid_t child_ = -1;
  int to_child_ = -1;
};

}  // namespace traind
