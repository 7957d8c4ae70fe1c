// When a receive is taken for one that brings a header.

#include "message/header_forecast.hpp"

#include "check.hpp"

using mpress::engine::HeaderForecast;

namespace {

constexpr std::size_t bytes = 1 << 20;

/// Headers until one is expected.
int headers_needed(HeaderForecast& forecast) {
  int count = 0;
  for (; !forecast.expects(bytes); ++count) forecast.header_came(bytes);
  return count;
}

void test_wrong_forecasts_become_rare() {
  HeaderForecast forecast;
  int last = headers_needed(forecast);
  CHECK(last > 1);
  for (int i = 0; i < 5; ++i) {
    forecast.other_came(bytes);
    CHECK(!forecast.expects(bytes));
    const int needed = headers_needed(forecast);
    CHECK(needed == 2 * last);
    last = needed;
  }
}

void test_messages_by_turns_are_never_expected() {
  HeaderForecast forecast;
  for (int i = 0; i < 100; ++i) {
    forecast.header_came(bytes);
    forecast.header_came(bytes);
    CHECK(!forecast.expects(bytes));
    forecast.other_came(bytes);
  }
  CHECK(headers_needed(forecast) == 3);  // no forecast was wrong
}

void test_sizes_are_apart() {
  HeaderForecast forecast;
  headers_needed(forecast);
  CHECK(forecast.expects(2 * bytes - 1));
  CHECK(!forecast.expects(2 * bytes));
  CHECK(!forecast.expects(bytes / 2));
  CHECK(!forecast.expects(0));
}

void test_long_rows_end() {
  HeaderForecast forecast;
  for (int i = 0; i < 100000; ++i) forecast.header_came(bytes);
  for (int i = 0; i < 40; ++i) {  // the number needed has a limit, which rows reach
    forecast.other_came(bytes);
    headers_needed(forecast);
  }
  CHECK(forecast.expects(bytes));
}

}  // namespace

int main() {
  test_wrong_forecasts_become_rare();
  test_messages_by_turns_are_never_expected();
  test_sizes_are_apart();
  test_long_rows_end();
  return check::failures != 0;
}
