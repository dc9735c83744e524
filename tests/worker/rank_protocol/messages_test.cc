#include "worker/rank_protocol/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/common/facts/field_values.h"

namespace traind::rank_protocol {
namespace {

using ::testing::HasSubstr;

template <class M>
M RoundTrip(const M& message) {
  if constexpr (std::is_constructible_v<ToProcess, M>) {
    absl::StatusOr<ToProcess> decoded = DecodeToProcess(Encode(ToProcess(message)));
    EXPECT_TRUE(decoded.ok()) << decoded.status();
    return std::get<M>(*decoded);
  } else {
    absl::StatusOr<FromProcess> decoded = DecodeFromProcess(Encode(FromProcess(message)));
    EXPECT_TRUE(decoded.ok()) << decoded.status();
    return std::get<M>(*decoded);
  }
}

template <class M>
class EveryMessageTest : public ::testing::Test {};

template <class A, class B>
struct Joined;
template <class... A, class... B>
struct Joined<std::variant<A...>, std::variant<B...>> {
  using Types = ::testing::Types<A..., B...>;
};
using Messages = Joined<ToProcess, FromProcess>::Types;
TYPED_TEST_SUITE(EveryMessageTest, Messages);

TYPED_TEST(EveryMessageTest, EveryFieldSurvivesTheWire) {
  const TypeParam sent = Filled<TypeParam>();
  EXPECT_EQ(Shown(RoundTrip(sent)), Shown(sent));
}

// Or the test above would compare nothing.
TYPED_TEST(EveryMessageTest, AFieldThatGetsLostIsNoticed) {
  const TypeParam sent = Filled<TypeParam>();
  const nlohmann::json whole = nlohmann::json::parse(ToJsonLine("x", ReadableFields(sent)));
  for (const auto& [name, value] : Shown(sent)) {
    nlohmann::json json = whole;
    json.erase(name);
    TypeParam got;
    ASSERT_TRUE(JsonLine::Parse(json.dump())->Read(got.Fields()).ok());
    EXPECT_NE(Shown(got), Shown(sent)) << name;
  }
}

// The protocol as it stands: a person may speak it, so keys change on purpose alone.
TEST(MessagesTest, TheKeysOnTheWireAreTheFieldNames) {
  const auto keys = [](const std::string& line) {
    std::string all;
    const nlohmann::json object = nlohmann::json::parse(line);
    for (const auto& [key, value] : object.items()) all += key + " ";
    return all;
  };
  EXPECT_EQ(keys(Encode(ToProcess(Prepare{}))),
            "attempt data_roots job remaining_ms spec_json state_dir type ");
  EXPECT_EQ(keys(Encode(ToProcess(Train{}))),
            "attempt batch checkpoint_every_ms device epochs files_travel fold job loader_threads "
            "precision "
            "rank remaining_ms rendezvous resume row_share seed spec_json state_dir stop_ms table "
            "threads trial type "
            "world_size ");
  EXPECT_EQ(keys(Encode(ToProcess(Replan{}))),
            "attempt epochs remaining_ms row_share stop_ms type ");
  EXPECT_EQ(keys(Encode(ToProcess(Stop{}))), "attempt predict reason type ");
  EXPECT_EQ(keys(Encode(ToProcess(Exit{}))), "type ");
  EXPECT_EQ(keys(Encode(FromProcess(Ready{}))), "device engine pid type ");
  EXPECT_EQ(
      keys(Encode(FromProcess(TableReady{}))),
      "attempt cached classes content_sha256 features read_ms table test_rows train_rows type "
      "warnings ");
  EXPECT_EQ(keys(Encode(FromProcess(FloorReady{}))),
            "attempt model oof_sha256 score test_sha256 type ");
  EXPECT_EQ(keys(Encode(FromProcess(Started{}))),
            "attempt batch first_step parameters precision resolved_settings start_epoch "
            "steps_per_epoch type ");
  EXPECT_EQ(keys(Encode(FromProcess(Probe{}))),
            "attempt evaluate_s predict_s step_p90_s step_s timed_steps type ");
  EXPECT_EQ(keys(Encode(FromProcess(Progress{}))),
            "attempt cpu_cores data_wait device_memory_bytes device_utilisation epoch exchange "
            "gradient_norm loss loss_scale lr pause peak_device_bytes peak_memory_bytes "
            "power_watts resident_bytes samples_per_s steal step steps_per_s temperature_celsius "
            "type utilisation ");
  EXPECT_EQ(keys(Encode(FromProcess(Epoch{}))),
            "attempt best_metric epoch epoch_s evaluate_s head_only row_share step train_loss type "
            "val_loss "
            "val_metric ");
  EXPECT_EQ(keys(Encode(FromProcess(CheckpointSaved{}))),
            "attempt best_metric bytes epoch manifest save_ms sha256 step type ");
  EXPECT_EQ(
      keys(Encode(FromProcess(FoldSaved{}))),
      "attempt best_epoch complete epochs_done fold last oof oof_sha256 predict_s score seed step "
      "stopped_by test test_sha256 trial type ");
  EXPECT_EQ(keys(Encode(FromProcess(Finished{}))), "attempt type ");
  EXPECT_EQ(keys(Encode(FromProcess(Failed{}))), "attempt message reason type ");
  EXPECT_EQ(keys(Encode(FromProcess(Decision{}))), "attempt cause from rule to type ");
  EXPECT_EQ(keys(Encode(FromProcess(LogText{}))), "level text type ");
}

TEST(MessagesTest, NonFiniteNumbersTravelAsStrings) {
  Progress progress;
  progress.loss = std::numeric_limits<double>::quiet_NaN();
  progress.lr = std::numeric_limits<double>::infinity();
  progress.epoch = -std::numeric_limits<double>::infinity();
  progress.steps_per_s = 0.1;
  EXPECT_THAT(Encode(FromProcess(progress)), HasSubstr("\"loss\":\"NaN\""));
  const Progress got = RoundTrip(progress);
  EXPECT_TRUE(std::isnan(got.loss));
  EXPECT_EQ(got.lr, std::numeric_limits<double>::infinity());
  EXPECT_EQ(got.epoch, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(got.steps_per_s, 0.1);
}

TEST(MessagesTest, WarningsKeepTheirOrderAndText) {
  TableReady table;
  table.cached = true;
  table.warnings = {"a \"quoted\" one", "two\nlines", ""};
  const TableReady got = RoundTrip(table);
  EXPECT_TRUE(got.cached);
  EXPECT_EQ(got.warnings, table.warnings);
}

TEST(MessagesTest, ALineHoldsNoNewline) {
  LogText log{"info", "one\ntwo\r\n"};
  EXPECT_EQ(Encode(FromProcess(log)).find('\n'), std::string::npos);
  EXPECT_EQ(RoundTrip(log).text, log.text);
}

TEST(MessagesTest, BytesThatAreNotUtf8AreReplacedNotLost) {
  const Failed got = RoundTrip(Failed{7, AttemptEndReason::kDataError, "file \xff.csv"});
  EXPECT_EQ(got.message, "file \xef\xbf\xbd.csv");
}

TEST(MessagesTest, EnumsTravelByTheirNamesAndUnknownOnesAreTaken) {
  EXPECT_THAT(Encode(ToProcess(Stop{3, true, StopReason::kTime})), HasSubstr("\"TIME\""));
  const absl::StatusOr<FromProcess> failed =
      DecodeFromProcess(R"({"type":"failed","attempt":3,"reason":"NEW_REASON","message":"m"})");
  ASSERT_TRUE(failed.ok()) << failed.status();
  EXPECT_EQ(std::get<Failed>(*failed).reason, AttemptEndReason::kInternal);
  EXPECT_EQ(DecodeFromProcess(R"({"type":"failed","reason":7})").status().message(),
            "key reason: expected a string, got number");
}

TEST(MessagesTest, UnknownKeysAreIgnoredAndMissingOnesKeepDefaults) {
  absl::StatusOr<ToProcess> stop =
      DecodeToProcess(R"({"type":"stop","attempt":3,"colour":"red","deep":{"a":[1]}})");
  ASSERT_TRUE(stop.ok()) << stop.status();
  EXPECT_EQ(std::get<Stop>(*stop).attempt, 3);
  EXPECT_TRUE(std::get<Stop>(*stop).predict);
}

TEST(MessagesTest, WrongInputNamesTheKey) {
  const auto error = [](absl::string_view line) {
    const absl::StatusOr<ToProcess> decoded = DecodeToProcess(line);
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument) << line;
    return std::string(decoded.status().message());
  };
  EXPECT_EQ(error(R"({"type":"train","fold":"2"})"), "key fold: expected an integer, got string");
  EXPECT_EQ(error(R"({"type":"train","fold":2.5})"), "key fold: expected an integer, got number");
  EXPECT_EQ(error(R"({"type":"train","fold":3000000000})"), "key fold: 3000000000 is too big");
  EXPECT_EQ(error(R"({"type":"train","fold":-3000000000})"), "key fold: -3000000000 is too small");
  EXPECT_EQ(error(R"({"type":"stop","attempt":9223372036854775808})"),
            "key attempt: 9223372036854775808 is too big");
  EXPECT_EQ(error(R"({"type":"stop","predict":1})"),
            "key predict: expected true or false, got number");
  EXPECT_EQ(error(R"({"type":"train","rendezvous":{"port":"x"}})"),
            "key rendezvous.port: expected an integer, got string");
  EXPECT_EQ(error(R"({"type":"train","rendezvous":7})"),
            "key rendezvous: expected an object, got number");
  EXPECT_EQ(error(R"({"type":"train","job":null})"), "key job: expected a string, got null");
  EXPECT_EQ(error(R"({"type":"ready"})"), "key type: unknown message \"ready\"");
  EXPECT_EQ(error(R"({"type":4})"), "key type: expected a string, got number");
  EXPECT_EQ(error(R"({"attempt":4})"), "key type: missing");
  EXPECT_EQ(error("[1]"), "the line is not a JSON object");
  EXPECT_EQ(error(""), "the line is not a JSON object");
  EXPECT_EQ(error("{\"type\":\"exit\"} trailing"), "the line is not a JSON object");

  const absl::StatusOr<FromProcess> probe =
      DecodeFromProcess(R"({"type":"probe","step_s":"fast"})");
  EXPECT_EQ(probe.status().message(),
            "key step_s: expected a number, \"NaN\", \"Infinity\" or \"-Infinity\", got string");
  const absl::StatusOr<FromProcess> table =
      DecodeFromProcess(R"({"type":"table_ready","warnings":["a",3]})");
  EXPECT_EQ(table.status().message(), "key warnings: expected a string, got number");
}

TEST(MessagesTest, ALineOverTheLimitIsRefused) {
  std::string line = R"({"type":"log","text":")" + std::string(kMaxLineBytes, 'x') + "\"}";
  EXPECT_THAT(std::string(DecodeFromProcess(line).status().message()),
              HasSubstr("at most 4194304"));
}

TEST(MessagesTest, DeepNestingDoesNotOverflowTheStack) {
  std::string line = R"({"type":"exit","x":)";
  line.append(1'000'000, '[');
  EXPECT_EQ(DecodeToProcess(line).status().code(), absl::StatusCode::kInvalidArgument);
  line.append(1'000'000, ']');
  line += "}";
  EXPECT_TRUE(DecodeToProcess(line).ok());
}

}  // namespace
}  // namespace traind::rank_protocol
