// Short forms for the tables of options.
#pragma once

#include "config/options.h"

namespace gantry::config {

inline constexpr std::int64_t kSecond = 1'000'000;  // microseconds
inline constexpr std::int64_t kDay = 86'400 * kSecond;
inline constexpr std::int64_t kMiB = 1 << 20;

constexpr Rule between(std::int64_t low, std::int64_t high) {
  return {Form::plain, low, high};
}
constexpr Rule bytes(std::int64_t low, std::int64_t high) {
  return {Form::bytes, low, high};
}
constexpr Rule form(Form f) {
  return {f, 0, 0};
}
inline constexpr Rule kByType{};  // the member's type says all

}  // namespace gantry::config
