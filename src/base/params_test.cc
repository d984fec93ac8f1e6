// SPDX-License-Identifier: Apache-2.0
#include "base/params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <string>

namespace hocket {
namespace {

using testing::HasSubstr;

// Sets a variable for one test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before, had_ = true;
    ::setenv(name, value, 1);
  }
  ~Variable() { had_ ? ::setenv(name_, before_.c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string before_;
  bool had_ = false;
};

Error error_of(const hocketConfig_t* config = nullptr) {
  const auto settings = read_settings(config);
  EXPECT_FALSE(settings);
  return settings ? Error{hocketSuccess, ""} : settings.error();
}

TEST(Settings, DefaultsWithoutEnvironment) {
  const auto settings = read_settings(nullptr);
  ASSERT_TRUE(settings) << settings.error().text;
  const Settings defaults;
  EXPECT_EQ(settings->shared_text(), defaults.shared_text());
  EXPECT_EQ(settings->init_timeout_ms, 60000);
  EXPECT_EQ(settings->timeout_ms, 0);
}

TEST(Settings, EnvironmentIsRead) {
  const Variable timeout("HOCKET_TIMEOUT_MS", "1234"), algorithm("HOCKET_ALGORITHM", "ring"),
      channels("HOCKET_CHANNELS", "8"), empty("HOCKET_SPIN_US", ""), zero("HOCKET_STALL_MS", "0");
  const auto settings = read_settings(nullptr);
  ASSERT_TRUE(settings) << settings.error().text;
  EXPECT_EQ(settings->timeout_ms, 1234);
  EXPECT_EQ(settings->algorithm, "ring");
  EXPECT_EQ(settings->channels, 8);
  EXPECT_EQ(settings->spin_us, Settings{}.spin_us) << "empty is as good as not set";
  EXPECT_EQ(settings->stall_ms, 0);
}

TEST(Settings, MalformedValuesNameTheVariable) {
  const std::string huge(100000, '9'), nonsense(5000, '\xff');
  for (const std::string& value :
       {std::string("ten"), std::string("10ms"), std::string(" 10"), std::string("10 "), std::string("-1"),
        std::string("+1"), std::string("1.5"), std::string("0x10"), std::string("1e3"), std::string("2147483648"),
        std::string("99999999999999999999"), std::string("%n%s"), huge, nonsense}) {
    for (const char* name :
         {"HOCKET_TIMEOUT_MS", "HOCKET_INIT_TIMEOUT_MS", "HOCKET_CHANNELS", "HOCKET_SHM_BYTES", "HOCKET_SPIN_US"}) {
      const Variable variable(name, value.c_str());
      const Error error = error_of();
      EXPECT_EQ(error.code, hocketInvalidArgument) << name << "=" << value.substr(0, 30);
      EXPECT_THAT(error.text, HasSubstr(name));
    }
  }
}

TEST(Settings, ValuesOutOfRangeSayWhatIsIn) {
  {
    const Variable variable("HOCKET_CHANNELS", "9");
    EXPECT_THAT(error_of().text, HasSubstr("channels = 9; choose 1 to 8"));
  }
  {
    const Variable variable("HOCKET_SLOT_BYTES", "255");
    EXPECT_THAT(error_of().text, HasSubstr("slot bytes = 255; choose 256 to"));
  }
  {
    const Variable variable("HOCKET_SHM_BYTES", "65535");
    EXPECT_THAT(error_of().text, HasSubstr("at least 65536"));
  }
  for (const auto& [name, value] : {std::pair("HOCKET_SLOT_BYTES", "256"), std::pair("HOCKET_SLOT_BYTES", "67108864"),
                                    std::pair("HOCKET_SHM_BYTES", "65536"), std::pair("HOCKET_CHANNELS", "1")}) {
    const Variable variable(name, value);
    EXPECT_TRUE(read_settings(nullptr)) << name << "=" << value;
  }
}

TEST(Settings, ConfigOverridesTheEnvironment) {
  const Variable timeout("HOCKET_TIMEOUT_MS", "1"), channels("HOCKET_CHANNELS", "2"),
      deterministic("HOCKET_DETERMINISTIC", "1");
  hocketConfig_t config = HOCKET_CONFIG_INITIALIZER;
  config.timeoutMs = 77;
  config.commName = "training";
  config.algorithm = "chain";
  const auto settings = read_settings(&config);
  ASSERT_TRUE(settings) << settings.error().text;
  EXPECT_EQ(settings->timeout_ms, 77);
  EXPECT_EQ(settings->channels, 2) << "left undefined in the config";
  EXPECT_EQ(settings->deterministic, 1);
  EXPECT_EQ(settings->name, "training");
  EXPECT_EQ(settings->algorithm, "chain");
}

TEST(Settings, ConfigOutOfRangeIsRefused) {
  hocketConfig_t config = HOCKET_CONFIG_INITIALIZER;
  config.channels = -1;
  EXPECT_EQ(error_of(&config).code, hocketInvalidArgument);
  config = HOCKET_CONFIG_INITIALIZER;
  config.slotBytes = 1;
  EXPECT_EQ(error_of(&config).code, hocketInvalidArgument);
  config = HOCKET_CONFIG_INITIALIZER;
  config.timeoutMs = -5;
  EXPECT_EQ(error_of(&config).code, hocketInvalidArgument);
  config = HOCKET_CONFIG_INITIALIZER;
  config.initTimeoutMs = -5;
  EXPECT_EQ(error_of(&config).code, hocketInvalidArgument);
}

TEST(Settings, ConfigOfAnOlderCallerIsShorter) {
  hocketConfig_t config = HOCKET_CONFIG_INITIALIZER;
  config.timeoutMs = 5;
  config.channels = 3;
  config.size =
      offsetof(hocketConfig_t, channels);  // compiled before there were channels: what follows is not the caller's
  const auto settings = read_settings(&config);
  ASSERT_TRUE(settings) << settings.error().text;
  EXPECT_EQ(settings->timeout_ms, 5);
  EXPECT_EQ(settings->channels, 0);
}

TEST(Settings, ConfigOfANewerCallerIsLonger) {
  struct {
    hocketConfig_t known = HOCKET_CONFIG_INITIALIZER;
    int appended = 7;
  } config;
  config.known.size = sizeof config;
  config.known.timeoutMs = 6;
  const auto settings = read_settings(&config.known);
  ASSERT_TRUE(settings) << settings.error().text;
  EXPECT_EQ(settings->timeout_ms, 6);
}

TEST(Settings, UninitialisedConfigIsRefused) {
  hocketConfig_t config{};
  EXPECT_THAT(error_of(&config).text, HasSubstr("HOCKET_CONFIG_INITIALIZER"));
  config = HOCKET_CONFIG_INITIALIZER;
  config.size = 3;
  EXPECT_THAT(error_of(&config).text, HasSubstr("HOCKET_CONFIG_INITIALIZER"));
  config = HOCKET_CONFIG_INITIALIZER;
  config.magic ^= 1;
  EXPECT_THAT(error_of(&config).text, HasSubstr("HOCKET_CONFIG_INITIALIZER"));
  config = HOCKET_CONFIG_INITIALIZER;
  config.blocking = 0;
  EXPECT_EQ(error_of(&config).code, hocketInvalidUsage);
}

// What ranks compare when they meet: all that must be equal, nothing that may differ.
TEST(Settings, SharedTextHasWhatMustBeEqual) {
  Settings a, b;
  b.timeout_ms = 99;
  b.name = "other";
  b.spin_us = 1;
  EXPECT_EQ(a.shared_text(), b.shared_text());
  b.slot_bytes = 4096;
  EXPECT_NE(a.shared_text(), b.shared_text());
}

// The warning comes once per process: each look at it is a process of its own.
class UnknownNames : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

void read_twice_and_leave() {
  const bool both = read_settings(nullptr) && read_settings(nullptr);
  std::exit(both ? 0 : 1);
}

TEST_F(UnknownNames, AreWarnedOfWithTheNearestName) {
  const Variable typo("HOCKET_TIMOUT_MS", "5");
  EXPECT_EXIT(read_twice_and_leave(), testing::ExitedWithCode(0),
              "HOCKET_TIMOUT_MS is not a setting of this version; did you mean HOCKET_TIMEOUT_MS");
}

TEST_F(UnknownNames, EachIsNamed) {
  const Variable a("HOCKET_CHANELS", "5"), b("HOCKET_ALGORYTHM", "ring"), c("HOCKET_", "");
  EXPECT_EXIT(read_twice_and_leave(), testing::ExitedWithCode(0), "HOCKET_CHANNELS");
  EXPECT_EXIT(read_twice_and_leave(), testing::ExitedWithCode(0), "HOCKET_ALGORITHM");
}

// The whole of stderr, as the expression would match any part of it.
TEST_F(UnknownNames, NothingIsSaidOfKnownOrForeignOnes) {
  const Variable known("HOCKET_TIMEOUT_MS", "5"), log("HOCKET_LOG", "warn"), peers("HOCKET_PEERS_DIR", "x"),
      test("HOCKET_TEST_SEED", "1"), foreign("HOCKETT", "y");
  EXPECT_EXIT(read_twice_and_leave(), testing::ExitedWithCode(0), "^$");
}

TEST_F(UnknownNames, HostileNamesDoNoHarm) {
  const std::string long_name = "HOCKET_" + std::string(100000, 'x'), odd = "HOCKET_{}%n\x01\xff{:d}";
  const Variable a(long_name.c_str(), "1"), b(odd.c_str(), "1");
  EXPECT_EXIT(read_twice_and_leave(), testing::ExitedWithCode(0), "did you mean");
}

}  // namespace
}  // namespace hocket
