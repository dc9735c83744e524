// Specs that trainctl sends, and its messages about wrong ones.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include "tests/client/cli_harness.h"

namespace traind {
namespace {

TEST_F(CliTest, AWrongSpecIsRefusedWithEveryPlace) {
  const std::string path = Write("bad.yaml",
                                 "api: v1\ntask: {type: classification}\n"
                                 "data: {train: a.csv, target: y}\n"
                                 "train:\n  lerning_rate: 1\nbudget:\n  time: 90\n");
  const Ran ran = Run({"submit", "-f", path});
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err,
            absl::StrCat(path,
                         ":5:3: error: unknown key 'lerning_rate' in train; did you mean "
                         "'learning_rate'?\n",
                         path, ":7:9: error: budget.time '90' has no unit; write 90s or 90m\n",
                         "2 errors, nothing submitted\n"));
  EXPECT_TRUE(submitted().empty());
}

TEST_F(CliTest, ValidateNeedsNoTraindAndSubmitsNothing) {
  const std::string bad = Write("bad.yaml", "data: {train: a.csv, target: y}\nbudget: 90\n");
  Ran ran = Run({"--server", "127.0.0.1:1", "validate", bad});
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(Has(ran.err, absl::StrCat(bad, ":2:9: error: "))) << ran.err;
  EXPECT_TRUE(Has(ran.err, "1 error, the spec cannot be submitted\n")) << ran.err;
  ran = Run({"--server", "127.0.0.1:1", "validate", bad, "--set", "budget=90s"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, bad + ": no mistakes\n");
  EXPECT_TRUE(Has(ran.err, " plan " + bad)) << ran.err;
  EXPECT_TRUE(submitted().empty());
}

TEST_F(CliTest, TheSpecNeedsNoFlag) {
  const Ran ran = Run({"submit", Path("none.yaml")});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(Has(ran.err, "No such file")) << ran.err;
}

TEST_F(CliTest, ASpecThatCannotBeReadIsMisuse) {
  EXPECT_EQ(Run({"submit", "-f", Path("none.yaml")}).code, 2);
  EXPECT_TRUE(Has(Run({"submit", "-f", Path("none.yaml")}).err, "No such file"));
  EXPECT_EQ(Run({"submit", "-f", folder_.string()}).code, 2);
  EXPECT_TRUE(Has(Run({"submit", "-f", folder_.string()}).err, "Is a directory"));
  const std::string large = Write("large.yaml", std::string((1 << 20) + 5, '#'));
  EXPECT_TRUE(Has(Run({"submit", "-f", large}).err, "larger than 1 MiB"));
}

TEST_F(CliTest, TheSpecGoesOutWithItsOverrides) {
  const Ran ran = Run({"submit", "-f", Path("job.yaml"), "--set", "train.epochs=3", "--set",
                       "model.mlp.hidden=[8, 4]", "--budget", "20s", "--name", "other", "-l",
                       "team=blue", "--request-id", "monday"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(Has(ran.out, "digits-7f3k2a RUNNING (new)  deadline")) << ran.out;
  ASSERT_EQ(submitted().size(), 1u);
  const v1::SubmitRequest request = submitted()[0];
  EXPECT_EQ(request.request_id(), "monday");
  EXPECT_EQ(request.spec_text(), kCliSpec);
  EXPECT_EQ(request.spec().data().train(), Path("train.csv"));
  EXPECT_EQ(request.spec().train().epochs(), 3);
  EXPECT_EQ(request.spec().model().mlp().hidden_size(), 2);
  EXPECT_EQ(request.spec().budget().time().seconds(), 20);
  EXPECT_EQ(request.spec().name(), "other");
  EXPECT_EQ(request.spec().labels().at("team"), "blue");
}

TEST_F(CliTest, AfterNamesJobsInPlaceOfTheSpecs) {
  Write("chain.yaml", std::string(kCliSpec) + "after: [old-1]\n");
  EXPECT_EQ(Run({"submit", "-f", Path("chain.yaml")}).code, 0);
  EXPECT_EQ(Run({"submit", "-f", Path("chain.yaml"), "--after", "a-1", "--after", "b"}).code, 0);
  const Ran ran = Run({"submit", "-f", Path("job.yaml"), "--set", "after={jobs: [c], end: any}"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(Run({"run", "--detach", "--after", "d", "--", "true"}).code, 0);
  ASSERT_EQ(submitted().size(), 4u);
  EXPECT_EQ(Run({"submit", "-f", Path("job.yaml"), "-o", "name"}).out, "digits-7f3k2a\n");
  const auto jobs = [this](size_t i) {
    return absl::StrJoin(submitted()[i].spec().after().jobs(), " ");
  };
  EXPECT_EQ(jobs(0), "old-1");
  EXPECT_EQ(jobs(1), "a-1 b");
  EXPECT_EQ(jobs(2), "c");
  EXPECT_EQ(submitted()[2].spec().after().end(), "any");
  EXPECT_EQ(jobs(3), "d");
}

TEST_F(CliTest, AProgramGoesOutWithItsWordsAndWhereItWasCalled) {
  const Ran ran = Run({"run", "--budget", "1h", "--folds", "3", "--expect", "sub_*.csv", "--out",
                       "results", "--env", "MODE=a=b", "--detach", "--", "python", "my train.py",
                       "--folds", "{folds}", "--", "run"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  ASSERT_EQ(submitted().size(), 1u);
  const v1::JobSpec spec = submitted()[0].spec();
  EXPECT_EQ(absl::StrJoin(spec.run().command(), "|"), "python|my train.py|--folds|{folds}|--|run");
  const std::filesystem::path here = std::filesystem::current_path();
  EXPECT_EQ(spec.run().folder(), here.string());
  EXPECT_EQ(spec.run().results(), (here / "results").string());
  EXPECT_EQ(spec.run().folds(), 3);
  EXPECT_EQ(absl::StrJoin(spec.run().expect(), ","), "sub_*.csv");
  EXPECT_EQ(spec.run().environment().at("MODE"), "a=b");
  EXPECT_EQ(spec.run().environment().count("PATH"), 1u);
  EXPECT_EQ(spec.budget().time().seconds(), 3600);
  EXPECT_EQ(spec.name(), "mytrain");
}

TEST_F(CliTest, StdinIsASpecRelativeToTheCurrentFolder) {
  ASSERT_EQ(Run({"submit", "-f", "-"}, kCliSpec).code, 0);
  ASSERT_EQ(submitted().size(), 1u);
  EXPECT_EQ(submitted()[0].spec().data().train(),
            (std::filesystem::current_path() / "train.csv").string());
  const Ran bad = Run({"submit", "-f", "-"}, "api: v3\n");
  EXPECT_TRUE(Has(bad.err, "stdin:1:6: error: api 'v3' is not v1")) << bad.err;
}

TEST_F(CliTest, EachCallHasARequestIdOfItsOwn) {
  ASSERT_EQ(Run({"submit", "-f", Path("job.yaml")}).code, 0);
  ASSERT_EQ(Run({"submit", "-f", Path("job.yaml")}).code, 0);
  ASSERT_EQ(submitted().size(), 2u);
  EXPECT_NE(submitted()[0].request_id(), submitted()[1].request_id());
  EXPECT_FALSE(submitted()[0].request_id().empty());
}

TEST_F(CliTest, TheRefusalOfTheDaemonIsPutAtThePlaceOfItsField) {
  service_.on_submit = [](const v1::SubmitRequest&, v1::SubmitReply*) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                        "data.train: no such file\nbudget.time: too short\x1b[31m\nwhatever");
  };
  const Ran ran = Run({"submit", "-f", Path("job.yaml"), "--budget", "5s"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err, absl::StrCat(Path("job.yaml"), ":4:8: error: data.train: no such file\n",
                                  "--budget: error: budget.time: too short\\x1b[31m\n",
                                  "trainctl: error: whatever\n", "3 errors, nothing submitted\n"));
}

}  // namespace
}  // namespace traind
